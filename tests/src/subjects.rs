//! What is measured end to end, and which checks must fail: a fact that was seen, and no opinion. A verdict that moves is a
//! test that fails.

/// Scenarios, each with the checks that must fail.
pub type Scenarios = &'static [(&'static str, &'static [&'static str])];

const ALL: &[&str] = &["sandbox", "docker", "kubernetes"];

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// How tests are called.
    pub name: &'static str,
    /// Whose.
    pub agent: &'static str,
    /// Started how.
    pub layer: &'static str,
    /// A module instead of the profile's.
    pub module: Option<&'static str>,
    /// Whether it needs the public registry's releases.
    pub released: bool,
    /// Whether its agent is played.
    pub stand_in: bool,
    /// Whether its cells disturb others on the same node.
    pub alone: bool,
    /// On which engines.
    pub engines: &'static [&'static str],
    /// The scenarios, each with the checks that must fail.
    pub scenarios: Scenarios,
}

const HEALTHY: Scenarios = &[
    ("cold_start", &[]),
    ("warm_restart", &[]),
    ("three_restarts", &[]),
    ("crash_restart", &[]),
    ("sqlite_sidecars", &[]),
    ("claimed_paths", &[]),
    ("two_crashes", &[]),
    ("flaky_model", &[]),
];

/// What an engine does of its own accord: the same behaviour must give the same verdict on each.
const DISTURBED: Scenarios = &[
    ("node_drained", &[]),
    ("container_killed", &[]),
    ("out_of_memory", &[]),
    ("short_grace", &[]),
    ("reattached", &[]),
];

/// What most released modules do at every restart.
const FRESH_AND_TOLD_AGAIN: &[&str] = &["prompt_not_resent", "session_continues"];

/// Everything with a table of its own: goose and the reference agent through every scenario, and the faulty copies of the
/// reference module.
const NAMED: &[Subject] = &[
    Subject {
        name: "goose_native",
        agent: "goose",
        layer: "native",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: HEALTHY,
    },
    Subject {
        name: "goose_module_3_0_1",
        agent: "goose",
        layer: "module",
        module: Some("coder/goose@3.0.1"),
        released: true,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: &[
            ("cold_start", &[]),
            ("warm_restart", FRESH_AND_TOLD_AGAIN),
            ("three_restarts", FRESH_AND_TOLD_AGAIN),
            ("crash_restart", FRESH_AND_TOLD_AGAIN),
            ("sqlite_sidecars", &[]),
        ],
    },
    Subject {
        name: "reference_native",
        agent: "reference",
        layer: "native",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: HEALTHY,
    },
    Subject {
        name: "reference_module",
        agent: "reference",
        layer: "module",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: HEALTHY,
    },
    Subject {
        name: "reference_native_disturbed",
        agent: "reference",
        layer: "native",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: DISTURBED,
    },
    Subject {
        name: "reference_native_node_agent",
        agent: "reference",
        layer: "native",
        module: None,
        released: false,
        stand_in: false,
        alone: true,
        engines: ALL,
        scenarios: &[("kubelet_restarted", &[])],
    },
    Subject {
        name: "reference_module_disturbed",
        agent: "reference",
        layer: "module",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: DISTURBED,
    },
    Subject {
        name: "reference_module_node_agent",
        agent: "reference",
        layer: "module",
        module: None,
        released: false,
        stand_in: false,
        alone: true,
        engines: ALL,
        scenarios: &[("kubelet_restarted", &[])],
    },
    Subject {
        name: "reference_native_grown",
        agent: "reference",
        layer: "native",
        module: None,
        released: false,
        stand_in: false,
        alone: false,
        engines: &["kubernetes"],
        scenarios: &[("volume_grown", &[])],
    },
    Subject {
        name: "fault_prompt_resent",
        agent: "reference",
        layer: "module",
        module: Some("reprise/reference-prompt-resent"),
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: &[
            ("warm_restart", &["prompt_not_resent"]),
            ("sqlite_sidecars", &[]),
        ],
    },
    Subject {
        name: "fault_session_in_tmp",
        agent: "reference",
        layer: "module",
        module: Some("reprise/reference-session-in-tmp"),
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: &[
            ("warm_restart", &["session_continues"]),
            ("sqlite_sidecars", &[]),
        ],
    },
    Subject {
        name: "fault_wal_deleted",
        agent: "reference",
        layer: "module",
        module: Some("reprise/reference-wal-deleted"),
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: &[
            ("warm_restart", &[]),
            ("sqlite_sidecars", &["sidecars_preserved"]),
        ],
    },
    Subject {
        name: "fault_database_copied",
        agent: "reference",
        layer: "module",
        module: Some("reprise/reference-database-copied"),
        released: false,
        stand_in: false,
        alone: false,
        engines: ALL,
        scenarios: &[
            ("warm_restart", &[]),
            ("sqlite_sidecars", &["sidecars_preserved"]),
        ],
    },
];

