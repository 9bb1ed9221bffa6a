//! Agents played by one small program: the reference agent, which does everything right, and stand-ins for the agents of the
//! compatibility page, each with its documented command line and session files.

mod chat;
mod command_line;
mod conversation;
mod fault;
mod model;
mod personality;
mod play;
mod reference;
mod retry;
mod sessions;
mod shell;
mod store;
mod terminal;
mod turn;

pub use play::{main as play, plays};
pub use reference::main as reference_main;
