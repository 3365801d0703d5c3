//! A listener for every job that has a port, and one for each protocol that has a port of its own for every job: opened
//! when the job appears, closed when it goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tripod_gate::Gate;
use tripod_gateway::{Bearers, CallGuard, Consistency, FrontEnds, Gateway, JobBinding, PortKind};
use tripod_native::{ClosedPort, JobPorts as JobPortList, OwnPort};
use tripod_port::{Listener, PortResources};
use tripod_proto::code::Code;
use tripod_state::ids::{JobId, JobSlot};
use tripod_state::{State, Topic};
use tripod_tls::ServerTls;

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
    /// What protects connections to ports of gRPC.
    tls: Option<ServerTls>,
    /// What is asked about the calls that come to them.
    gate: Arc<Gate>,
    /// Who may show a token.
    bearers: Bearers,
    open: BTreeMap<(RangeIndex, JobSlot), OpenPort>,
    /// Those that are open, and those that are being closed.
    serving: JoinSet<()>,
    /// Ports that could not be opened. Each was logged once, not five times a second.
    closed: BTreeMap<(RangeIndex, JobId), ClosedPort>,
    /// Where others read which ports are open.
    told: watch::Sender<JobPortList>,
}

/// A served port. Dropping it closes the port, soon.
struct OpenPort {
    job: JobId,
    number: u16,
    _stop: DropGuard,
}

/// Keeps the ports in step with the jobs until the node stops, and then closes them. `told` is kept in step
/// with the ports.
pub(crate) async fn run(
    gateway: Gateway,
    front_ends: FrontEnds,
    resources: PortResources,
    ranges: Vec<JobPortRange>,
    (tls, gate, bearers): (Option<ServerTls>, Arc<Gate>, Bearers),
    told: watch::Sender<JobPortList>,
    stopping: CancellationToken,
) {
    let mut changes = gateway.watch(Topic::Jobs);
    let mut ports = JobPorts {
        gateway,
        front_ends,
        resources,
        ranges,
        tls,
        gate,
        bearers,
        open: BTreeMap::new(),
        serving: JoinSet::new(),
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
        let wanted: BTreeMap<_, _> = slots.into_iter().map(|(slot, job, name)| (slot, (job, name))).collect();
        self.open.retain(|(_, slot), port| wanted.get(slot).is_some_and(|(job, _)| *job == port.job));
        self.closed.retain(|(_, job), _| wanted.values().any(|(wanted, _)| wanted == job));
        while self.serving.try_join_next().is_some() {}
        let mut complete = true;
        for range in 0..self.ranges.len() {
            for (slot, (job, name)) in &wanted {
                if !self.open.contains_key(&(range, *slot)) {
                    complete &= self.open(range, *slot, (*job, name.as_str())).await;
                }
            }
        }
        complete
    }

    async fn open(&mut self, range: RangeIndex, slot: JobSlot, (job, name): (JobId, &str)) -> bool {
        let ports = &self.ranges[range];
        let (kind, flag) = (ports.kind, ports.flag);
        let Some(number) = ports.range.port(slot.0) else {
            let reason = format!(
                "its slot {} lies beyond {flag} {}; start the node with a longer range",
                slot.0, ports.range
            );
            self.note(range, job, String::new(), reason);
            // Waiting does not make the range longer.
            return true;
        };
        let address = format!("{}:{number}", ports.host);
        match Listener::open(&address).await {
            Ok(listener) => {
                let tls = self.tls.clone().filter(|_| kind == PortKind::Job);
                let listener = listener.protected(tls);
                let port = self.serve(listener, kind, number, (job, name));
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

    fn serve(
        &mut self,
        listener: Listener,
        kind: PortKind,
        number: u16,
        (job, name): (JobId, &str),
    ) -> OpenPort {
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let served = self.front_ends.served(kind, &JobBinding::Fixed(job));
        let resources =
            self.resources.clone().guarded(CallGuard::of_job_port(&self.gate, name, &self.bearers));
        self.serving.spawn(async move {
            if let Err(error) = tripod_port::serve_through(listener, served, resources, stopped).await {
                tracing::error!(job = job.0, %error, "job port failed");
            }
        });
        OpenPort { job, number, _stop: stop.drop_guard() }
    }

    /// Closes all ports and waits until the last connection has ended.
    async fn close(mut self) {
        self.open.clear();
        while self.serving.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;
    use tripod_gate::{Mode, Port};
    use tripod_local::{ConnectionLimits, Connections};
    use tripod_port::Contact;
    use tripod_processes::cluster::ReservedPorts;
    use tripod_state::ids::ServiceIncarnation;
    use tripod_state::{Command, job};
    use tripod_wait::until;

    use super::*;

    async fn submit(gateway: &Gateway, command: job::Command) {
        gateway.submit(Command::Job(command)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_node_that_stops_waits_for_the_port_of_a_job_that_has_just_gone() {
        let (gateway, _backend) = Gateway::in_memory();
        let connections = Connections::new(ConnectionLimits::none());
        let resources = PortResources::new(Contact::never_lost(), connections.clone());
        // It is bound when there is a job, and nobody else has it until then.
        let ports = ReservedPorts::reserve(1).unwrap();
        let port = ports.first();
        let range = PortRange { first: port, last: port };
        let (told, mut open) = watch::channel(JobPortList::default());
        let stopping = CancellationToken::new();
        let node: tripod_identity::Identity = "spiffe://example.org/tripod/main/node/a".parse().unwrap();
        let bearers = Bearers::new(&gateway, node.realm, false);
        let running = tokio::spawn(run(
            gateway.clone(),
            FrontEnds::of(Vec::new()),
            resources,
            vec![JobPortRange {
                kind: PortKind::Job,
                flag: "--job-ports",
                host: "127.0.0.1".into(),
                advertised: "127.0.0.1".into(),
                range,
            }],
            (None, Arc::new(Gate::new(Port::Client, Mode::Off, Arc::default())), bearers),
            told,
            stopping.clone(),
        ));

        let (name, spec, service) = ("train".to_owned(), job::Spec::of_tasks(1), ServiceIncarnation(7));
        submit(&gateway, job::Command::Create { name: name.clone(), spec, service }).await;
        open.wait_for(|ports| !ports.open.is_empty()).await.unwrap();
        let _client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        until("the connection is accepted", || (connections.count() == 1).then_some(())).await;

        submit(&gateway, job::Command::Delete { name }).await;
        open.wait_for(|ports| ports.open.is_empty()).await.unwrap();
        stopping.cancel();
        running.await.unwrap();
        assert_eq!(connections.count(), 0, "its client was asked to go, and given time");
    }
}
