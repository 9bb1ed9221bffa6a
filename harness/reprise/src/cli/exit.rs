//! Exit codes, all in one place.

use std::process::ExitCode;

use reprise_model::Judgement;

/// What an exit code means. Codes from 64 on are those of `sysexits.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was measured passed.
    Pass,
    /// A check failed.
    Fail,
    /// No check failed, but one could not be judged.
    Inconclusive,
    /// A cell that `--require` names could not be measured.
    NotMeasured,
    /// The command line is wrong.
    Usage,
    /// A scenario, profile or record is wrong.
    BadFile,
    /// The engine cannot be used here.
    Unavailable,
    /// A file cannot be read or written.
    Io,
    /// The user ended it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Pass => 0,
            Exit::Fail => 1,
            Exit::Inconclusive => 2,
            Exit::NotMeasured => 3,
            Exit::Usage => 64,
            Exit::BadFile => 65,
            Exit::Unavailable => 69,
            Exit::Io => 74,
            Exit::Interrupted => 130,
        })
    }
}

impl Exit {
    /// The exit of a run: a failure outweighs all, then what could not be judged, then what was required and not measured.
    #[must_use]
    pub fn of(
        judgements: impl IntoIterator<Item = Judgement>,
        required_missing: bool,
        cancelled: bool,
    ) -> Self {
        match judgements.into_iter().max() {
            Some(Judgement::Fail) => Self::Fail,
            _ if cancelled => Self::Interrupted,
            Some(Judgement::Inconclusive) => Self::Inconclusive,
            _ if required_missing => Self::NotMeasured,
            _ => Self::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_all() {
        use Judgement::{Fail, Inconclusive, NotApplicable, Pass};
        assert_eq!(Exit::of([Pass, Fail, Inconclusive], true, true), Exit::Fail);
        assert_eq!(
            Exit::of([Pass, Inconclusive], true, true),
            Exit::Interrupted
        );
        assert_eq!(
            Exit::of([Pass, Inconclusive], true, false),
            Exit::Inconclusive
        );
        assert_eq!(
            Exit::of([Pass, NotApplicable], true, false),
            Exit::NotMeasured
        );
        assert_eq!(Exit::of([Pass, NotApplicable], false, false), Exit::Pass);
        assert_eq!(Exit::of([], false, false), Exit::Pass);
    }
}
