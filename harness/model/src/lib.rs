//! What Reprise records and what it concludes: the types every other room shares.
//!
//! The runner writes a [`History`]; checks turn it into [`Verdict`]s; reports draw both. Nothing here
//! touches a disk, a clock or a network.

mod act;
mod agent_protocol;
mod audit;
mod cell;
mod claim;
mod detection;
mod event;
mod history;
mod ids;
mod matrix;
mod nonce;
mod outline;
mod snapshot;
mod verdict;
mod wire;

pub use act::{Act, Cause, HoldPoint, SnapshotFault};
pub use agent_protocol::{
    AgentEvent, Damage, DamageKind, Errand, InitSpec, LogStream, Place, Script, ScriptId,
    ScriptPhase,
};
pub use audit::{Audit, AuditFinding, Collision, ModuleAudit, Need, VolumeAudit};
pub use cell::{Cell, EngineKind, Layer, ModuleRef, ModuleRefError, Subject};
pub use claim::{Claim, Level};
pub use detection::{Detection, Verification, fired};
pub use event::Event;
pub use history::{
    Closing, FORMAT, FormatVersion, FormatVersionError, Header, History, Observation, OpId,
    Outcome, Record, Stamp, Step,
};
pub use ids::{AgentName, CheckName, InstanceId, NameError, RunId, ScenarioName, WorkspaceId};
pub use matrix::{Difference, MatrixRow, NoteFinding, Results, Standing, Storage};
pub use nonce::{Mark, NonceBook};
pub use outline::outline;
pub use snapshot::{
    ByteSize, DatabaseFacts, FileKind, Manifest, ManifestEntry, Moment, Sidecar, SidecarFacts,
    Snapshot, TableRows,
};
pub use verdict::{CellResult, Evidence, Judgement, LogTail, NotMeasured, Source, Verdict};
pub use wire::{
    Class, Exchange, Message, Protocol, Reply, ReplyEnd, Request, Role, TurnRule, WireLine,
};
