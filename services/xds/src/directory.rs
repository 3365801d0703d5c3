//! Which job is where: what this node knows of members and jobs, kept up to date for all streams at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::{JobSlot, NodeId};
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
        Self { members: state.members(), jobs: state.jobs() }
    }

    fn hosts(&self) -> BTreeSet<String> {
        let hosts = self.members.iter().flat_map(|(_, at)| [split(&at.client).0, at.job_host.as_str()]);
        hosts.map(ToOwned::to_owned).collect()
    }
}

impl Directory {
    fn new(seen: &Seen, names: &Names) -> Self {
        let addresses = |job: &Summary| {
            let places = seen.members.iter().filter_map(|(_, at)| place(at, job.slot));
            let found = places.flat_map(|(host, port)| {
                names.addresses(host).into_iter().map(move |ip| SocketAddr::new(ip, port))
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

/// Where a node listens for the job in that slot: a port of the job's own, or the client port for the job
/// without a slot. `None` when the node's range of job ports does not reach that far.
fn place(at: &Addresses, slot: Option<JobSlot>) -> Option<(&str, u16)> {
    match slot {
        None => {
            let (host, port) = split(&at.client);
            Some((host, port.parse().ok()?))
        }
        Some(slot) if slot.0 < at.job_port_count => {
            Some((&at.job_host, at.job_port_first.checked_add(slot.0)?))
        }
        Some(_) => None,
    }
}

/// Host and port of `HOST:PORT`.
fn split(address: &str) -> (&str, &str) {
    address.rsplit_once(':').unwrap_or((address, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(client: &str, first: u16, count: u16) -> Addresses {
        Addresses {
            client: client.to_owned(),
            http: String::new(),
            job_host: "10.0.0.7".to_owned(),
            job_port_first: first,
            job_port_count: count,
        }
    }

    #[test]
    fn a_job_is_at_its_slot_of_every_range_that_reaches_so_far() {
        let node = node("10.0.0.7:7700", 8000, 2);
        assert_eq!(place(&node, Some(JobSlot(1))), Some(("10.0.0.7", 8001)));
        assert_eq!(place(&node, Some(JobSlot(2))), None);
    }

    #[test]
    fn the_job_without_a_slot_is_at_the_client_port() {
        assert_eq!(place(&node("10.0.0.7:7700", 8000, 2), None), Some(("10.0.0.7", 7700)));
        assert_eq!(place(&node("[::1]:7700", 8000, 2), None), Some(("[::1]", 7700)));
        assert_eq!(place(&node("nowhere", 8000, 2), None), None);
    }
}
