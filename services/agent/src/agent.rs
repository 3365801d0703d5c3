//! From a configuration to a running agent.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::metadata::{Binary, MetadataValue};
use tripod_local::Connections;
use tripod_port::{Budget, Contact, Listener, PortResources, Served, Stop, Stopping, serve_through};
use tripod_proto::tripod::v1::TaskOrigin;

use crate::beats::{Beats, Teller};
use crate::config::{AgentConfig, Listen};
use crate::error::Error;
use crate::forward::Forwarder;
use crate::front::Front;
use crate::incoming::Incoming;
use crate::job::AgentJob;
use crate::listen::{self, Opened};
use crate::meters::Meters;
use crate::mindspore::Relay;
use crate::sessions::Sessions;
use crate::status::StatusHandle;
use crate::upstream::{Dial, Reach, Supervisor, Upstream};

/// An agent whose places are open and which does not serve yet.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    opened: Vec<Opened>,
    /// For nodes of MindSpore.
    mindspore: Option<Opened>,
    upstream: Upstream,
    supervisor: Supervisor,
    meters: Arc<Meters>,
    sessions: Arc<Sessions>,
    memory: Budget,
    lives: mpsc::Sender<u64>,
    told_lives: Option<mpsc::Receiver<u64>>,
    origin: Option<HeaderValue>,
}

/// Lives that registered and of which nobody has taken notice yet, at most.
const LIVES_UNTOLD_MAX: usize = 64;

impl Agent {
    /// Checks the configuration and opens the places to listen at. Needs no cluster.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Listen`].
    pub async fn open(config: AgentConfig) -> Result<Self, Error> {
        config.check()?;
        let mut opened = Vec::with_capacity(config.listen.len());
        for place in &config.listen {
            opened.push(listen::open(place, config.allow_remote, &config.socket_uids).await?);
        }
        let mindspore = match &config.mindspore {
            Some(address) => Some(listen::open_for_mindspore(address, config.allow_remote).await?),
            None => None,
        };
        Ok(Self { mindspore, ..Self::of(config, opened, Reach::default()) })
    }

