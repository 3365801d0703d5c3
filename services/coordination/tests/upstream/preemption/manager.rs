//! One task's side of the agreement.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::client::Agent;

/// The key by which a task tells that it will be preempted.
const NOTICE: &str = "RECEIVED_PREEMPTION_NOTICE";
/// Where each task stores how far it is.
pub(super) const DIRECTORY: &str = "PREEMPTION_CURRENT_COUNTER/";
const BARRIER: &str = "PREEMPTION_SYNC_BARRIER";
const BARRIER_TIMEOUT: Duration = Duration::from_secs(180);
/// How long before a task is preempted they begin to agree.
const AHEAD: Duration = Duration::from_secs(15 * 60);

/// What became of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All stop at that step.
    StopAt(i64),
    /// They could not agree.
    Failed(Code),
    /// It was shut down, or its agent was.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Listening,
    /// A notice has come.
    Noticed,
    Over(Outcome),
}

/// How far the task is, which stands still while they agree.
#[derive(Debug, Default)]
struct Steps {
    current: i64,
    stop_at: Option<i64>,
}

pub(super) struct Manager {
    agent: Arc<Agent>,
    steps: Arc<Mutex<Steps>>,
    stage: watch::Sender<Stage>,
    listening: JoinHandle<()>,
}

impl Manager {
    /// Listens for a notice from now on.
    pub(super) fn start(agent: Agent) -> Self {
        let (agent, steps, stage) =
            (Arc::new(agent), Arc::new(Mutex::default()), watch::Sender::new(Stage::Listening));
        let (listener, counted, told) = (Arc::clone(&agent), Arc::clone(&steps), stage.clone());
        let listening = tokio::spawn(async move {
            let outcome = match agree(&listener, &counted, &told).await {
                Ok(step) => Outcome::StopAt(step),
                Err(status) if status.code() == Code::Cancelled => Outcome::Ended,
                Err(status) => Outcome::Failed(status.code()),
            };
            told.send_replace(Stage::Over(outcome));
        });
        Self { agent, steps, stage, listening }
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The task will be preempted in so long.
    pub(super) async fn notify(&self, within: Duration) -> Result<(), Status> {
        self.agent.insert(NOTICE, &within.as_secs().to_string()).await
    }

    /// Makes a step, and tells whether it is the one to stop at.
    pub(super) async fn reached_sync_point(&self, step: i64) -> bool {
        let mut steps = self.steps.lock().await;
        steps.current = step;
        steps.stop_at == Some(step)
    }

    /// Stops listening; nobody is told.
    pub(super) fn shut_down(&self) {
        self.listening.abort();
        self.stage.send_if_modified(|stage| match stage {
            Stage::Over(_) => false,
            open => {
                *open = Stage::Over(Outcome::Ended);
                true
            }
        });
    }

    /// Waits until a notice has come.
    pub(super) async fn noticed(&self) {
        self.at(|stage| stage != Stage::Listening).await;
    }

    /// Waits until it is over.
    pub(super) async fn outcome(&self) -> Outcome {
        match self.at(|stage| matches!(stage, Stage::Over(_))).await {
            Stage::Over(outcome) => outcome,
            open => unreachable!("waited until it was over: {open:?}"),
        }
    }

    async fn at(&self, is: impl Fn(Stage) -> bool) -> Stage {
        let mut stage = self.stage.subscribe();
        let reached = tripod_wait::within("a manager's stage", stage.wait_for(|stage| is(*stage))).await;
        *reached.expect("the manager is here")
    }
}

/// Waits for a notice, and agrees with the other tasks on a step.
async fn agree(agent: &Agent, steps: &Mutex<Steps>, stage: &watch::Sender<Stage>) -> Result<i64, Status> {
    let notice = agent.get(NOTICE).await?;
    stage.send_replace(Stage::Noticed);
    let notice = String::from_utf8(notice.into()).expect("a text");
    let within = Duration::from_secs(notice.parse().expect("seconds"));
    tokio::time::sleep(within.saturating_sub(AHEAD)).await;

    let mut steps = steps.lock().await;
    let key = format!("{DIRECTORY}{}", agent.task());
    agent.insert(&key, &steps.current.to_string()).await?;
    agent.wait_at_barrier(BARRIER, BARRIER_TIMEOUT, &[]).await?;
    let counters = agent.directory(DIRECTORY).await?;
    let furthest = counters.iter().map(|(_, step)| step.parse::<i64>().expect("a number")).max();
    let stop_at = furthest.expect("at least our own") + 1;
    steps.stop_at = Some(stop_at);
    Ok(stop_at)
}
