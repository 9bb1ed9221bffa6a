//! Where modules come from, and what Terraform makes of them.

mod registry;
mod render;
mod source;
mod variables;

pub use registry::ModuleRegistry;
pub use render::{RenderError, Rendered, Renderer, Transition, Workspace};
pub use source::{Source, SourceError};
pub(crate) use variables::{variables_of_archive, variables_of_tree};

/// The public registry's repository.
pub const REGISTRY_REPOSITORY: &str = "https://github.com/coder/registry.git";
