//! Reprise proves what a coding agent's session is worth after its workspace restarts.

mod role;

pub use role::main;
