//! What users write in YAML: scenarios and agent profiles, read into typed values with errors that point into the file.

mod catalogue;
mod expand;
mod file;
mod profile;
mod restarts;
mod steps;

pub use catalogue::{Catalogue, CatalogueError};
pub use expand::{ExpandError, Placeholders};
pub(crate) use file::nearest;
pub use file::{FileError, LIMITS, read_list};
pub use profile::{
    AgentProfile, Install, ModuleProfile, NativeCommands, Note, Package, Packages, Registry,
    ShownBy, TaskChannel, Vendor,
};
pub use restarts::{AgentapiFile, RestartKind};
pub use steps::{Conditions, ModelFailure, Repeat, Scenario, StartStage, StepFile, Suite};
