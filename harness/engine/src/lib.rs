//! Where workspaces run.
//!
//! An [`Engine`] keeps a volume for each workspace, keyed by the workspace's id, and starts instances on it: a new
//! world each time, in which only the home is old. It knows no scenario and no agent.

#[cfg(feature = "conformance")]
pub mod conformance;
mod disk;
pub mod docker;
mod error;
pub mod images;
pub mod kubernetes;
pub mod sandbox;
mod spec;

use std::time::Duration;

use async_trait::async_trait;
use reprise_model::{EngineKind, InstanceId, WorkspaceId};

pub use error::{EngineError, Missing, with_causes};
pub use spec::{
    Door, Exec, ExecOutput, InjectedFile, Labels, Leftover, LeftoverKind, Maker, Mount, Power,
    Route, START_FILES, StartSpec, Started, TOOLS_DIR, USER, Uid, init_command, this_host,
};

/// Takes word of what a long act is doing.
pub type Progress<'a> = &'a (dyn for<'text> Fn(&'text str) + Send + Sync);

/// A place where workspaces run.
///
/// Every object an engine makes carries [`Labels`], so that [`Engine::leftovers`] finds what a crash left.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Which engine this is.
    fn kind(&self) -> EngineKind;

    /// Its version, as it reports it.
    ///
    /// # Errors
    /// If it does not answer.
    async fn version(&self) -> Result<String, EngineError>;

    /// Makes what every workspace needs and takes long: an image. Says what it does through `progress`.
    ///
    /// # Errors
    /// If it cannot be made.
    async fn prepare(&self, progress: Progress<'_>) -> Result<(), EngineError>;

    /// Makes the workspace's volume, and the route by which the workspace will reach the gateway.
    ///
    /// `port` is the gateway's inside the workspace; `None` lets the engine choose.
    ///
    /// # Errors
    /// If either cannot be made.
    async fn create(&self, labels: &Labels, port: Option<u16>) -> Result<Route, EngineError>;

    /// Starts a new instance on the workspace's volume.
    ///
    /// # Errors
    /// If it does not start. Nothing of it is left then.
    async fn start(&self, spec: &StartSpec) -> Result<Started, EngineError>;

    /// Runs a command in an instance and waits for its end.
    ///
    /// # Errors
    /// If it could not be run, or the instance ended while it ran. A bad exit code is no error.
    async fn exec(&self, instance: &InstanceId, exec: &Exec) -> Result<ExecOutput, EngineError>;

    /// Asks an instance's PID 1 to end, kills it when `grace` is over, and removes the instance.
    /// Tells whether it ended by itself.
    ///
    /// # Errors
    /// If it could not be ended.
    async fn stop(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError>;

    /// Kills every process of an instance at once and removes the instance.
    ///
    /// # Errors
    /// If it could not be killed.
    async fn kill(&self, instance: &InstanceId) -> Result<(), EngineError>;

    /// Deletes the workspace: its instances, its route, its volume.
    ///
    /// # Errors
    /// If something of it is left.
    async fn delete(&self, workspace: WorkspaceId) -> Result<(), EngineError>;

    /// Everything with Reprise's labels on this engine, whoever made it.
    ///
    /// # Errors
    /// If it cannot be listed.
    async fn leftovers(&self) -> Result<Vec<Leftover>, EngineError>;

    /// Removes one leftover.
    ///
    /// # Errors
    /// If it is still there afterwards.
    async fn remove(&self, leftover: &Leftover) -> Result<(), EngineError>;

    /// Removes what belongs to the run and to no workspace of it.
    ///
    /// # Errors
    /// If something of it is left.
    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// What is missing for a scenario that needs `power`; nothing if it has it.
    fn lacks(&self, power: Power) -> Option<Missing> {
        match power {
            // Nothing stands between this engine and its workspaces that could be started again: they are undisturbed.
            Power::RestartNodeAgent => None,
            Power::GrowVolume => Some(Missing {
                what: format!("volumes of {} have no size", self.kind()),
                remedy: "use --engine kubernetes".to_owned(),
            }),
            Power::OwnDisk => disk::lacks(),
        }
    }

    /// Puts the home of a workspace that was not started yet on a disk of its own, of `bytes`.
    ///
    /// # Errors
    /// If it cannot be made.
    async fn give_disk(&self, _workspace: WorkspaceId, _bytes: u64) -> Result<(), EngineError> {
        match self.lacks(Power::OwnDisk) {
            Some(missing) => Err(missing.into()),
            None => Ok(()),
        }
    }

    /// Ends the instance as a node's loss of power does: what has not reached its disk is gone.
    ///
    /// # Errors
    /// If its home is on no disk of its own, or it could not be ended.
    async fn lose_power(
        &self,
        _workspace: WorkspaceId,
        _instance: &InstanceId,
    ) -> Result<(), EngineError> {
        match self.lacks(Power::OwnDisk) {
            Some(missing) => Err(missing.into()),
            None => Ok(()),
        }
    }

    /// Has the instance moved off its node, as an administrator's drain does; where there are no nodes, it is stopped.
    /// Tells whether it ended by itself.
    ///
    /// # Errors
    /// If it could not be ended.
    async fn evict(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        self.stop(instance, grace).await
    }

    /// Kills the instance's processes. Tells whether the engine starts them again by itself, in the same instance; where it
    /// does not, the instance is gone. It needs [`StartSpec::in_place`].
    ///
    /// # Errors
    /// If it could not be killed.
    async fn kill_container(&self, instance: &InstanceId) -> Result<bool, EngineError> {
        self.kill(instance).await?;
        Ok(false)
    }

    /// Waits for an instance that [`Engine::kill_container`] said would come again.
    ///
    /// # Errors
    /// If it does not come.
    async fn started_again(&self, instance: &InstanceId) -> Result<Started, EngineError> {
        Err(EngineError::NotRunning(instance.to_string()))
    }

    /// Has PID 1 take memory until the kernel ends it, and removes the instance; where memory has no limit, it is killed.
    ///
    /// # Errors
    /// If it could not be ended.
    async fn exhaust_memory(&self, instance: &InstanceId) -> Result<(), EngineError> {
        self.kill(instance).await
    }

    /// Ends what runs workspaces on their node, and starts it again. Workspaces must not notice.
    ///
    /// # Errors
    /// If it does not come up again.
    async fn restart_node_agent(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Makes the workspace's volume larger.
    ///
    /// # Errors
    /// If it does not grow.
    async fn grow_volume(&self, _workspace: WorkspaceId) -> Result<(), EngineError> {
        match self.lacks(Power::GrowVolume) {
            Some(missing) => Err(missing.into()),
            None => Ok(()),
        }
    }
}
