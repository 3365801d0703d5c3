//! A fault that was injected while the clients worked.

use serde::{Deserialize, Serialize};

use super::Micros;

/// When and how the cluster was disturbed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind, as reports count it, such as `kill-leader`.
    pub kind: String,
    /// What was hit, for people.
    pub target: String,
    pub began: Micros,
    /// When it was healed; `None`: it heals by itself or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Micros>,
    /// How long it was to last, by the plan of the run; `None`: nobody planned that. Healing takes its time besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Micros>,
}