    /// [`Self::open`] for simulations: its first place is what `listener` accepts, there is no other, and it reaches
    /// nodes by `dial`.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn within(config: AgentConfig, listener: Listener, dial: Dial) -> Result<Self, Error> {
        config.check()?;
        let opened = Opened { listener, place: config.listen[0].clone() };
        Ok(Self::of(config, vec![opened], Reach(Some(dial))))
    }

    /// Serves nodes of MindSpore at what `listener` accepts: for simulations.
    #[must_use]
    pub fn with_mindspore(self, listener: Listener) -> Self {
        let place = Listen::Tcp(self.config.mindspore.clone().unwrap_or_default());
        Self { mindspore: Some(Opened { listener, place }), ..self }
    }

    fn of(config: AgentConfig, opened: Vec<Opened>, reach: Reach) -> Self {
        let (upstream, supervisor) = Upstream::new(config.cluster.clone(), config.timing, reach);
        let sessions = Sessions::new(upstream.clone());
        let (lives, told_lives) = mpsc::channel(LIVES_UNTOLD_MAX);
        let (meters, told_lives) = (Arc::default(), Some(told_lives));
        let memory = Budget::new(config.memory);
        let (mindspore, origin) = (None, None);
        Self {
            config,
            opened,
            mindspore,
            upstream,
            supervisor,
            meters,
            sessions,
            memory,
            lives,
            told_lives,
            origin,
        }
    }

    /// Has the cluster told, with each registration, where this agent's clients come from: their host, and this build.
    #[must_use]
    pub fn telling(self, origin: &TaskOrigin) -> Self {
        let told = MetadataValue::<Binary>::from_bytes(&origin.encode_to_vec());
        let told = HeaderValue::from_bytes(told.as_encoded_bytes()).expect("base64 is text");
        Self { origin: Some(told), ..self }
    }

    /// Tells the incarnation of every task that registers through the agent, where the protocol has any. The first who asks
    /// is told; of more than 64 that were not taken yet the newest are lost.
    pub fn lives(&mut self) -> Option<mpsc::Receiver<u64>> {
        self.told_lives.take()
    }

    /// Where clients find the agent; a port that was asked for as 0 is the one that was found.
    #[must_use]
    pub fn places(&self) -> Vec<Listen> {
        self.opened.iter().map(|opened| opened.place.clone()).collect()
    }

    /// Where nodes of MindSpore find it, as [`Self::places`].
    #[must_use]
    pub fn mindspore_place(&self) -> Option<String> {
        self.mindspore.as_ref().map(|opened| opened.place.to_string())
    }

    /// What tells the status while the agent runs.
    #[must_use]
    pub fn status_handle(&self) -> StatusHandle {
        StatusHandle {
            upstream: self.upstream.clone(),
            meters: Arc::clone(&self.meters),
            sessions: Arc::clone(&self.sessions),
            memory: self.memory.clone(),
        }
    }

    /// Serves until `shutdown` resolves. Then ends polls, gives back what may be made again, waits for
    /// calls that may not, and closes: clients that wait for a connection find the next agent at the same
    /// place.
    ///
    /// # Errors
    /// [`Error::Serve`], also when the cluster says soon that the job has another number of tasks.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let places: Vec<String> =
            self.places().iter().map(ToString::to_string).chain(self.mindspore_place()).collect();
        let places = places.join(" and ");
        let Self {
            config,
            opened,
            mindspore,
            upstream,
            supervisor,
            meters,
            sessions,
            memory,
            lives,
            told_lives: _,
            origin,
        } = self;
        let (stop, stopping) = Stop::new();
        let job = AgentJob::new();
        let beats = Beats::new(upstream.clone(), Arc::clone(&meters));
        let relay = Relay::new(
            upstream.clone(),
            Arc::clone(&sessions),
            (job.clone(), config.job.as_str()),
            Arc::clone(&meters),
        );
        let front = Front {
            upstream: upstream.clone(),
            forwarder: Forwarder::new(upstream.clone(), sessions, &config.job, config.poll),
            beats: beats.clone(),
            devices: Arc::default(),
            job: job.clone(),
            job_name: Arc::from(config.job.as_str()),
            meters: Arc::clone(&meters),
            stopping: stopping.clone(),
            lives,
            origin,
        };

        // These end with the set.
        let mut background = JoinSet::new();
        background.spawn(supervisor.run());
        background.spawn(Teller::new(beats, job.clone(), config.job.clone()).run());
        background.spawn({
            let (job, name, spec) = (job.clone(), config.job.clone(), config.spec);
            async move { job.settle(&upstream, &name, spec.as_ref()).await }
        });
        // Whether this process is in contact with the cluster is no reason to let its clients wait.
        let resources = PortResources::new(Contact::never_lost(), Connections::new(config.connections));
        let resources = resources.charging(memory);
        let mut serving = JoinSet::new();
        for Opened { listener, place } in opened {
            tracing::info!(%place, job = config.job, "agent listens");
            let incoming = Incoming::new(listener, stopping.clone(), resources.clone(), Arc::clone(&meters));
            serving.spawn(serve(place, incoming, front.clone(), stopping.clone()));
        }
        drop(front);
        if let Some(Opened { listener, place }) = mindspore {
            tracing::info!(%place, job = config.job, "agent listens for nodes of MindSpore");
            serving.spawn(serve_mindspore(place, listener, (relay, resources), stopping.clone()));
        }

        tokio::select! {
            ended = serving.join_next() => return ended.map_or(Ok(()), |ended| ended.expect("serving does not panic")),
            cause = refused_soon(&job, config.timing.refuse) => return Err(Error::Serve { place: places, cause }),
            () = shutdown => {}
        }
        tracing::info!("agent is stopping");
        tokio::select! {
            () = drained(&mut serving) => {}
            () = stop.run(config.timing.drain) => tracing::info!("clients did not close their connections in time"),
        }
        Ok(())
    }
}

/// The same for nodes of MindSpore.
async fn serve_mindspore(
    place: Listen,
    listener: Listener,
    (relay, resources): (Relay, PortResources),
    stopping: Stopping,
) -> Result<(), Error> {
    let served = Served::Framed(relay.framed());
    let serving = serve_through(listener, served, resources, async move { stopping.begun().await });
    serving.await.map_err(|error| not_served(&place, &error))
}

fn not_served(place: &Listen, error: &tonic::transport::Error) -> Error {
    Error::Serve { place: place.to_string(), cause: format!("{error}; start the agent again") }
}

/// Serves one place until the agent stops and its connections are closed.
async fn serve(place: Listen, incoming: Incoming, front: Front, stopping: Stopping) -> Result<(), Error> {
    tripod_port::server()
        .serve_with_incoming_shutdown(front, incoming, async move { stopping.begun().await })
        .await
        .map_err(|error| not_served(&place, &error))
}

/// Resolves when the cluster says soon that the job is not the one that is meant, with why.
async fn refused_soon(job: &AgentJob, limit: Duration) -> String {
    match tokio::time::timeout(limit, job.is_another()).await {
        Ok(why) => why,
        Err(_) => std::future::pending().await,
    }
}

async fn drained(serving: &mut JoinSet<Result<(), Error>>) {
    while serving.join_next().await.is_some() {}
}
