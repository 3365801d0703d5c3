//! Calls that wait and watch: they look at this node's state again whenever it changes. Nothing of it is replicated, and
//! whoever does not read what it watches costs one message.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::Status;
use tripod_gateway::{Consistency, Watch};
use tripod_proto::mars::v1 as pb;
use tripod_state::{DomainId, Scope, Topic};

use crate::cluster::versioned;
use crate::domain::{self, GraphKind, GraphName, GraphView, MutableState, MutableView};
use crate::fields::Fields;
use crate::front::Front;
use crate::limits::WATCH_PAUSE;
use crate::{encode, status};

/// Looks of one wait that follow on every change. Those after them keep a pause, so that a crowd that waits for long does not
/// look after every command of a busy job.
const PROMPT_LOOKS: u32 = 16;
const PAUSE: Duration = Duration::from_millis(2);

impl Front {
    /// Listens to whatever changes of a job's sessions. To be created before the first look.
    pub(crate) fn changes(&self, scope: Scope) -> Watch {
        self.gateway().watch(Topic::Domain(DomainId::Mars, scope.job))
    }

    /// The graph when it has ended, or when the time is over.
    pub(crate) async fn wait_graph(
        &self,
        scope: Scope,
        graph: &GraphName,
        hold: Duration,
    ) -> Result<GraphView, Status> {
        let until = Instant::now() + hold;
        let mut changes = self.changes(scope);
        // Everything that was acknowledged before the call is seen by all looks.
        let mut view = self.graph(Consistency::Linearizable, scope, graph).await?;
        for look in 0_u32.. {
            if view.state.is_terminal() || Instant::now() >= until {
                break;
            }
            next_look(&mut changes, look, until).await;
            view = self.graph(Consistency::Local, scope, graph).await?;
        }
        Ok(view)
    }

    /// The mutable when it is not being sealed any more, or when the time is over.
    pub(crate) async fn wait_sealed(
        &self,
        mut changes: Watch,
        scope: Scope,
        session: &str,
        name: &str,
        hold: Duration,
    ) -> Result<MutableView, Status> {
        let until = Instant::now() + hold;
        let mut freshness = Consistency::Linearizable;
        for look in 0_u32.. {
            let found = self.read(freshness, |state| domain::mutable(state, scope, session, name)).await?;
            let view = found.map_err(|fault| status::of_fault(&fault))?;
            if view.state != MutableState::Sealing || Instant::now() >= until {
                return Ok(view);
            }
            freshness = Consistency::Local;
            next_look(&mut changes, look, until).await;
        }
        unreachable!("there are more looks than seconds")
    }

    async fn graph(
        &self,
        freshness: Consistency,
        scope: Scope,
        graph: &GraphName,
    ) -> Result<GraphView, Status> {
        let found = self.read(freshness, |state| domain::graph(state, scope, graph)).await?;
        found.map_err(|fault| status::of_fault(&fault))
    }

    /// How a graph is, and again when that has changed, until it has ended.
    ///
    /// # Errors
    /// There is no such graph of either kind.
    pub(crate) async fn watch_graph(
        self,
        scope: Scope,
        message: pb::WatchGraphRequest,
    ) -> Result<impl Stream<Item = Result<pb::GetGraphInfoResponse, Status>> + Send, Status> {
        let changes = self.changes(scope);
        let named =
            |kind| GraphName { session: message.session_id.clone(), kind, key: message.graph_key.clone() };
        let (tileables, chunks) = (named(GraphKind::Tileable), named(GraphKind::Chunk));
        let look = |state: &tripod_state::State| match domain::graph(state, scope, &tileables) {
            Ok(_) => Ok(tileables.clone()),
            // A chunk graph of that key may be meant; if there is none, the first word counts.
            Err(fault) => domain::graph(state, scope, &chunks).map(|_| chunks.clone()).map_err(|_| fault),
        };
        let graph = self.read(Consistency::Linearizable, look).await?;
        let graph = graph.map_err(|fault| status::of_fault(&fault))?;
        let watched = WatchedGraph { front: self, scope, graph, changes, told: None, rest: Instant::now() };
        Ok(stream::unfold(Some(watched), |watched| async move {
            let mut watched = watched?;
            let told = watched.next().await;
            let goes_on = told.as_ref().is_ok_and(|told| !is_over(told));
            Some((told, goes_on.then_some(watched)))
        }))
    }

    /// A job's workers if they are others than those of that version, and again when they have changed.
    pub(crate) fn watch_workers(
        self,
        scope: Scope,
        version: u64,
    ) -> impl Stream<Item = Result<pb::WorkerChanges, Status>> + Send {
        let changes = self.gateway().watch(Topic::Domain(DomainId::Ray, scope.job));
        let watched =
            WatchedWorkers { front: self, scope, changes, version, is_begun: false, rest: Instant::now() };
        stream::unfold(Some(watched), |watched| async move {
            let mut watched = watched?;
            let told = watched.next().await;
            let goes_on = told.is_ok();
            Some((told, goes_on.then_some(watched)))
        })
    }
}

/// Waits for a change, or until the time is over.
async fn next_look(changes: &mut Watch, look: u32, until: Instant) {
    // That time is over is seen by whoever looks.
    _ = timeout_at(until, changes.changed()).await;
    if look > PROMPT_LOOKS {
        sleep_until((Instant::now() + PAUSE).min(until)).await;
    }
}

fn is_over(told: &pb::GetGraphInfoResponse) -> bool {
    let state = told.info.as_ref().map_or(pb::GraphState::Unspecified, pb::GraphInfo::state);
    matches!(state, pb::GraphState::Succeeded | pb::GraphState::Failed | pb::GraphState::Cancelled)
}

struct WatchedGraph {
    front: Front,
    scope: Scope,
    graph: GraphName,
    changes: Watch,
    told: Option<pb::GraphInfo>,
    /// Before that nothing more is told.
    rest: Instant,
}

impl WatchedGraph {
    /// How it is now, when that is something else than what was told.
    async fn next(&mut self) -> Result<pb::GetGraphInfoResponse, Status> {
        loop {
            if self.told.is_some() {
                self.changes.changed().await;
                sleep_until(self.rest).await;
            }
            let view = self.front.graph(Consistency::Local, self.scope, &self.graph).await?;
            let info = encode::graph(&view, Vec::new(), &Fields::All);
            if self.told.as_ref() != Some(&info) {
                self.told = Some(info.clone());
                self.rest = Instant::now() + WATCH_PAUSE;
                return Ok(pb::GetGraphInfoResponse { header: Some(self.front.header()), info: Some(info) });
            }
        }
    }
}

struct WatchedWorkers {
    front: Front,
    scope: Scope,
    changes: Watch,
    /// Of the list that was told.
    version: u64,
    is_begun: bool,
    rest: Instant,
}

impl WatchedWorkers {
    async fn next(&mut self) -> Result<pb::WorkerChanges, Status> {
        loop {
            let freshness = if self.is_begun {
                self.changes.changed().await;
                sleep_until(self.rest).await;
                Consistency::Local
            } else {
                self.is_begun = true;
                Consistency::Linearizable
            };
            let all = self.front.workers(self.scope.job, freshness).await?;
            let (version, changed, removed) = versioned(&all);
            if version != self.version {
                self.version = version;
                self.rest = Instant::now() + WATCH_PAUSE;
                return Ok(pb::WorkerChanges {
                    header: Some(self.front.header()),
                    version,
                    changed,
                    removed,
                });
            }
        }
    }
}
