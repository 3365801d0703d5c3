//! `client_server_test` of the public client, and its topology exchange.
//!
//! The public client is an agent that compresses what it sends. Its jobs here are those that are created by
//! default: polls are released at once, so whatever happens is told by heartbeats.

mod barriers;
mod devices;
mod going_away;
mod keys;
mod life;

use tripod_state::job;

use crate::client::{Cluster, Config, spec};

/// A job as it is created unless its creator says otherwise.
fn usual(tasks: u32) -> job::Spec {
    job::Spec { poll: job::Poll::Release, ..spec(tasks) }
}

/// The job on a served port, for clients that compress.
async fn start(spec: job::Spec) -> Cluster {
    let mut cluster = Cluster::start(spec).await;
    cluster.config = Config { compresses: true, ..cluster.config };
    cluster
}
