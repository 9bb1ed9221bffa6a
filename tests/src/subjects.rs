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
    /// Whether its cells share a run on every engine: most of their time they wait, and many can beside each other.
    pub together: bool,
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

/// What can befall a session, natively.
const BEFALLEN: Scenarios = &[
    ("claimed_storage", &[]),
    ("directory_outside_home", &[]),
    ("disk_full_at_rest", &[]),
    ("disk_full_in_turn", &[]),
    ("fifty_restarts", &[]),
    ("follow_up_waiting", &[]),
    // Nobody can work in a home that he may not write to; what counts is that it is told.
    ("foreign_home", &["comes_back"]),
    ("killed_in_first_reply", &[]),
    ("killed_in_first_tool_call", &[]),
    ("killed_in_first_turn", &[]),
    ("killed_in_reply", &[]),
    ("killed_in_tool_call", &[]),
    ("killed_in_turn", &[]),
    ("linked_directory", &[]),
    ("login_kept", &[]),
    ("odd_directory", &[]),
    ("other_session_beside", &[]),
    ("power_loss", &[]),
    ("power_loss_in_turn", &[]),
    ("renamed", &[]),
    ("restarts_in_succession", &[]),
    ("session_corrupt", &[]),
    ("session_empty", &[]),
    ("session_gone", &[]),
    ("session_old", &[]),
    ("session_truncated", &[]),
    ("side_by_side", &[]),
    ("without_prompt", &[]),
    ("without_sqlite3", &[]),
];

/// What can befall a session through its module, and what only a module can do.
const BEFALLEN_MODULE: Scenarios = &[
    ("agentapi_0_11", &[]),
    ("agentapi_hangs", &[]),
    ("chat_history", &[]),
    ("chat_history_off", &[]),
    ("claimed_storage", &[]),
    ("directory_outside_home", &[]),
    ("disk_full_at_rest", &[]),
    ("disk_full_in_turn", &[]),
    ("first_start_cut", &[]),
    ("first_start_cut_late", &[]),
    ("follow_up_waiting", &[]),
    ("foreign_home", &["comes_back"]),
    ("full_disk_at_save", &[]),
    ("killed_before_stop", &[]),
    ("killed_in_first_reply", &[]),
    ("killed_in_first_tool_call", &[]),
    ("killed_in_first_turn", &[]),
    ("killed_in_reply", &[]),
    ("killed_in_tool_call", &[]),
    ("killed_in_turn", &[]),
    ("large_chat", &[]),
    ("linked_directory", &[]),
    ("login_kept", &[]),
    ("long_chat", &[]),
    ("module_data_dir", &[]),
    ("odd_directory", &[]),
    ("other_session_beside", &[]),
    ("power_loss", &[]),
    ("power_loss_in_turn", &[]),
    ("renamed", &[]),
    ("restarts_in_succession", &[]),
    ("script_data", &[]),
    ("session_corrupt", &[]),
    ("session_empty", &[]),
    ("session_gone", &[]),
    ("session_old", &[]),
    ("session_truncated", &[]),
    ("side_by_side", &[]),
    ("snapshot_down", &[]),
    ("snapshot_server_error", &[]),
    ("snapshot_slow", &[]),
    ("snapshot_unauthorized", &[]),
    ("snapshot_unknown", &[]),
    ("stale_pid", &[]),
    ("state_corrupt", &[]),
    ("state_newer", &[]),
    ("state_paths", &[]),
    ("stopped", &[]),
    ("tmp_taken", &[]),
    ("without_prompt", &[]),
    ("without_sqlite3", &[]),
];

