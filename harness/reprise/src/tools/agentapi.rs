//! AgentAPI, which stands between Coder and an agent's terminal.
//!
//! Its project publishes no checksums beside its release binaries, so none is pinned and none is downloaded: it is built from
//! the commit that a release was made of, which its hash pins.

use std::path::Path;

use reprise_engine::Progress;
use semver::Version;
use tokio::process::Command;

use super::command::run;
use super::{Chain, Tool, Tools, Tried, go, on_path};

/// The commits of releases, by version (<https://github.com/coder/agentapi/releases>).
const COMMITS: [(&str, &str); 1] = [("0.12.1", "c8502fbffb19c5ffc0041ce34f67ed8cd2f58292")];

/// Versions from here on are not to be had from the Go module proxy, which refuses what the module's authors withdrew.
const LAST_ON_PROXY: Version = Version::new(0, 11, 8);

async fn version(program: &Path) -> Option<Version> {
    let printed = run(Command::new(program).arg("--version")).await.ok()?;
    printed
        .split_whitespace()
        .find_map(|word| Version::parse(word.trim_start_matches('v')).ok())
}

pub(super) async fn find(
    tools: &Tools,
    versions: &[Version],
    progress: Progress<'_>,
) -> Result<Tool, Tried> {
    let wanted: Vec<String> = versions.iter().map(ToString::to_string).collect();
    let mut chain = Chain::of(format!("AgentAPI {}", wanted.join(" or ")));
    let found = match on_path("agentapi") {
        Some(path) => version(&path).await.map(|version| (path, version)),
        None => None,
    };
    for wanted in versions {
        match &found {
            Some((path, version)) if version == wanted => {
                return Ok(Tool {
                    path: path.clone(),
                    version: version.to_string(),
                    from: "agentapi on PATH".to_owned(),
                });
            }
            Some((_, version)) => chain.says("PATH", format!("it is {version}, not {wanted}")),
            None => chain.says("PATH", "no agentapi"),
        }
        let entry = format!("agentapi-{wanted}");
        let cached = tools.cache.entry(&entry);
        if cached.is_file() {
            return Ok(Tool {
                path: cached,
                version: wanted.to_string(),
                from: "from the cache".to_owned(),
            });
        }
        chain.says("cache", format!("no {wanted}"));
        if !tools.obtain {
            continue;
        }
        chain.says("release", format!("no checksum is published for {wanted}"));
        progress(&format!("building AgentAPI {wanted} with Go"));
        let built = match build_source(tools, wanted, &entry).await {
            Err(why) => {
                chain.says("source", why);
                build_proxy(tools, wanted, &entry).await
            }
            built => built,
        };
        match built {
            Ok(tool) => return Ok(tool),
            Err(why) => chain.says("Go", why),
        }
    }
    Err(chain.broken())
}

/// From the sources at the release's commit, or in a source that rewrote history at its tag.
async fn build_source(tools: &Tools, wanted: &Version, entry: &str) -> Result<Tool, String> {
    if on_path("go").is_none() {
        return Err("the Go toolchain is not installed".to_owned());
    }
    let source = &tools.agentapi_source;
    let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
    let tree = workshop.path().join("source");
    run(Command::new("git")
        .args(["clone", "--quiet", "--no-checkout", source])
        .arg(&tree)
        .env("GIT_TERMINAL_PROMPT", "0"))
    .await
    .map_err(|error| error.to_string())?;
    let pinned = COMMITS
        .iter()
        .find(|(version, _)| Version::parse(version).is_ok_and(|version| version == *wanted))
        .map(|(_, commit)| (*commit).to_owned());
    let tag = format!("v{wanted}");
    // A source of the user's own naming is trusted with its tags; the public one only with the pinned commit.
    let revision = match pinned {
        Some(commit) if *source == super::AGENTAPI_REPOSITORY => commit,
        None if *source == super::AGENTAPI_REPOSITORY => {
            return Err(format!("no commit is pinned for {wanted}"));
        }
        _ => tag,
    };
    run(Command::new("git")
        .arg("-C")
        .arg(&tree)
        .args(["checkout", "--quiet", "--detach", &revision]))
    .await
    .map_err(|error| error.to_string())?;
    let program = workshop.path().join("agentapi");
    go::build_tree(&tree, &program)
        .await
        .map_err(|error| error.to_string())?;
    keep(tools, &program, wanted, entry, "built from its sources")
}

async fn build_proxy(tools: &Tools, wanted: &Version, entry: &str) -> Result<Tool, String> {
    if *wanted > LAST_ON_PROXY {
        return Err(format!("the Go module proxy has no {wanted}"));
    }
    let workshop = tools.cache.workshop().map_err(|error| error.to_string())?;
    let program = workshop.path().join("agentapi");
    let module = "github.com/coder/agentapi";
    let version = format!("v{wanted}");
    go::build_release(module, &version, module, workshop.path(), &program)
        .await
        .map_err(|error| error.to_string())?;
    keep(
        tools,
        &program,
        wanted,
        entry,
        "built from the Go module proxy",
    )
}

fn keep(
    tools: &Tools,
    program: &Path,
    version: &Version,
    entry: &str,
    from: &str,
) -> Result<Tool, String> {
    let path = tools
        .cache
        .keep(program, entry)
        .map_err(|error| error.to_string())?;
    Ok(Tool {
        path,
        version: version.to_string(),
        from: from.to_owned(),
    })
}
