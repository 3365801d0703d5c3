//! From a configuration to a running agent.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::beats::{Beats, Teller};
use crate::config::{AgentConfig, Listen};
use crate::error::Error;
use crate::forward::Forwarder;
use crate::front::{Front, Stage};
use crate::incoming::Incoming;
use crate::job::AgentJob;
use crate::lanes::{LANES_MAX, Lanes};
use crate::listen::{self, Opened};
use crate::meters::Meters;
use crate::status::StatusHandle;
use crate::upstream::{Supervisor, Upstream};

/// How long connections may take to close after all calls were ended.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);

/// An agent whose places are open and which does not serve yet.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    opened: Vec<Opened>,
    upstream: Upstream,
    supervisor: Supervisor,
    meters: Arc<Meters>,
    lanes: Arc<Lanes>,
}

impl Agent {
    /// Checks the configuration and opens the places to listen at. Needs no cluster.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Listen`].
    pub async fn open(config: AgentConfig) -> Result<Self, Error> {
        config.check()?;
        let mut opened = Vec::with_capacity(config.listen.len());
        for place in &config.listen {
            opened.push(listen::open(place, config.allow_remote).await?);
        }
        let (upstream, supervisor) = Upstream::new(config.cluster.clone(), config.timing);
        let lanes = Lanes::new(upstream.clone(), LANES_MAX);
        Ok(Self { config, opened, upstream, supervisor, meters: Arc::default(), lanes })
    }

    /// Where clients find the agent; a port that was asked for as 0 is the one that was found.
    #[must_use]
    pub fn places(&self) -> Vec<Listen> {
        self.opened.iter().map(|opened| opened.place.clone()).collect()
    }

    /// What tells the status while the agent runs.
    #[must_use]
    pub fn status_handle(&self) -> StatusHandle {
        StatusHandle {
            upstream: self.upstream.clone(),
            meters: Arc::clone(&self.meters),
            lanes: Arc::clone(&self.lanes),
        }
    }

    /// Serves until `shutdown` resolves. Then ends polls, lets other calls end for a moment, and closes:
    /// clients that wait for a connection find the next agent at the same place.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { config, opened, upstream, supervisor, meters, lanes } = self;
        let (stage, stages) = watch::channel(Stage::Serving);
        let job = AgentJob::new();
        let beats = Beats::new(upstream.clone(), Arc::clone(&meters));
        let front = Front {
            upstream: upstream.clone(),
            forwarder: Forwarder::new(upstream.clone(), lanes, &config.job, config.poll),
            beats: beats.clone(),
            job: job.clone(),
            meters: Arc::clone(&meters),
            stage: stages,
        };

        // These end with the set.
        let mut background = JoinSet::new();
        background.spawn(supervisor.run());
        background.spawn(Teller::new(beats, job.clone(), config.job.clone()).run());
        background.spawn({
            let (name, spec) = (config.job.clone(), config.spec);
            async move { job.settle(&upstream, &name, spec.as_ref()).await }
        });
        let mut serving = JoinSet::new();
        for Opened { listener, place } in opened {
            tracing::info!(%place, job = config.job, "agent listens");
            let incoming = Incoming::new(listener, Arc::clone(&meters));
            serving.spawn(serve(place, incoming, front.clone()));
        }
        drop(front);

        tokio::select! {
            ended = serving.join_next() => return ended.map_or(Ok(()), |ended| ended.expect("serving does not panic")),
            () = shutdown => {}
        }
        tracing::info!("agent is stopping");
        stage.send_replace(Stage::Draining);
        if tokio::time::timeout(config.timing.drain, drained(&mut serving)).await.is_err() {
            stage.send_replace(Stage::Ended);
            if tokio::time::timeout(CLOSE_LIMIT, drained(&mut serving)).await.is_err() {
                tracing::info!("clients did not close their connections in time");
            }
        }
        Ok(())
    }
}

/// Serves one place until the agent stops and its connections are closed.
async fn serve(place: Listen, incoming: Incoming, front: Front) -> Result<(), Error> {
    let mut stages = front.stage.clone();
    let stopped = async move {
        // A dropped sender means that the agent is gone.
        let _ = stages.wait_for(|stage| *stage >= Stage::Draining).await;
    };
    tripod_coordination::server()
        .serve_with_incoming_shutdown(front, incoming, stopped)
        .await
        .map_err(|error| Error::Serve { place: place.to_string(), cause: error.to_string() })
}

async fn drained(serving: &mut JoinSet<Result<(), Error>>) {
    while serving.join_next().await.is_some() {}
}
