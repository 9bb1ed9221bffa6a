//! `reprise gc`: removes what runs left that did not end by themselves.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nix::unistd::{SysconfVar, sysconf};
use reprise_engine::{Engine, Maker, this_host};

use reprise_model::RunId;

use super::args::GcArgs;
use super::{Exit, Failure, places};
use crate::workspace::with_causes;

pub(super) fn main(args: &GcArgs) -> Result<Exit, Failure> {
    places::runtime()?.block_on(collect(args))
}

/// How far apart the clocks may be that tell a process's start and an object's making.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// Whether the process that made an object still runs. One that began later was only given the number, and of another
/// machine's processes nothing is known here.
fn maker_lives(maker: &Maker) -> bool {
    if !maker.host.is_empty() && maker.host != this_host() {
        return true;
    }
    maker.pid != std::process::id()
        && process_began(maker.pid).is_some_and(|began| began <= maker.created + SLACK)
}

/// When a process began, if it is there: `starttime` of proc_pid_stat(5), in clock ticks since the machine's own start.
fn process_began(pid: u32) -> Option<Timestamp> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace();
    // One that has ended and that nobody waited for.
    if fields.next()? == "Z" {
        return None;
    }
    let ticks: i64 = fields.nth(18)?.parse().ok()?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let booted = machine
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?;
    Timestamp::from_second(booted.trim().parse::<i64>().ok()? + ticks / per_second).ok()
}

async fn collect(args: &GcArgs) -> Result<Exit, Failure> {
    let engines: Vec<Arc<dyn Engine>> = match args.engine {
        Some(engine) => {
            vec![places::engine(Some(engine.into()), &args.cluster, RunId::draw()).await?]
        }
        None => {
            let mut engines: Vec<Arc<dyn Engine>> = vec![Arc::new(places::sandbox()?)];
            match places::docker().await {
                Ok(docker) => engines.push(Arc::new(docker)),
                Err(missing) => eprintln!("docker is not looked at: {missing}"),
            }
            engines
        }
    };
    let (mut removed, mut kept, mut failed) = (0, 0, 0);
    for engine in engines {
        let leftovers = engine.leftovers().await.map_err(|error| {
            Failure::message(
                Exit::Io,
                format!("{}: {}", engine.kind(), with_causes(&error)),
            )
        })?;
        for leftover in leftovers {
            let name = format!("{} {} {}", engine.kind(), leftover.kind, leftover.name);
            if !args.all && leftover.maker.as_ref().is_some_and(maker_lives) {
                kept += 1;
                println!("in use: {name}");
            } else if args.dry_run {
                println!("would be removed: {name}");
            } else {
                match engine.remove(&leftover).await {
                    Ok(()) => {
                        removed += 1;
                        println!("removed: {name}");
                    }
                    Err(error) => {
                        failed += 1;
                        println!("not removed: {name}: {}", with_causes(&error));
                    }
                }
            }
        }
    }
    println!("{removed} removed, {kept} in use, {failed} not removed");
    Ok(if failed == 0 { Exit::Pass } else { Exit::Io })
}

#[cfg(test)]
mod tests {
    use reprise_model::RunId;

    use super::*;

    /// This test's own process, as another one sees it.
    fn maker(pid: u32, created: Timestamp) -> Maker {
        Maker {
            pid,
            created,
            ..Maker::this(RunId::draw())
        }
    }

    #[test]
    fn a_maker_lives_if_its_process_is_older_than_what_it_made() {
        let parent = std::os::unix::process::parent_id();
        let now = Timestamp::now();
        assert!(maker_lives(&maker(parent, now)));
        assert!(!maker_lives(&maker(parent, Timestamp::UNIX_EPOCH)));
        assert!(!maker_lives(&maker(u32::MAX, now)));
        let elsewhere = Maker {
            host: "another-machine".to_owned(),
            ..maker(u32::MAX, now)
        };
        assert!(maker_lives(&elsewhere));
    }
}
