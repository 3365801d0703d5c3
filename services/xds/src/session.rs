//! One stream of one client: what it asked for, and what it was told.

use std::collections::{BTreeMap, BTreeSet};

use envoy_types::pb::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_types::pb::google::protobuf::Any;
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};
use tripod_gate::{Admitted, Reason};
use xxhash_rust::xxh3::Xxh3Default;

use crate::directory::{Directory, Known};
use crate::kind::{Kind, job_of};
use crate::resources;

/// Resources of one kind that one client may ask for: it has one for every target that it dials.
const NAMES_MAX: usize = 256;

/// What a client is told next.
pub(crate) type Replies = mpsc::Sender<Result<DiscoveryResponse, Status>>;

/// The client went away.
struct Gone;

/// One stream.
pub(crate) struct Session {
    known: Known,
    replies: Replies,
    subscriptions: BTreeMap<Kind, Subscription>,
    nonces: u64,
    /// What is checked of the jobs that it names, if something is.
    admitted: Option<Admitted>,
    /// What the client calls itself, for logs.
    client: String,
}

/// The resources of one kind.
#[derive(Default)]
struct Subscription {
    names: BTreeSet<String>,
    /// The version that the client was told last.
    told: Option<String>,
}

impl Session {
    pub(crate) fn new(known: Known, replies: Replies) -> Self {
        let (subscriptions, client) = (BTreeMap::new(), String::new());
        Self { known, replies, subscriptions, nonces: 0, admitted: None, client }
    }

    /// The same for a client of which this is left to be checked.
    pub(crate) fn admitted(self, admitted: Option<Admitted>) -> Self {
        Self { admitted, ..self }
    }

    /// Answers the client until it leaves.
    pub(crate) async fn run(mut self, mut requests: Streaming<DiscoveryRequest>) {
        loop {
            tokio::select! {
                request = requests.message() => {
                    let Ok(Some(request)) = request else { return };
                    if let Err(refusal) = self.take(request) {
                        // A client that is gone need not be refused.
                        let _ = self.replies.send(Err(refusal)).await;
                        return;
                    }
                }
                changed = self.known.changed() => if changed.is_err() { return },
                () = self.replies.closed() => return,
            }
            if let Err(Gone) = self.tell().await {
                return;
            }
        }
    }

    /// Notes what the client asks for, and what it says of the last answer.
    fn take(&mut self, request: DiscoveryRequest) -> Result<(), Status> {
        if let Some(node) = request.node {
            self.client = node.id;
        }
        let Some(kind) = Kind::of(&request.type_url) else {
            tracing::debug!(
                client = self.client,
                kind = request.type_url,
                "xds resources of an unknown type"
            );
            return Ok(());
        };
        if let Some(error) = request.error_detail {
            tracing::warn!(client = self.client, ?kind, reason = error.message, "xds resources were refused");
        }
        let asked = request.resource_names.len();
        if asked > NAMES_MAX {
            return Err(Status::resource_exhausted(format!(
                "{asked} resources of one type, {NAMES_MAX} are served to one client; dial fewer targets from one process"
            )));
        }
        if let Some(admitted) = &self.admitted {
            for name in &request.resource_names {
                let job = if kind == Kind::Listener { job_of(name) } else { name.as_str() };
                admitted.about_job(job).map_err(refused)?;
            }
        }
        let names = BTreeSet::from_iter(request.resource_names);
        let subscription = self.subscriptions.entry(kind).or_default();
        if !names.is_subset(&subscription.names) {
            // Who asks for something more gets an answer, even if there is nothing more to tell.
            subscription.told = None;
        }
        subscription.names = names;
        Ok(())
    }

    /// Tells the client everything that it asked for and does not know yet.
    async fn tell(&mut self) -> Result<(), Gone> {
        let directory = self.known.borrow_and_update().clone();
        for (kind, subscription) in &mut self.subscriptions {
            let Some(found) = subscription.find(*kind, directory.as_deref()) else { continue };
            let Some(answer) = subscription.news(*kind, found, &self.client) else { continue };
            self.nonces += 1;
            let response = DiscoveryResponse { nonce: self.nonces.to_string(), ..answer };
            self.replies.send(Ok(response)).await.map_err(|_| Gone)?;
        }
        Ok(())
    }
}

impl Subscription {
    /// The resources that were asked for; `None` as long as they cannot be told.
    ///
    /// Only where a job is depends on whether there is such a job. A client that is told of no listener
    /// gives up after a while, and the calls that it has made by then do not go on when the job is created.
    /// One that knows the listener and waits for endpoints goes on. Endpoints that are left out are kept by a
    /// client that knew some.
    fn find(&self, kind: Kind, directory: Option<&Directory>) -> Option<Vec<Any>> {
        let names = self.names.iter();
        Some(match kind {
            Kind::Listener => names.map(|name| resources::listener(name, job_of(name))).collect(),
            Kind::Cluster => names.map(|job| resources::cluster(job)).collect(),
            Kind::Endpoints => {
                let directory = directory?;
                names.filter_map(|job| Some(resources::endpoints(job, directory.addresses(job)?))).collect()
            }
        })
    }

    /// The resources that were found, unless they are what the client was told last.
    fn news(&mut self, kind: Kind, found: Vec<Any>, client: &str) -> Option<DiscoveryResponse> {
        if self.names.is_empty() {
            return None;
        }
        let version = version(&found);
        if self.told.as_ref() == Some(&version) {
            return None;
        }
        if found.len() < self.names.len() {
            let (asked, known) = (&self.names, found.len());
            tracing::info!(client, ?asked, known, "xds client waits for jobs that do not exist");
        }
        self.told = Some(version.clone());
        Some(DiscoveryResponse {
            version_info: version,
            resources: found,
            type_url: kind.type_url().to_owned(),
            ..Default::default()
        })
    }
}

fn refused(reason: Reason) -> Status {
    Status::new(Code::from(i32::from(reason.code())), reason.to_string())
}

/// The same for the same content, on every node and after every restart.
fn version(resources: &[Any]) -> String {
    let mut hash = Xxh3Default::new();
    for resource in resources {
        hash.update(&(resource.value.len() as u64).to_be_bytes());
        hash.update(&resource.value);
    }
    format!("{:016x}", hash.digest())
}
