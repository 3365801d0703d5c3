//! A listener for every job that has a port, and one for each protocol that has a port of its own for every job: opened
//! when the job appears, closed when it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tripod_gateway::{Consistency, FrontEnds, Gateway, JobBinding, PortKind};
use tripod_native::{ClosedPort, JobPorts as JobPortList, OwnPort};
use tripod_port::{Listener, PortResources};
use tripod_proto::code::Code;
use tripod_state::ids::{JobId, JobSlot};
use tripod_state::{State, Topic};

use crate::args::port_range::PortRange;
use crate::logging::number;

/// When to try again to open a port that could not be opened: the listener of a job that was just
/// deleted may still hold it.
const RETRY: Duration = Duration::from_millis(200);

/// Where ports of one kind are opened, one for each job.
pub(crate) struct JobPortRange {
    pub(crate) kind: PortKind,
    /// By which the range was given.
    pub(crate) flag: &'static str,
    pub(crate) host: String,
    /// The host that clients are told.
    pub(crate) advertised: String,
    pub(crate) range: PortRange,
}

/// One of several ranges, by its place.
type RangeIndex = usize;

/// The open job ports of this node.
struct JobPorts {
    gateway: Gateway,
    front_ends: FrontEnds,
    resources: PortResources,
    ranges: Vec<JobPortRange>,
    open: BTreeMap<(RangeIndex, JobSlot), OpenPort>,
    /// Ports that could not be opened. Each was logged once, not five times a second.
    closed: BTreeMap<(RangeIndex, JobId), ClosedPort>,
    /// Where others read which ports are open.
    told: watch::Sender<JobPortList>,
}

/// A served port. Dropping it closes the port, soon.
struct OpenPort {
    job: JobId,
    number: u16,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// Keeps the ports in step with the jobs until the node stops, and then closes them. `told` is kept in step
/// with the ports.
pub(crate) async fn run(
    gateway: Gateway,
    front_ends: FrontEnds,
    resources: PortResources,
    ranges: Vec<JobPortRange>,
    told: watch::Sender<JobPortList>,
    stopping: CancellationToken,
) {
    let mut changes = gateway.watch(Topic::Jobs);
    let mut ports = JobPorts {
        gateway,
        front_ends,
        resources,
        ranges,
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
        self.open.retain(|(_, slot), port| wanted.get(slot) == Some(&port.job));
        self.closed.retain(|(_, job), _| wanted.values().any(|wanted| wanted == job));
        let mut complete = true;
        for range in 0..self.ranges.len() {
            for (slot, job) in &wanted {
                if !self.open.contains_key(&(range, *slot)) {
                    complete &= self.open(range, *slot, *job).await;
                }
            }
        }
        complete
    }

    async fn open(&mut self, range: RangeIndex, slot: JobSlot, job: JobId) -> bool {
        let place = &self.ranges[range];
        let (kind, flag) = (place.kind, place.flag);
        let Some(number) = place.range.port(slot.0) else {
            let reason = format!(
                "its slot {} lies beyond {flag} {}; start the node with a longer range",
                slot.0, place.range
            );
            self.note(range, job, String::new(), reason);
            // Waiting does not make the range longer.
            return true;
        };
        let address = format!("{}:{number}", place.host);
        match Listener::open(&address).await {
            Ok(listener) => {
                let port = self.serve(listener, kind, number, job);
                self.open.insert((range, slot), port);
                self.closed.remove(&(range, job));
                tracing::info!(job = job.0, address, flag, "job port is open");
                true
            }
            Err(error) => {
                self.note(range, job, address, error.to_string());
                false
            }
        }
    }

    fn note(&mut self, range: RangeIndex, job: JobId, address: String, reason: String) {
        let closed = ClosedPort { address, reason };
        if self.closed.get(&(range, job)) != Some(&closed) {
            let ClosedPort { address, reason } = &closed;
            // A slot beyond the range has no address, and the reason says what to do.
            let code = (!address.is_empty()).then(|| number(Code::ListenFailed));
            if code.is_none() && matches!(self.ranges[range].kind, PortKind::Own(_)) {
                // Most jobs are none of that protocol, and need no port of it.
                tracing::debug!(job = job.0, reason, "a job has no port of one protocol");
            } else {
                tracing::warn!(code, job = job.0, address, reason, "job port could not be opened");
            }
            self.closed.insert((range, job), closed);
        }
    }

    fn tell(&self) {
        let mut now = JobPortList::default();
        for ((range, _), port) in &self.open {
            let JobPortRange { kind, advertised, .. } = &self.ranges[*range];
            match *kind {
                PortKind::Own(protocol) => {
                    let address = format!("{advertised}:{}", port.number);
                    now.own.push(OwnPort { job: port.job, protocol, address, reason: None });
                }
                PortKind::Job | PortKind::Client => {
                    now.open.insert(port.job);
                }
            }
        }
        for ((range, job), port) in &self.closed {
            match self.ranges[*range].kind {
                PortKind::Own(protocol) => {
                    let ClosedPort { address, reason } = port.clone();
                    now.own.push(OwnPort { job: *job, protocol, address, reason: Some(reason) });
                }
                PortKind::Job | PortKind::Client => {
                    now.closed.insert(*job, port.clone());
                }
            }
        }
        self.told.send_if_modified(|told| {
            let changed = *told != now;
            *told = now;
            changed
        });
    }

    fn serve(&self, listener: Listener, kind: PortKind, number: u16, job: JobId) -> OpenPort {
        let (stop, stopped) = oneshot::channel::<()>();
        let served = self.front_ends.served(kind, &JobBinding::Fixed(job));
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
        OpenPort { job, number, stop, serving }
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
