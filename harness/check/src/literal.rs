//! Literal histories for the checks' tests: a line an event.

use std::collections::BTreeMap;

use reprise_model::{
    Act, AgentEvent, ByteSize, Cell, Claim, Class, Closing, DatabaseFacts, EngineKind, Exchange,
    FORMAT, FileKind, Header, History, InstanceId, Layer, ManifestEntry, Mark, Message, Moment,
    NonceBook, Observation, OpId, Outcome, Protocol, Reply, ReplyEnd, Request, Role, RunId,
    ScriptId, ScriptPhase, SidecarFacts, Snapshot, Stamp, Step, Subject, TableRows, WorkspaceId,
};

/// Outcomes in a word.
pub(crate) mod outcome {
    use reprise_model::Outcome;

    pub(crate) fn failed(reason: &str) -> Outcome {
        Outcome::Failed {
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn unknown(reason: &str) -> Outcome {
        Outcome::Unknown {
            reason: reason.to_owned(),
        }
    }
}

pub(crate) fn told(role: Role, marks: Vec<Mark>) -> Message {
    Message {
        role,
        marks,
        bytes: 10,
        excerpt: "text".to_owned(),
    }
}

pub(crate) fn prompt() -> Message {
    told(Role::User, vec![Mark::Prompt])
}

pub(crate) fn user() -> Message {
    told(Role::User, vec![])
}

pub(crate) fn asked(turn: u32) -> Message {
    told(Role::User, vec![Mark::FollowUp { turn }])
}

pub(crate) fn answered(epoch: u32, turn: u32) -> Message {
    told(Role::Assistant, vec![Mark::Answer { epoch, turn }])
}

pub(crate) fn called(epoch: u32) -> Message {
    told(Role::Assistant, vec![Mark::Tool { epoch }])
}

pub(crate) fn resulted(epoch: u32) -> Message {
    told(Role::Tool, vec![Mark::Tool { epoch }])
}

pub(crate) struct Builder {
    history: History,
    us: u64,
    epoch: u32,
    turn: u32,
}

/// A history with nothing in it yet.
pub(crate) fn history() -> Builder {
    Builder {
        history: History {
            header: Header {
                format: FORMAT,
                reprise: "0.0.0".to_owned(),
                run: RunId::draw(),
                cell: Cell {
                    engine: EngineKind::Sandbox,
                    agent: "goose".parse().expect("a name"),
                    layer: Layer::Module,
                    scenario: "literal".parse().expect("a name"),
                },
                workspace: WorkspaceId::draw(),
                subject: Subject::RealAgent,
                module: None,
                versions: BTreeMap::new(),
                nonces: NonceBook::draw(),
                checks: Vec::new(),
                claim: Claim::default(),
                module_variables: Default::default(),
                settings: Default::default(),
            },
            steps: Vec::new(),
            observations: Vec::new(),
            wire: Vec::new(),
            snapshots: BTreeMap::new(),
            closing: None,
        },
        us: 0,
        epoch: 0,
        turn: 0,
    }
}

impl Builder {
    fn tick(&mut self) -> Stamp {
        self.us += 1000;
        Stamp::literal(self.us)
    }

    fn step(&mut self, act: Act, outcome: Outcome) {
        let (at, ended) = (self.tick(), self.tick());
        self.history.steps.push(Step {
            op: OpId(self.history.steps.len() as u64 + 1),
            at,
            act,
            ended: Some(ended),
            outcome,
        });
    }

    fn exchange(
        &mut self,
        class: Class,
        conversation: Vec<Message>,
        end: ReplyEnd,
        marks: Vec<Mark>,
    ) {
        let seq = self.history.wire.len() as u64 + 1;
        let (at, replied) = (self.tick(), self.tick());
        self.history.wire.push(Exchange {
            request: Request {
                seq,
                at,
                epoch: self.epoch,
                method: "POST".to_owned(),
                path: "/v1/chat/completions".to_owned(),
                protocol: Some(Protocol::OpenaiChat),
                class,
                tools: 1,
                conversation,
                bytes: 100,
                problem: None,
            },
            reply: Some(Reply {
                seq,
                at: replied,
                status: 200,
                end,
                marks,
            }),
        });
    }

    pub(crate) fn main(mut self, conversation: Vec<Message>) -> Self {
        self.exchange(Class::Main, conversation, ReplyEnd::Complete, vec![]);
        self
    }

    pub(crate) fn side(mut self, conversation: Vec<Message>) -> Self {
        self.exchange(Class::Side, conversation, ReplyEnd::Complete, vec![]);
        self
    }

    pub(crate) fn broken(mut self, conversation: Vec<Message>) -> Self {
        self.exchange(Class::Main, conversation, ReplyEnd::Broken, vec![]);
        self
    }

    fn started(mut self) -> Self {
        if self.history.steps.is_empty() {
            self.step(Act::Start { epoch: 0 }, Outcome::Ok);
            self.step(Act::Settle { epoch: 0 }, Outcome::Ok);
        }
        self
    }

    /// The first start, the task, its tool call and its answer.
    pub(crate) fn task_done(self) -> Self {
        let mut this = self.started();
        let tool = Mark::Tool { epoch: 0 };
        let answer = Mark::Answer { epoch: 0, turn: 0 };
        this.exchange(Class::Main, vec![prompt()], ReplyEnd::Complete, vec![tool]);
        this.exchange(
            Class::Main,
            vec![prompt(), called(0), resulted(0)],
            ReplyEnd::Complete,
            vec![answer],
        );
        this.step(Act::Task, Outcome::Ok);
        this
    }

    pub(crate) fn task_ending(self, outcome: Outcome) -> Self {
        let mut this = self.started();
        this.step(Act::Task, outcome);
        this
    }

    pub(crate) fn start_ending(mut self, outcome: Outcome) -> Self {
        self.step(Act::Start { epoch: 0 }, outcome);
        self
    }

    pub(crate) fn node_agent_restarted(mut self, outcome: Outcome) -> Self {
        self.step(Act::RestartNodeAgent, outcome);
        self
    }

    /// PID 1 speaks up.
    pub(crate) fn booted(self, epoch: u32) -> Self {
        self.observe(Observation::Agent {
            epoch,
            event: AgentEvent::Booted { processes: 0 },
        })
    }

    pub(crate) fn restart(self) -> Self {
        self.restart_ending(Outcome::Ok)
    }

    pub(crate) fn restart_ending(self, outcome: Outcome) -> Self {
        let mut this = self.started();
        this.step(Act::Stop { by: None }, Outcome::Ok);
        this.epoch += 1;
        let epoch = this.epoch;
        this.step(Act::Start { epoch }, outcome.clone());
        if outcome == Outcome::Ok {
            this.step(Act::Settle { epoch }, Outcome::Ok);
        }
        this
    }

    /// A follow-up, and the request it led to.
    pub(crate) fn follow_up(mut self, conversation: Vec<Message>) -> Self {
        self.turn += 1;
        let (turn, epoch) = (self.turn, self.epoch);
        self.step(Act::FollowUp { turn }, Outcome::Ok);
        self.exchange(
            Class::Main,
            conversation,
            ReplyEnd::Complete,
            vec![Mark::Answer { epoch, turn }],
        );
        self
    }

    pub(crate) fn look(mut self, moment: Moment, snapshot: Snapshot) -> Self {
        self.history.snapshots.insert(moment.to_string(), snapshot);
        self
    }

    pub(crate) fn observe(mut self, observation: Observation) -> Self {
        let at = self.tick();
        self.history.observations.push((at, observation));
        self
    }

    pub(crate) fn event(self, event: AgentEvent) -> Self {
        let epoch = self.epoch;
        self.observe(Observation::Agent { epoch, event })
    }

    pub(crate) fn stopping(self) -> Self {
        self.event(AgentEvent::Stopping {
            signal: "SIGTERM".to_owned(),
        })
    }

    pub(crate) fn stop_script(self, code: Option<i32>) -> Self {
        self.event(AgentEvent::ScriptEnded {
            id: ScriptId(RunId::draw().uuid()),
            name: "script".to_owned(),
            phase: ScriptPhase::Stop,
            code,
            problem: None,
            millis: 1,
        })
    }

    pub(crate) fn shown(self, moment: Moment, messages: Vec<Message>) -> Self {
        self.observe(Observation::Shown {
            moment: moment.to_string(),
            messages,
        })
    }

    /// A log snapshot, and how it was met.
    pub(crate) fn control(mut self, messages: Vec<Message>, status: u16) -> Self {
        self.exchange(Class::Control, messages, ReplyEnd::Complete, vec![]);
        let last = self.history.wire.last_mut().expect("it was put there");
        last.reply.as_mut().expect("it was answered").status = status;
        self
    }

    /// A turn that answers the task in start `epoch`.
    pub(crate) fn answering(mut self, conversation: Vec<Message>, epoch: u32) -> Self {
        let marks = vec![Mark::Answer { epoch, turn: 0 }];
        self.exchange(Class::Main, conversation, ReplyEnd::Complete, marks);
        self
    }

    pub(crate) fn login(mut self, path: &str) -> Self {
        self.history.header.claim.login.push(path.to_owned());
        self
    }

    pub(crate) fn marks(self, home: bool, outside: &[&str], process: bool) -> Self {
        let planted = self.epoch - 1;
        self.observe(Observation::Marks {
            planted,
            home,
            outside: outside.iter().map(ToString::to_string).collect(),
            process,
        })
    }

    pub(crate) fn instance(self, id: &str) -> Self {
        let epoch = self.epoch;
        self.observe(Observation::Instance {
            epoch,
            id: InstanceId(id.to_owned()),
        })
    }

    pub(crate) fn script_in(self, data_dir: &str) -> Self {
        let epoch = self.epoch;
        self.observe(Observation::Agent {
            epoch,
            event: AgentEvent::ScriptStarted {
                id: ScriptId(RunId::draw().uuid()),
                name: "script".to_owned(),
                phase: ScriptPhase::Start,
                data_dir: data_dir.to_owned(),
            },
        })
    }

    pub(crate) fn done(mut self) -> History {
        self.history.closing = Some(Closing::Finished);
        self.history
    }

    pub(crate) fn cut_off(self) -> History {
        self.history
    }
}

pub(crate) fn file(path: &str, content: &str) -> (String, ManifestEntry) {
    let entry = ManifestEntry {
        kind: FileKind::File,
        size: ByteSize(content.len() as u64),
        mode: 0o644,
        mtime_ns: 0,
        hash: Some(content.to_owned()),
        unreadable: None,
    };
    (path.to_owned(), entry)
}

pub(crate) fn directory(path: &str) -> (String, ManifestEntry) {
    let (path, entry) = file(path, "");
    let entry = ManifestEntry {
        kind: FileKind::Dir,
        hash: None,
        ..entry
    };
    (path, entry)
}

/// A database of one table: its rows with the log, and without it.
pub(crate) fn database(with: u64, alone: u64) -> DatabaseFacts {
    let facts = |rows| SidecarFacts {
        integrity: "ok".to_owned(),
        rows: TableRows::from([("messages".to_owned(), rows)]),
    };
    DatabaseFacts {
        with_sidecars: facts(with),
        alone: facts(alone),
    }
}

pub(crate) struct Home(Snapshot);

pub(crate) fn home<const N: usize>(files: [(String, ManifestEntry); N]) -> Home {
    Home(Snapshot {
        at: Stamp::literal(0),
        root: "/home/coder".to_owned(),
        manifest: files.into(),
        databases: BTreeMap::new(),
    })
}

impl Home {
    pub(crate) fn with(mut self, path: &str, facts: DatabaseFacts) -> Self {
        self.0.databases.insert(path.to_owned(), facts);
        self
    }

    pub(crate) fn look(self) -> Snapshot {
        self.0
    }
}
