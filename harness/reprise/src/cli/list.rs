//! `reprise list`.

use reprise_check::CHECKS;
use serde_json::json;

use super::args::{Format, ListArgs, What};
use super::{Exit, Failure};
use crate::scenario::Catalogue;

pub(super) fn main(args: &ListArgs) -> Result<Exit, Failure> {
    let catalogue = match &args.catalogue {
        Some(dir) => Catalogue::of_dir(dir)?,
        None => Catalogue::builtin()?,
    };
    let shows = |what| args.what.is_none_or(|only| only == what);
    match args.format {
        Format::Json => {
            let mut document = json!({});
            if shows(What::Agents) {
                document["agents"] = json!(catalogue.agents().collect::<Vec<_>>());
            }
            if shows(What::Scenarios) {
                document["scenarios"] = json!(catalogue.scenarios().collect::<Vec<_>>());
            }
            if shows(What::Checks) {
                document["checks"] = CHECKS
                    .iter()
                    .map(|check| json!({"name": check.name, "asks": check.asks}))
                    .collect();
            }
            println!("{document:#}");
        }
        Format::Human => {
            let section = |title: &str, rows: Vec<(String, String)>| {
                println!("{title}");
                let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                for (name, what) in rows {
                    println!("  {name:width$}  {what}");
                }
            };
            if shows(What::Agents) {
                let rows = catalogue.agents().map(|agent| {
                    let module = agent
                        .module
                        .as_ref()
                        .map_or("no module".to_owned(), |module| module.source.to_string());
                    (
                        agent.name.to_string(),
                        format!("{} ({}), {module}", agent.title, agent.subject()),
                    )
                });
                section("Agents", rows.collect());
            }
            if shows(What::Scenarios) {
                let rows = catalogue
                    .scenarios()
                    .map(|scenario| (scenario.name.to_string(), scenario.summary.clone()));
                section("Scenarios", rows.collect());
            }
            if shows(What::Checks) {
                let rows = CHECKS
                    .iter()
                    .map(|check| (check.name.to_owned(), check.asks.to_owned()));
                section("Checks", rows.collect());
            }
        }
        Format::Github => {
            // https://docs.github.com/en/actions/how-tos/write-workflows/choose-what-workflows-do/run-job-variations
            let include: Vec<_> = catalogue
                .agents()
                .map(|agent| {
                    let module = agent.module.as_ref().map(|module| &module.source);
                    json!({
                        "agent": agent.name,
                        "title": agent.title,
                        "subject": agent.subject(),
                        "module": module.map(ToString::to_string),
                        "path": module.map(|module| format!("registry/{}/modules/{}", module.namespace, module.name)),
                    })
                })
                .collect();
            println!("{}", json!({ "include": include }));
        }
        Format::Junit => {
            return Err(Failure::message(
                Exit::Usage,
                "a list has no JUnit form; use human or json",
            ));
        }
    }
    Ok(Exit::Pass)
}
