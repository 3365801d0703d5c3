//! A listener for every job that has a port: opened when the job appears, closed when it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tripod_coordination::JobBinding;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::{JobId, JobSlot};
use tripod_state::{State, Topic};

use crate::args::port_range::PortRange;
use crate::node::announce::host_of;

/// When to try again to open a port that could not be opened: the listener of a job that was just
/// deleted may still hold it.
const RETRY: Duration = Duration::from_millis(200);

/// The open job ports of this node.
struct JobPorts {
    gateway: Gateway,
    host: String,
    range: PortRange,
    open: BTreeMap<JobSlot, OpenPort>,
    /// Slots whose failure was logged: one line, not five a second.
    troubled: BTreeMap<JobSlot, JobId>,
}

/// A served port. Dropping it closes the port.
struct OpenPort {
    job: JobId,
    _stop: oneshot::Sender<()>,
}

/// Keeps the ports in step with the jobs until the node stops. `client` is the client address; job ports
/// are on the same interface.
pub(crate) async fn run(
    gateway: Gateway,
    client: String,
    range: PortRange,
    mut stopping: watch::Receiver<bool>,
) {
    let mut changes = gateway.watch(Topic::Jobs);
    let host = host_of(&client).to_owned();
    let mut ports = JobPorts { gateway, host, range, open: BTreeMap::new(), troubled: BTreeMap::new() };
    loop {
        let complete = ports.reconcile().await;
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep(RETRY), if !complete => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

impl JobPorts {
    /// Closes the ports of jobs that are gone and opens those that are missing. Tells whether all are
    /// open.
    async fn reconcile(&mut self) -> bool {
        let Ok(slots) = self.gateway.read(Consistency::Local, State::job_slots).await else {
            return false;
        };
        let wanted: BTreeMap<_, _> = slots.into_iter().map(|(slot, job, _)| (slot, job)).collect();
        self.open.retain(|slot, port| wanted.get(slot) == Some(&port.job));
        self.troubled.retain(|slot, job| wanted.get(slot) == Some(job));
        let mut complete = true;
        for (slot, job) in wanted {
            if !self.open.contains_key(&slot) {
                complete &= self.open(slot, job).await;
            }
        }
        complete
    }

    async fn open(&mut self, slot: JobSlot, job: JobId) -> bool {
        let Some(port) = self.range.port(slot.0) else {
            if self.troubled.insert(slot, job).is_none() {
                tracing::error!(slot = slot.0, range = %self.range, "job port is outside of --job-ports");
            }
            // Waiting does not make the range longer.
            return true;
        };
        let address = format!("{}:{port}", self.host);
        match TcpListener::bind(&address).await {
            Ok(listener) => {
                let stop = self.serve(listener, job);
                self.open.insert(slot, OpenPort { job, _stop: stop });
                self.troubled.remove(&slot);
                tracing::info!(job = job.0, address, "job port is open");
                true
            }
            Err(error) => {
                if self.troubled.insert(slot, job).is_none() {
                    tracing::warn!(job = job.0, address, %error, "job port could not be opened, trying on");
                }
                false
            }
        }
    }

    fn serve(&self, listener: TcpListener, job: JobId) -> oneshot::Sender<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let routes = tripod_coordination::routes(&self.gateway, &JobBinding::Fixed(job));
        tokio::spawn(async move {
            let stopped = async {
                // The sender is never used, only dropped.
                let _ = stopped.await;
            };
            if let Err(error) = tripod_coordination::serve(listener, routes, stopped).await {
                tracing::error!(job = job.0, %error, "job port failed");
            }
        });
        stop
    }
}
