//! What the model answers: decided by the request alone, so that a retry gets the same answer.

use reprise_model::{Mark, NonceBook, Role};
use serde_json::json;

use crate::protocol::{Answer, ShellTool, Turn};

/// What the title of a session is when an agent asks for one. It holds no nonce.
const TITLE: &str = "A task in a workspace";

/// The answer to a turn in start `epoch`, with the nonce it holds.
pub(crate) fn answer(
    turn: &Turn,
    main: bool,
    book: &NonceBook,
    epoch: u32,
) -> (Answer, Option<Mark>) {
    if !main {
        let title = if turn.json {
            json!({ "title": TITLE }).to_string()
        } else {
            TITLE.to_owned()
        };
        return (Answer::Text(title), None);
    }
    let spoken: Vec<_> = turn
        .conversation
        .iter()
        .filter(|message| message.role != Role::System)
        .collect();
    let after_tool = spoken
        .last()
        .is_some_and(|message| message.role == Role::Tool);
    // What the user wants now: the user's last words, which an agent may spread over several messages.
    let asked: Vec<Mark> = spoken
        .iter()
        .rev()
        .skip_while(|message| message.role != Role::User)
        .take_while(|message| message.role == Role::User)
        .flat_map(|message| message.marks.iter().copied())
        .collect();
    let follow_up = asked
        .iter()
        .filter_map(|mark| match mark {
            Mark::FollowUp { turn } => Some(*turn),
            _ => None,
        })
        .max();
    let reply = |turn: u32, words: &str| {
        let mark = Mark::Answer { epoch, turn };
        (
            Answer::Text(format!("{words} {}", book.nonce(mark))),
            Some(mark),
        )
    };
    match (follow_up, asked.contains(&Mark::Prompt)) {
        (Some(turn), _) => reply(turn, "Noted. The reference of this answer is"),
        (None, true) => match &turn.shell {
            Some(tool) if !after_tool => {
                let mark = Mark::Tool { epoch };
                let command = format!("echo {}", book.nonce(mark));
                let tool = tool.clone();
                (Answer::Run { tool, command }, Some(mark))
            }
            _ => reply(0, "The task is done. The reference of this answer is"),
        },
        (None, false) => (Answer::Text("There is nothing to do.".to_owned()), None),
    }
}

/// The command line of an endless command, as the list of processes has it.
pub const HELD_COMMAND: &str = "sleep 86399";

/// A command that does not end: it says its nonce and becomes [`HELD_COMMAND`].
pub(crate) fn endless(tool: ShellTool, book: &NonceBook, epoch: u32) -> (Answer, Option<Mark>) {
    let mark = Mark::Tool { epoch };
    let command = format!("echo {}; exec {HELD_COMMAND}", book.nonce(mark));
    (Answer::Run { tool, command }, Some(mark))
}

/// How long an answer is, in bytes, that is given at length.
const LONG: usize = 14_000;

/// The same answer at the end of a long one. No line stands in it twice, nor in the one that `seq` tells it apart from.
pub(crate) fn at_length(answer: Answer, seq: u64) -> Answer {
    let Answer::Text(short) = answer else {
        return answer;
    };
    let mut long = String::new();
    for line in 1.. {
        if long.len() + short.len() >= LONG {
            break;
        }
        long.push_str(&format!(
            "This is line {line} of a long answer, number {seq}.\n"
        ));
    }
    Answer::Text(long + &short)
}

#[cfg(test)]
mod tests {
    use reprise_model::Message;

    use super::*;
    use crate::protocol::ShellTool;

    fn turn(conversation: &[(Role, &[Mark])]) -> Turn {
        Turn {
            conversation: conversation
                .iter()
                .map(|(role, marks)| Message {
                    role: *role,
                    marks: marks.to_vec(),
                    bytes: 0,
                    excerpt: String::new(),
                })
                .collect(),
            tools: 1,
            shell: Some(ShellTool {
                name: "shell".to_owned(),
                argument: "command".to_owned(),
                list: false,
                described: false,
            }),
            model: String::new(),
            stream: false,
            include_usage: false,
            json: false,
        }
    }

    fn marked(turn: &Turn, epoch: u32) -> Option<Mark> {
        answer(turn, turn.tools > 0, &NonceBook::draw(), epoch).1
    }

    #[test]
    fn the_task_is_met_with_a_tool_call_and_then_an_answer() {
        let first = turn(&[(Role::User, &[Mark::Prompt])]);
        assert_eq!(marked(&first, 0), Some(Mark::Tool { epoch: 0 }));
        let second = turn(&[
            (Role::User, &[Mark::Prompt]),
            (Role::Assistant, &[Mark::Tool { epoch: 0 }]),
            (Role::Tool, &[Mark::Tool { epoch: 0 }]),
        ]);
        assert_eq!(marked(&second, 0), Some(Mark::Answer { epoch: 0, turn: 0 }));
    }

    #[test]
    fn the_task_sent_again_gets_another_answer() {
        let mut again = turn(&[(Role::User, &[Mark::Prompt])]);
        again.shell = None;
        assert_eq!(marked(&again, 1), Some(Mark::Answer { epoch: 1, turn: 0 }));
    }

    #[test]
    fn a_follow_up_outweighs_the_history_before_it() {
        let history = turn(&[
            (Role::User, &[Mark::Prompt]),
            (Role::Assistant, &[Mark::Answer { epoch: 0, turn: 0 }]),
            (Role::User, &[Mark::FollowUp { turn: 1 }]),
        ]);
        assert_eq!(
            marked(&history, 1),
            Some(Mark::Answer { epoch: 1, turn: 1 })
        );
    }

    #[test]
    fn a_long_answer_ends_as_the_short_one() {
        let short = Answer::Text("Noted.".to_owned());
        let Answer::Text(long) = at_length(short, 7) else {
            panic!("it is a text");
        };
        assert!(
            long.len() >= LONG && long.len() < LONG + 100,
            "{}",
            long.len()
        );
        assert!(long.ends_with("number 7.\nNoted."));
    }

    #[test]
    fn a_title_holds_no_nonce() {
        let mut title = turn(&[(Role::User, &[Mark::Prompt])]);
        title.tools = 0;
        assert_eq!(marked(&title, 0), None);
    }
}
