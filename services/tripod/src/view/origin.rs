//! Where the process of a task comes from.

use serde::Serialize;
use tripod_client::wire;

/// What is known of it besides its host. A contract, as all of `job show`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct OriginView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    client: String,
    /// The build of the agent by which it came.
    #[serde(skip_serializing_if = "String::is_empty")]
    agent: String,
    /// Who started it, and as which of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    launcher: String,
}

impl OriginView {
    /// `None`: nobody has said anything but a host.
    pub(super) fn of(origin: &wire::TaskOrigin) -> Option<Self> {
        let wire::TaskOrigin { host: _, pid, client, agent, launcher } = origin.clone();
        let view = Self { pid: (pid != 0).then_some(pid), client, agent, launcher };
        (!view.words().is_empty()).then_some(view)
    }

    /// In words: `pid 4711, Slurm 5, grpc-c++/1.66.0, by tripod 0.1.0`.
    pub(super) fn words(&self) -> String {
        let pid = self.pid.map(|pid| format!("pid {pid}"));
        let by = (!self.agent.is_empty()).then(|| format!("by {}", self.agent));
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let words = [pid, text(&self.launcher), text(&self.client), by];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
