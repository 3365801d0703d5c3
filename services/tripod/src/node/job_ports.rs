//! A listener for every job that has a port: opened when the job appears, closed when it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tripod_gateway::{Consistency, FrontEnds, Gateway, JobBinding, PortKind};
use tripod_native::{ClosedPort, JobPorts as JobPortList};
use tripod_port::{Listener, PortResources};
use tripod_proto::code::Code;
use tripod_state::ids::{JobId, JobSlot};
use tripod_state::{State, Topic};

use crate::args::port_range::PortRange;
use crate::logging::number;

/// When to try again to open a port that could not be opened: the listener of a job that was just
/// deleted may still hold it.
const RETRY: Duration = Duration::from_millis(200);

/// Where job ports are opened.
pub(crate) struct JobPortRange {
    pub(crate) host: String,
    pub(crate) range: PortRange,
}

/// The open job ports of this node.
struct JobPorts {
    gateway: Gateway,
    front_ends: FrontEnds,
    resources: PortResources,
    place: JobPortRange,
    open: BTreeMap<JobSlot, OpenPort>,
    /// Ports that could not be opened. Each was logged once, not five times a second.
    closed: BTreeMap<JobId, ClosedPort>,
    /// Where others read which ports are open.
    told: watch::Sender<JobPortList>,
}

/// A served port. Dropping it closes the port, soon.
struct OpenPort {
    job: JobId,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// Keeps the ports in step with the jobs until the node stops, and then closes them. `told` is kept in step
/// with the ports.
pub(crate) async fn run(
    gateway: Gateway,
    front_ends: FrontEnds,
    resources: PortResources,
    place: JobPortRange,
    told: watch::Sender<JobPortList>,
    stopping: CancellationToken,
) {
    let mut changes = gateway.watch(Topic::Jobs);
    let mut ports = JobPorts {
        gateway,
        front_ends,
        resources,
        place,
        open: BTreeMap::new(),
        closed: BTreeMap::new(),
        told,
    };
    loop {
        let complete = ports.reconcile().await;
        ports.tell();
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep(RETRY), if !complete => {}
            () = stopping.cancelled() => break,
        }
    }
    ports.close().await;
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
        self.closed.retain(|job, _| wanted.values().any(|wanted| wanted == job));
        let mut complete = true;
        for (slot, job) in wanted {
            if !self.open.contains_key(&slot) {
                complete &= self.open(slot, job).await;
            }
        }
        complete
    }

    async fn open(&mut self, slot: JobSlot, job: JobId) -> bool {
        let Some(port) = self.place.range.port(slot.0) else {
            let reason = format!(
                "its slot {} lies beyond --job-ports {}; start the node with a longer range",
                slot.0, self.place.range
            );
            self.note(job, String::new(), reason);
            // Waiting does not make the range longer.
            return true;
        };
        let address = format!("{}:{port}", self.place.host);
        match Listener::open(&address).await {
            Ok(listener) => {
                let port = self.serve(listener, job);
                self.open.insert(slot, port);
                self.closed.remove(&job);
                tracing::info!(job = job.0, address, "job port is open");
                true
            }
            Err(error) => {
                self.note(job, address, error.to_string());
                false
            }
        }
    }

    fn note(&mut self, job: JobId, address: String, reason: String) {
        let closed = ClosedPort { address, reason };
        if self.closed.get(&job) != Some(&closed) {
            let ClosedPort { address, reason } = &closed;
            // A slot beyond the range has no address, and the reason says what to do.
            let code = (!address.is_empty()).then(|| number(Code::ListenFailed));
            tracing::warn!(code, job = job.0, address, reason, "job port could not be opened");
            self.closed.insert(job, closed);
        }
    }

    fn tell(&self) {
        let open = self.open.values().map(|port| port.job).collect();
        let now = JobPortList { open, closed: self.closed.clone() };
        self.told.send_if_modified(|told| {
            let changed = *told != now;
            *told = now;
            changed
        });
    }

    fn serve(&self, listener: Listener, job: JobId) -> OpenPort {
        let (stop, stopped) = oneshot::channel::<()>();
        let served = self.front_ends.served(PortKind::Job, &JobBinding::Fixed(job));
        let resources = self.resources.clone();
        let serving = tokio::spawn(async move {
            let stopped = async {
                // The sender is never used, only dropped.
                let _ = stopped.await;
            };
            if let Err(error) = tripod_port::serve_through(listener, served, resources, stopped).await {
                tracing::error!(job = job.0, %error, "job port failed");
            }
        });
        OpenPort { job, stop, serving }
    }

    /// Closes all ports and waits until the last connection has ended.
    async fn close(self) {
        let (stops, serving): (Vec<_>, Vec<_>) =
            self.open.into_values().map(|port| (port.stop, port.serving)).unzip();
        drop(stops);
        for port in serving {
            // A port that failed has said so, and has ended.
            let _ = port.await;
        }
    }
}
