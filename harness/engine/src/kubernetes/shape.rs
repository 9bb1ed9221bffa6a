//! What a user decides of a cluster's objects.

use std::collections::BTreeMap;
use std::time::Duration;

/// What a user decides of the objects.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The volumes' storage class; the cluster's default if `None`.
    pub storage_class: Option<String>,
    /// How large a volume is.
    pub storage: String,
    /// The registry that the cluster pulls Reprise's images from; the nodes must have them if `None`.
    pub registry: Option<String>,
    /// Processor time and memory that a workspace asks for.
    pub requests: BTreeMap<String, String>,
    /// And the most that it gets.
    pub limits: BTreeMap<String, String>,
    /// How long a pod may take to start: an image may have to be pulled, a node to be added, another workspace to make
    /// place.
    pub patience: Duration,
}

impl Default for Shape {
    fn default() -> Self {
        let map = |cpu: &str, memory: &str| {
            BTreeMap::from([
                ("cpu".to_owned(), cpu.to_owned()),
                ("memory".to_owned(), memory.to_owned()),
            ])
        };
        Self {
            storage_class: None,
            storage: "1Gi".to_owned(),
            registry: None,
            // An agent is idle for most of a scenario, and needs a processor while it starts.
            requests: map("20m", "128Mi"),
            limits: map("2", "2Gi"),
            patience: Duration::from_secs(240),
        }
    }
}
