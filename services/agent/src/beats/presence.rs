//! Clients that have registered and not sent a heartbeat yet.
//!
//! How long they take to it nobody knows but they. As long as their connections stand the cluster is told so, and does
//! not take them for dead; when one is closed it is told that at once.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Code;
use tripod_port::{ConnectionCalls, Stopping, tell_presence};
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::tripod::v1::{BeatRequest, ClientBeat, Presence};

use super::{Beat, Beats};
use crate::upstream::Wire;

/// How often the cluster is told; it asks for 20 s.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// How long a node may take to say whether it wants to be told again.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Clients that are followed at a time: an agent has one for each accelerator of its host.
const FOLLOWED_MAX: usize = 4096;

/// The registrations of clients that are followed.
#[derive(Debug, Default)]
pub(super) struct Followed(HashSet<Beat>);

impl Beats {
    /// Tells the cluster of a client that has just registered, until its first heartbeat.
    pub(crate) fn follow(&self, job: &str, registration: Beat, calls: ConnectionCalls, stopping: Stopping) {
        {
            let mut followed = self.shared.followed.lock();
            if followed.0.len() >= FOLLOWED_MAX || !followed.0.insert(registration.clone()) {
                return;
            }
        }
        let (beats, job) = (self.clone(), job.to_owned());
        tokio::spawn(async move {
            let (told, job, registered) = (&beats, &job, &registration);
            tell_presence(&calls, &stopping, TELL_EVERY, |connection, gone| {
                told.tell(job, registered, Presence { connection, gone })
            })
            .await;
            beats.shared.followed.lock().0.remove(&registration);
        });
    }

    /// Whether the cluster wants to be told again.
    async fn tell(&self, job: &str, registration: &Beat, presence: Presence) -> bool {
        let ask = |wire: Wire| {
            let beat = ClientBeat {
                path: registration.path.clone(),
                message: registration.message.clone(),
                presence: Some(presence),
                ..Default::default()
            };
            let request = BeatRequest { job: job.to_owned(), beats: vec![beat], set: None };
            async move { AgentsClient::new(wire).beat(request).await }
        };
        let Ok(mut verdicts) = self.upstream.ask("presence", ask).await else { return false };
        match timeout(ANSWER_LIMIT, verdicts.message()).await {
            Ok(Ok(Some(verdict))) => verdict.code == i32::from(Code::Ok) || !verdict.outage.is_empty(),
            // The node is busy, or has just gone.
            Ok(Ok(None) | Err(_)) | Err(_) => true,
        }
    }
}
