//! One job's scheduler while this node leads: what all parts of the engine share.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tripod_gateway::{Consistency, Gateway, Watch};
use tripod_state::ids::{JobId, NodeId, Term};
use tripod_state::ray::ids::StoreId;
use tripod_state::ray::{self, Answer, Decision, Ray};
use tripod_state::{Command, DomainId, Scope, State, Topic};

use super::Patience;
use super::clerk::Finished;
use super::links::Links;
use crate::pulse::PeerMemory;

/// Cheap to clone; one for every job that is led.
#[derive(Clone)]
pub(super) struct LeaderTerm {
    pub(super) gateway: Gateway,
    pub(super) job: JobId,
    pub(super) term: Term,
    /// This node.
    pub(super) node: NodeId,
    pub(super) memory: Arc<PeerMemory>,
    pub(super) links: Links,
    pub(super) patience: Patience,
    pub(super) finished: mpsc::UnboundedSender<Finished>,
    pub(super) shaken: Arc<Shaken>,
}

/// Stores whose connection broke: what they hold may not be what the state says.
#[derive(Default)]
pub(super) struct Shaken {
    stores: Mutex<BTreeSet<StoreId>>,
    bell: Notify,
}

impl LeaderTerm {
    /// Listens to everything that changes the job's scheduler.
    pub(super) fn watch(&self) -> Watch {
        self.gateway.watch(Topic::Domain(DomainId::Ray, self.job))
    }

    /// Looks at the job's scheduler in this node's memory, which is the leader's. `None`: it has none any more.
    pub(super) async fn look<T>(&self, look: impl FnOnce(&Ray) -> T + Send) -> Option<T> {
        self.look_around(|_, ray| look(ray)).await
    }

    /// [`Self::look`], at the rest of the state too.
    pub(super) async fn look_around<T>(&self, look: impl FnOnce(&State, &Ray) -> T + Send) -> Option<T> {
        let look = |state: &State| state.ray(self.job).map(|ray| look(state, ray));
        // A local read has no outage.
        self.gateway.read(Consistency::Local, look).await.ok().flatten()
    }

    /// Puts a decision into the log. `None`: it is not known to have taken effect; the reason was logged, and what
    /// the decision was about is looked at again.
    pub(super) async fn decide(&self, decision: Decision) -> Option<Answer> {
        let scope = Scope { job: self.job, service: None };
        let command = Command::Ray(ray::Command::Lead { scope, decision });
        match self.gateway.submit(command).await {
            Ok(Ok(tripod_state::Answer::Ray(answer))) => Some(answer),
            Ok(Ok(_)) => Some(Answer::Done),
            Ok(Err(fault)) => {
                tracing::info!(job = self.job.0, ?fault, "a decision of the leader was refused");
                None
            }
            Err(outage) => {
                tracing::info!(job = self.job.0, %outage, "a decision of the leader is not in the log");
                None
            }
        }
    }

    /// Tells the clerk. It may be gone, at the end of the term.
    pub(super) fn finish(&self, finished: Finished) {
        drop(self.finished.send(finished));
    }
}

impl Shaken {
    pub(super) fn note(&self, store: StoreId) {
        self.stores.lock().insert(store);
        self.bell.notify_one();
    }

    /// Waits until there are some.
    pub(super) async fn some(&self) {
        loop {
            if !self.stores.lock().is_empty() {
                return;
            }
            self.bell.notified().await;
        }
    }

    pub(super) fn take(&self) -> BTreeSet<StoreId> {
        std::mem::take(&mut *self.stores.lock())
    }
}
