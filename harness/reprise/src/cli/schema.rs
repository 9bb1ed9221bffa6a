//! `reprise schema`.

use schemars::schema_for;

use super::Exit;
use super::args::{SchemaArgs, SchemaOf};
use crate::scenario::{AgentProfile, Scenario};
use crate::verify::Fault;

pub(super) fn main(args: &SchemaArgs) -> Exit {
    println!("{}", text(args.of));
    Exit::Pass
}

fn text(of: SchemaOf) -> String {
    let schema = match of {
        SchemaOf::Scenario => schema_for!(Scenario),
        SchemaOf::Agent => schema_for!(AgentProfile),
        SchemaOf::Faults => schema_for!(Vec<Fault>),
    };
    serde_json::to_string_pretty(&schema).expect("a schema is JSON")
}
