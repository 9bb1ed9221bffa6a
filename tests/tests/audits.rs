//! Audits of modules and of templates, as their authors would ask for them.

use std::fs;
use std::path::{Path, PathBuf};

use reprise_tests::shared;
use reprise_tests::user::{Bench, modules_usable, reference_cell};
use serde_json::Value;

fn templates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("templates")
}

/// A checkout of a registry with these modules: name, and the script of its only `coder_script`.
fn checkout(bench: &Bench, modules: &[(&str, &str)]) {
    for (name, script) in modules {
        let dir = bench
            .dir
            .path()
            .join("registry/registry/ns/modules")
            .join(name);
        fs::create_dir_all(&dir).expect("made");
        let text = format!(
            "variable \"agent_id\" {{}}\nresource \"coder_script\" \"start\" {{\n  agent_id = var.agent_id\n  script = <<-EOT\n    #!/bin/bash\n    {script}\n  EOT\n}}\n"
        );
        fs::write(dir.join("main.tf"), text).expect("written");
    }
}

#[test]
fn a_checkout_is_read_module_by_module() {
    let bench = Bench::open();
    checkout(
        &bench,
        &[
            ("careless", "echo x > /tmp/run.sh"),
            ("careless-too", "cp a /tmp/run.sh"),
            (
                "caching",
                "[ -f \"$CODER_SCRIPT_DATA_DIR/cache\" ] || touch \"$CODER_SCRIPT_DATA_DIR/cache\"",
            ),
            ("keeping", "mkdir -p \"$HOME/.keeping\""),
            ("forgetful", "mktemp"),
        ],
    );
    let ran = bench.run(&["audit", "--registry", "registry"]);
    ran.says(
        1,
        &[
            "main.tf:6: /tmp/run.sh",
            "ns/caching",
            "looks for what an earlier start kept there",
            "~/.keeping",
            "/tmp/run.sh: ns/careless, ns/careless-too",
            "5 modules: 3 with a bug, 1 need persistence, 1 are fine with ephemeral storage",
        ],
    );
    bench
        .run(&["audit", "ns/forgetful", "--registry", "registry"])
        .says(0, &["1 modules: 0 with a bug"]);
    bench
        .run(&["audit", "ns/nobodys", "--registry", "registry"])
        .says(2, &["not read: ns/nobodys"]);
}

#[test]
fn the_released_goose_module_writes_a_fixed_name_in_tmp() {
    let bench = Bench::open();
    let Some(shared) = shared() else {
        eprintln!("skipped: no releases at hand");
        return;
    };
    let registry = shared
        .join("upstream/coder-registry.bundle")
        .display()
        .to_string();
    let args = [
        "audit",
        "coder/goose@3.0.1",
        "--registry",
        &registry,
        "--format",
        "json",
    ];
    let ran = bench.run(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let first = &found["modules"][0]["findings"][0];
    assert_eq!(first["path"], "/tmp/install.sh");
    assert_eq!(
        (&first["file"], &first["line"]),
        (&"main.tf".into(), &166.into())
    );
}

#[test]
fn what_runs_showed_is_added_to_what_scripts_say() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    bench
        .run(&reference_cell("sandbox", "module", "tmp_taken", &[]))
        .says(0, &["1 pass"]);
    let registry = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry");
    let registry = registry.display().to_string();
    let audit = ["audit", "reprise/reference", "--registry", &registry];
    // Its scripts put a path together that only a run shows.
    let read = bench.run(&audit);
    read.says(1, &["/tmp/reference-main.sh"]);
    assert!(!read.out.contains("~/.coder-modules"), "{}", read.out);
    let seen = bench.run(&[&audit[..], &["--seen", "runs"]].concat());
    seen.says(1, &["~/.coder-modules", "/tmp/reference-main.sh"]);
}

#[test]
fn a_template_says_what_loses_its_volume() {
    let bench = Bench::open();
    if !modules_usable(&bench) {
        return;
    }
    let audit = |name: &str| {
        let dir = templates().join(name).display().to_string();
        bench.run(&["audit", "template", &dir, "--volume", "terraform_data.home"])
    };
    audit("kept").says(
        0,
        &["terraform_data.home survives all of it; it ignores changes"],
    );
    audit("rewritten").says(
        1,
        &[
            "is lost by: template update that changes the volume",
            "ignore_changes = all",
        ],
    );
    audit("named-by-owner").says(1, &["is lost by: rename, owner renamed"]);
    let dir = templates().join("kept").display().to_string();
    bench
        .run(&["audit", "template", &dir])
        .says(65, &["has no volume that is known as one"]);
    bench
        .run(&["audit", "template", "nowhere"])
        .says(65, &["nowhere is no directory"]);
}
