//! Reprise proves what a coding agent's session is worth after its workspace restarts.
//!
//! Scenario, runner, history, checks, verdicts, reports: the runner records and never judges, checks judge and never touch a
//! workspace, reports draw.

pub mod agent;
pub mod audit;
pub mod cli;
mod gateway_role;
pub mod matrix;
pub mod module;
pub mod record;
mod role;
pub mod runner;
pub mod scenario;
pub mod tools;
pub mod verify;
pub mod workspace;

pub use role::main;
