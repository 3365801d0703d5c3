//! Which job is where: what this node knows of members and jobs, kept up to date for all streams at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::NodeId;
use tripod_state::job::Summary;
use tripod_state::member::Addresses;
use tripod_state::{State, Topic};

use crate::names::Names;

/// Between attempts to see what the cluster has acknowledged.
const PAUSE: Duration = Duration::from_millis(500);

/// Every job and its addresses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    jobs: BTreeMap<String, Vec<SocketAddr>>,
}

/// The newest directory; `None` until this node is known to be up to date.
pub(crate) type Known = watch::Receiver<Option<Arc<Directory>>>;

/// Members and jobs as the state has them.
struct Seen {
    members: Vec<(NodeId, Addresses)>,
    jobs: Vec<Summary>,
}

/// Keeps a directory until every receiver is gone. Must be called within a tokio runtime.
pub(crate) fn keep(gateway: Gateway) -> Known {
    let (sender, known) = watch::channel(None);
    tokio::spawn(async move {
        tokio::select! {
            () = run(&gateway, &sender) => {}
            () = sender.closed() => {}
        }
    });
    known
}

async fn run(gateway: &Gateway, sender: &watch::Sender<Option<Arc<Directory>>>) {
    let mut members = gateway.watch(Topic::Members);
    let mut jobs = gateway.watch(Topic::Jobs);
    let mut names = Names::new();
    let mut freshness = Consistency::Linearizable;
    loop {
        let Ok(seen) = gateway.read(freshness, Seen::of).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        freshness = Consistency::Local;
        let now = Directory::new(&seen, &names);
        sender.send_if_modified(|known| {
            let changed = known.as_deref() != Some(&now);
            if changed {
                *known = Some(Arc::new(now));
            }
            changed
        });
        let hosts = seen.hosts();
        tokio::select! {
            () = members.changed() => {}
            () = jobs.changed() => {}
            () = names.changed(&hosts) => {}
        }
    }
}

impl Seen {
    fn of(state: &State) -> Self {
        Self { members: state.serving_members(), jobs: state.jobs() }
    }

    /// Every host at which there is a job, or may be one soon.
    fn hosts(&self) -> BTreeSet<String> {
        let of =
            |at: &Addresses| [at.job(None).map(|place| place.host.to_owned()), Some(at.job_host.clone())];
        self.members.iter().flat_map(|(_, at)| of(at)).flatten().collect()
    }
}

impl Directory {
    fn new(seen: &Seen, names: &Names) -> Self {
        let addresses = |job: &Summary| {
            let places = seen.members.iter().filter_map(|(_, at)| at.job(job.slot));
            let found = places.flat_map(|place| {
                names.addresses(place.host).into_iter().map(move |ip| SocketAddr::new(ip, place.port))
            });
            (job.name.as_str().to_owned(), found.collect())
        };
        Self { jobs: seen.jobs.iter().map(addresses).collect() }
    }

    /// Where the nodes listen for the job of that name, by node; `None` if there is no such job.
    pub(crate) fn addresses(&self, job: &str) -> Option<&[SocketAddr]> {
        self.jobs.get(job).map(Vec::as_slice)
    }
}
