//! An engine that goes wrong on purpose: what an engine's own faults would look like to the checks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reprise_engine::{
    Engine, EngineError, Exec, ExecOutput, Labels, Leftover, Missing, Power, Progress, Route,
    StartSpec, Started, TOOLS_DIR,
};
use reprise_model::{EngineKind, InstanceId, WorkspaceId};

use super::SWITCH;

/// What an engine does wrong at the second start of a workspace, as a command before PID 1. `MARK` is the word that the first
/// start left.
const AT_SECOND_START: &[(&str, &str)] = &[
    ("home_emptied", "find \"$HOME\" -mindepth 1 -delete"),
    ("file_lost", "rm \"$HOME/.profile\""),
    (
        "file_changed",
        "cp -p \"$HOME/.profile\" /tmp/kept; echo >> \"$HOME/.profile\"; touch -r /tmp/kept \"$HOME/.profile\"; rm /tmp/kept",
    ),
    (
        "log_left_behind",
        "rm -f \"$HOME\"/.local/share/reference-agent/*-wal",
    ),
    ("tmp_survives", "printf %s \"$MARK\" > /tmp/.reprise-mark"),
    (
        "process_survives",
        "\"$TOOLS/reprise\" workspace-agent hold-mark \"$MARK\" > /dev/null 2>&1 &",
    ),
];

/// An engine around another.
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    lives: Mutex<HashMap<WorkspaceId, Life>>,
}

#[derive(Default)]
struct Life {
    fault: Option<String>,
    starts: u32,
    /// The gateway's address, once it was started.
    gateway: Option<String>,
    /// The name it goes by, and the instance that it is.
    names: Vec<(InstanceId, InstanceId)>,
}

impl FaultyEngine {
    /// An engine that does what `inner` does, but for the faults that a start's environment asks for.
    #[must_use]
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            inner,
            lives: Mutex::default(),
        }
    }

    fn lives(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Life>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance that goes by a name.
    fn real(&self, name: &InstanceId) -> InstanceId {
        self.lives()
            .values()
            .flat_map(|life| life.names.iter().rev())
            .find(|(known, _)| known == name)
            .map_or_else(|| name.clone(), |(_, real)| real.clone())
    }
}

#[async_trait]
impl Engine for FaultyEngine {
    fn kind(&self) -> EngineKind {
        self.inner.kind()
    }

    async fn version(&self) -> Result<String, EngineError> {
        self.inner.version().await
    }

    async fn prepare(&self, progress: Progress<'_>) -> Result<(), EngineError> {
        self.inner.prepare(progress).await
    }

    async fn create(&self, labels: &Labels, port: Option<u16>) -> Result<Route, EngineError> {
        self.inner.create(labels, port).await
    }

    async fn start(&self, spec: &StartSpec) -> Result<Started, EngineError> {
        let workspace = spec.labels.workspace;
        let mut spec = spec.clone();
        let fault = spec.env.get(SWITCH).cloned();
        let first = {
            let mut lives = self.lives();
            let life = lives.entry(workspace).or_default();
            life.starts += 1;
            life.fault.clone_from(&fault);
            life.gateway = Some(spec.gateway.to_string());
            life.names.first().map(|(name, _)| name.clone())
        };
        let wrong = AT_SECOND_START
            .iter()
            .find(|(name, _)| fault.as_deref() == Some(name));
        if let (Some((_, command)), Some(_)) = (wrong, &first) {
            let mark = format!("MARK=mark-0-{workspace}; TOOLS={TOOLS_DIR}");
            let script = format!("{mark}; {command}\nexec \"$@\"");
            let before = ["/bin/sh", "-c", &script, "sh"].map(ToOwned::to_owned);
            spec.init.splice(0..0, before);
        }
        let mut started = self.inner.start(&spec).await?;
        let name = match first {
            Some(first) if fault.as_deref() == Some("instance_survives") => first,
            _ => started.instance.clone(),
        };
        if let Some(life) = self.lives().get_mut(&workspace) {
            life.names.push((name.clone(), started.instance.clone()));
        }
        started.instance = name;
        Ok(started)
    }

    async fn exec(&self, instance: &InstanceId, exec: &Exec) -> Result<ExecOutput, EngineError> {
        self.inner.exec(&self.real(instance), exec).await
    }

    async fn stop(&self, instance: &InstanceId, grace: Duration) -> Result<bool, EngineError> {
        self.inner.stop(&self.real(instance), grace).await
    }

    async fn kill(&self, instance: &InstanceId) -> Result<(), EngineError> {
        self.inner.kill(&self.real(instance)).await
    }

    async fn delete(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        self.lives().remove(&workspace);
        self.inner.delete(workspace).await
    }

    async fn leftovers(&self) -> Result<Vec<Leftover>, EngineError> {
        self.inner.leftovers().await
    }

    async fn remove(&self, leftover: &Leftover) -> Result<(), EngineError> {
        self.inner.remove(leftover).await
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.inner.close().await
    }

    fn lacks(&self, power: Power) -> Option<Missing> {
        self.inner.lacks(power)
    }

    async fn give_disk(&self, workspace: WorkspaceId, bytes: u64) -> Result<(), EngineError> {
        self.inner.give_disk(workspace, bytes).await
    }

    async fn lose_power(
        &self,
        workspace: WorkspaceId,
        instance: &InstanceId,
    ) -> Result<(), EngineError> {
        self.inner.lose_power(workspace, &self.real(instance)).await
    }

    /// Disturbs every workspace that asks for it: its model is asked something nobody wanted to know.
    async fn restart_node_agent(&self) -> Result<(), EngineError> {
        self.inner.restart_node_agent().await?;
        let disturbed: Vec<(String, InstanceId)> = self
            .lives()
            .values()
            .filter(|life| life.fault.as_deref() == Some("disturbed"))
            .filter_map(|life| Some((life.gateway.clone()?, life.names.last()?.1.clone())))
            .collect();
        for (gateway, instance) in disturbed {
            let url = format!("http://{gateway}/v1/chat/completions");
            let program = format!("{TOOLS_DIR}/reprise");
            let argv = [&program, "workspace-agent", "request", "POST", &url];
            let mut exec = Exec::new(argv);
            exec.stdin = UNASKED.as_bytes().to_vec();
            self.inner.exec(&instance, &exec).await?;
        }
        Ok(())
    }
}

/// A turn that nobody asked for.
const UNASKED: &str = r#"{"model": "m", "messages": [{"role": "user", "content": "Where were we?"}],
    "tools": [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}}]}"#;
