//! What is said in a session, in words of no protocol.

use serde::{Deserialize, Serialize};

/// One thing said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub(crate) enum Said {
    /// By the user.
    User {
        /// The words.
        text: String,
    },
    /// By the model.
    Model {
        /// The words.
        text: String,
    },
    /// The model asks for a command.
    Call {
        /// The call's id.
        id: String,
        /// The command.
        command: String,
    },
    /// What the command gave.
    Output {
        /// The call's id.
        id: String,
        /// What it wrote.
        text: String,
    },
}

impl Said {
    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }

    pub(crate) fn model(text: impl Into<String>) -> Self {
        Self::Model { text: text.into() }
    }
}
