//! From verdicts to a level.

use reprise_model::{Judgement, Layer, Level, Standing};

use super::{CONTINUES, LEVEL_SCENARIO, NOT_RESENT, Seen, unmeasured};
use crate::scenario::AgentProfile;

/// A level, and how it came about.
pub(super) struct Measured {
    pub(super) level: Option<Level>,
    pub(super) at_most: bool,
    pub(super) because: String,
}

/// Whether a session survives a warm restart at a layer.
pub(super) fn standing(seen: &Seen<'_>, profile: &AgentProfile, layer: Layer) -> Standing {
    let agent = &profile.name;
    let Some(result) = seen.cell(agent, layer, LEVEL_SCENARIO) else {
        let why = seen
            .reason(agent, layer, LEVEL_SCENARIO)
            .unwrap_or("no run measured it");
        return Standing::Unmeasured(why.to_owned());
    };
    let of = |check: &str| {
        seen.verdict(agent, layer, LEVEL_SCENARIO, check)
            .map_or(Judgement::Inconclusive, |(_, verdict)| verdict.judgement)
    };
    match (of(CONTINUES), of(NOT_RESENT)) {
        (Judgement::Fail, _) | (_, Judgement::Fail) => Standing::Fails(result.subject),
        (Judgement::Pass, Judgement::Pass) => Standing::Resumes(result.subject),
        _ => Standing::Unmeasured(
            result
                .trouble
                .clone()
                .unwrap_or_else(|| "the run saw too little of it".to_owned()),
        ),
    }
}

pub(super) fn level(
    seen: &Seen<'_>,
    profile: &AgentProfile,
    native: &Standing,
    through_module: &Standing,
) -> Measured {
    let measured = |level, at_most, because: &str| Measured {
        level,
        at_most,
        because: because.to_owned(),
    };
    if let Some(why) = unmeasured(through_module) {
        return measured(None, false, why);
    }
    let tools_lost = seen
        .verdict(
            &profile.name,
            Layer::Module,
            LEVEL_SCENARIO,
            "tool_calls_preserved",
        )
        .is_some_and(|(_, verdict)| verdict.judgement == Judgement::Fail);
    let with_settings = seen.with_settings(&profile.name, LEVEL_SCENARIO);
    match (through_module, native) {
        (Standing::Resumes(_), _) if tools_lost => measured(
            Some(Level::Partial),
            false,
            "the session goes on without its tool calls",
        ),
        (Standing::Resumes(_), _) => measured(
            Some(Level::Full),
            false,
            "with the module's defaults the session goes on, and the task is not sent again",
        ),
        _ if with_settings.is_some() => measured(
            Some(Level::Partial),
            false,
            &format!(
                "only with {}, which is not the module's default, the session goes on",
                with_settings.unwrap_or_default()
            ),
        ),
        (_, Standing::Resumes(_)) => measured(
            Some(Level::Planned),
            false,
            "the agent alone resumes, its module does not ask it to",
        ),
        (_, Standing::Unmeasured(_)) => measured(
            Some(Level::Planned),
            true,
            "its module does not resume; whether the agent alone does was not measured",
        ),
        _ => measured(
            Some(Level::None),
            false,
            "neither the agent nor its module resumes",
        ),
    }
}
