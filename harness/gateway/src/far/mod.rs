//! A gateway that answers elsewhere: a [`Host`] beside the workspaces serves many of them, and a link to it carries orders
//! one way and the wire's lines the other. Both ends speak lines of JSON over any stream, such as an exec's.
//!
//! A link may break at any time. The host keeps each line until it is acknowledged, the other end each order until it is
//! done; after a new connection both go on where they were.

mod host;
mod link;

use reprise_model::{NonceBook, SnapshotFault, TurnRule, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ModelFault;

pub use host::{DEPOT_PORT, Host, HostError, SHUT_PORT, WIRE_PORT, greeting};
pub use link::{Dial, Stream};
pub(crate) use link::{Link, Remote};

/// How a connection to the host's socket begins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// A link for one workspace: orders and reports follow.
    Link {
        /// Whose.
        workspace: WorkspaceId,
        /// Its nonces.
        book: Box<NonceBook>,
        /// How its agent's turns are told from side requests.
        rule: TurnRule,
        /// How many of the wire's lines this end has.
        lines: usize,
    },
    /// Something for workspaces to fetch: its bytes follow, and the end of the stream ends them.
    Put {
        /// What it is called.
        name: String,
        /// How many bytes.
        bytes: u64,
    },
}

/// What a link asks for, numbered from 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Numbered {
    number: u64,
    /// How many of the wire's lines the owner has: the host need not keep them.
    have: usize,
    order: Order,
}

/// What a host does for a workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// Requests belong to this start of the workspace from now on.
    Epoch(u32),
    /// The agent's next turns go wrong, one fault each.
    Break(Vec<ModelFault>),
    /// Log snapshots go wrong, or right again.
    Snapshots(Option<SnapshotFault>),
    /// Nothing: its answer comes after every line that is there.
    Flush,
}

/// What a host tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report<'a> {
    /// An order was carried out.
    Done {
        /// Which.
        number: u64,
        /// The host's clock, microseconds.
        us: u64,
    },
    /// A line of the wire, as `wire.jsonl` has it but for its times, which are the host's.
    Line {
        /// Its number, from 0.
        number: usize,
        /// The line.
        #[serde(borrow)]
        line: &'a RawValue,
    },
}
