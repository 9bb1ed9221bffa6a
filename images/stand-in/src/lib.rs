//! Agents played by one small program. So far the reference agent, which does everything right.

mod chat;
mod reference;
mod store;

pub use reference::main as reference_main;
