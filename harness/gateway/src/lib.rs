//! The model an agent talks to in a workspace, and the Coder control plane beside it.
//!
//! The gateway answers by a script and records what it was asked; it judges nothing. Each wire protocol is one file that
//! turns a request into a [`Turn`] and an [`Answer`] into that protocol's reply.

mod anthropic_messages;
mod control;
pub mod far;
mod gemini_content;
mod mask;
mod openai_chat;
mod openai_responses;
mod protocol;
mod script;
mod server;
mod wire;

pub use control::{ControlPlane, shown};
pub use mask::Masker;
pub use protocol::{Answer, Malformed, Turn};
pub use script::HELD_COMMAND;
pub use server::{Gateway, ModelFault};
pub use wire::{Sink, WireLog};
