//! Where modules come from, and what Terraform makes of them.

mod registry;
mod render;
mod source;
mod texts;
mod variables;

pub use registry::ModuleRegistry;
pub use render::{RenderError, Rendered, Renderer, Transition, Workspace};
pub use source::{Source, SourceError};
pub(crate) use variables::variables;

/// The public registry's repository.
pub const REGISTRY_REPOSITORY: &str = "https://github.com/coder/registry.git";