/// A row of the compatibility page.
struct Row {
    agent: &'static str,
    /// Whether the real agent runs offline.
    real: bool,
    /// What its released module does at a restart; `None` if it cannot be rendered from package registries alone.
    module: Option<Scenarios>,
}

const RESUMES: Scenarios = &[
    ("cold_start", &[]),
    ("warm_restart", &[]),
    ("crash_restart", &[]),
];

const STARTS_AGAIN: Scenarios = &[
    ("cold_start", &[]),
    ("warm_restart", FRESH_AND_TOLD_AGAIN),
    ("crash_restart", FRESH_AND_TOLD_AGAIN),
];

const ROWS: &[Row] = &[
    row("aider", true, Some(STARTS_AGAIN)),
    row("amazon-q", false, Some(STARTS_AGAIN)),
    row("auggie", false, Some(STARTS_AGAIN)),
    row("claude-code", true, Some(RESUMES)),
    row("codex", true, Some(RESUMES)),
    row("copilot", true, Some(STARTS_AGAIN)),
    row("cursor-cli", false, Some(STARTS_AGAIN)),
    row("gemini", true, Some(STARTS_AGAIN)),
    row("goose", true, Some(STARTS_AGAIN)),
    row("opencode", true, Some(STARTS_AGAIN)),
    // Its module asks for Terraform's provider `external`, which only Terraform's own registry has.
    row("sourcegraph-amp", false, None),
];

const fn row(agent: &'static str, real: bool, module: Option<Scenarios>) -> Row {
    Row {
        agent,
        real,
        module,
    }
}

/// Only the restart that every workspace goes through.
const WARM: usize = 1;

/// Every subject: those with a table of their own, and each row of the page with its real agent and with its stand-in. Both
/// are held against the same table: that is what makes a stand-in worth believing.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let mut all = NAMED.to_vec();
    for row in ROWS {
        let mut push = |kind: &str, layer, stand_in, engines, scenarios| {
            all.push(Subject {
                // Tests' names live as long as the test's process.
                name: String::leak(format!("{}_{layer}_{kind}", row.agent)),
                agent: row.agent,
                layer,
                module: None,
                released: layer == "module",
                stand_in,
                alone: false,
                engines,
                scenarios,
            });
        };
        push("stand_in", "native", true, &["sandbox"], RESUMES);
        if let Some(scenarios) = row.module {
            push("stand_in", "module", true, &["sandbox"], scenarios);
        }
        // Goose has a table of its own.
        if row.real && row.agent != "goose" {
            push("real", "native", false, &["sandbox"], RESUMES);
            // Their hundreds of megabytes would be handed to the cluster anew by each test; goose, above, is the one that is.
            push("real", "native", false, &["docker"], &RESUMES[WARM..=WARM]);
            if let Some(scenarios) = row.module {
                push("real", "module", false, &["sandbox"], &scenarios[WARM..]);
                push(
                    "real",
                    "module",
                    false,
                    &["docker"],
                    &scenarios[WARM..=WARM],
                );
            }
        }
    }
    all
}