/// The same through the real goose, as its own commands resume it.
const GOOSE_BEFALLEN: Scenarios = &[
    ("directory_outside_home", &[]),
    ("follow_up_waiting", &[]),
    ("foreign_home", &["comes_back"]),
    ("killed_in_first_turn", &[]),
    ("killed_in_reply", &[]),
    ("killed_in_tool_call", &[]),
    ("killed_in_turn", &[]),
    ("odd_directory", &[]),
    ("other_session_beside", &[]),
    ("power_loss", &[]),
    ("restarts_in_succession", &[]),
    ("version_moved_up", &[]),
    // It ends with "No session found": there is no fresh session in the place of one that is gone.
    ("session_corrupt", &["comes_back"]),
    ("session_empty", &["comes_back"]),
    ("session_gone", &["comes_back"]),
    ("session_old", &[]),
    ("without_sqlite3", &[]),
];

/// The engines that run on this machine alone.
const LOCAL: &[&str] = &["sandbox", "docker"];

/// What most released modules do at every restart.
const FRESH_AND_TOLD_AGAIN: &[&str] = &["prompt_not_resent", "session_continues"];

/// The reference agent alone, through what every workspace goes through, on every engine.
const REFERENCE: Subject = Subject {
    name: "reference_native",
    agent: "reference",
    layer: "native",
    module: None,
    released: false,
    stand_in: false,
    alone: false,
    together: false,
    engines: ALL,
    scenarios: HEALTHY,
};

/// Everything with a table of its own: goose and the reference agent through every scenario.
const NAMED: &[Subject] = &[
    Subject {
        name: "goose_native",
        agent: "goose",
        ..REFERENCE
    },
    Subject {
        name: "goose_module_3_0_1",
        agent: "goose",
        layer: "module",
        module: Some("coder/goose@3.0.1"),
        released: true,
        scenarios: &[
            ("cold_start", &[]),
            ("warm_restart", FRESH_AND_TOLD_AGAIN),
            ("three_restarts", FRESH_AND_TOLD_AGAIN),
            ("crash_restart", FRESH_AND_TOLD_AGAIN),
            ("sqlite_sidecars", &[]),
        ],
        ..REFERENCE
    },
    REFERENCE,
    Subject {
        name: "reference_module",
        layer: "module",
        ..REFERENCE
    },
    Subject {
        name: "reference_native_disturbed",
        scenarios: DISTURBED,
        ..REFERENCE
    },
    Subject {
        name: "reference_native_node_agent",
        alone: true,
        scenarios: &[("kubelet_restarted", &[])],
        ..REFERENCE
    },
    Subject {
        name: "reference_module_disturbed",
        layer: "module",
        scenarios: DISTURBED,
        ..REFERENCE
    },
    Subject {
        name: "reference_module_node_agent",
        layer: "module",
        alone: true,
        scenarios: &[("kubelet_restarted", &[])],
        ..REFERENCE
    },
    Subject {
        name: "reference_native_grown",
        engines: &["kubernetes"],
        scenarios: &[("volume_grown", &[])],
        ..REFERENCE
    },
    Subject {
        name: "reference_native_befallen",
        together: true,
        engines: LOCAL,
        scenarios: BEFALLEN,
        ..REFERENCE
    },
    Subject {
        name: "reference_module_befallen",
        layer: "module",
        together: true,
        engines: LOCAL,
        scenarios: BEFALLEN_MODULE,
        ..REFERENCE
    },
    Subject {
        name: "goose_module_stopped",
        agent: "goose",
        layer: "module",
        module: Some("coder/goose@3.0.1"),
        released: true,
        engines: &["sandbox"],
        // It has no stop script, and does not tell AgentAPI that it runs goose.
        scenarios: &[(
            "stopped",
            &[
                "agent_type_passed",
                "nothing_outlives_stop",
                "snapshot_posted",
            ],
        )],
        ..REFERENCE
    },
    Subject {
        name: "goose_native_befallen",
        agent: "goose",
        together: true,
        engines: &["sandbox"],
        scenarios: GOOSE_BEFALLEN,
        ..REFERENCE
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
                released: layer == "module",
                stand_in,
                engines,
                scenarios,
                ..REFERENCE
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
