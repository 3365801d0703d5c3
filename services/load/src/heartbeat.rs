//! All tasks of a job beat as fast as they are answered.

use tonic::Status;

use crate::closed_loop::{self, Plan};
use crate::report::{Report, Setting};
use crate::task::{self, Task};

/// Measures heartbeats of a job of `clients` tasks that nobody has registered for yet; `system` is a
/// name for the report. Each task has its own connection, to the `addresses` in turn.
///
/// # Errors
/// The tasks cannot register or leave.
pub async fn run(system: &str, addresses: &[String], clients: usize, plan: Plan) -> anyhow::Result<Report> {
    let tasks = task::register_all(addresses, clients).await?;
    let members = tasks.into_iter().map(Member).collect();
    let (outcome, members) = closed_loop::run(plan, members).await?;
    task::shut_down_all(members.into_iter().map(|member| member.0).collect()).await?;
    let setting = Setting {
        op: "heartbeat",
        system,
        clients,
        connections: clients,
        target: if addresses.len() == 1 { "one node" } else { "any" },
        value_bytes: None,
    };
    Ok(Report::new(setting, &outcome))
}

struct Member(Task);

impl closed_loop::Client for Member {
    async fn step(&mut self) -> Result<(), Status> {
        self.0.heartbeat().await
    }
}
