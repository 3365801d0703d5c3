//! Who may make the calls of a port, asked before any byte of their bodies is read.

use std::sync::{Arc, OnceLock};

use http::{HeaderValue, Uri};
use tonic::{Code, Status};
use tripod_gate::{Caller, Gate, JobPlace, Mode, NamedJob, Reason};
use tripod_port::label::Label;
use tripod_port::{ConnectionCalls, Guard, Guarding, Head, Speaker};
use tripod_proto::metadata;
use tripod_state::job::DEFAULT_JOB;

use crate::bearers::Bearers;
use crate::gateway::Gateway;
use crate::proposers::speaker;

/// Asks a gate about the calls of one port: finds who calls and, once, the job that the call is about. A token is judged also where
/// the gate is off: whoever shows one wants to be its bearer.
pub struct CallGuard {
    gate: Arc<Gate>,
    bearers: Bearers,
    port: PortJob,
}

/// Which job the calls of a port are about that name none.
enum PortJob {
    /// The port is this job's own.
    Own(NamedJob),
    /// The job that a host's label names, if this node knows it, else `default`.
    Labelled(Gateway),
}

/// Who calls by one connection, since that was first asked.
#[derive(Clone, Default)]
struct Known(Arc<OnceLock<CallerOfConnection>>);

#[derive(Clone)]
struct CallerOfConnection {
    caller: Arc<Caller>,
    /// Has its calls say in what they propose who it is; absent where nothing was proved.
    speaker: Option<Speaker>,
}

impl CallGuard {
    /// For the client port and the unix socket.
    #[must_use]
    pub fn of_client_port(gate: &Arc<Gate>, gateway: &Gateway, bearers: &Bearers) -> Guarding {
        Guarding::by(Self::new_labelled(gate, gateway, bearers))
    }

    /// For the port of the job of this name.
    #[must_use]
    pub fn of_job_port(gate: &Arc<Gate>, job: &str, bearers: &Bearers) -> Guarding {
        let port = PortJob::Own(named(job));
        Guarding::by(Self { gate: Arc::clone(gate), bearers: bearers.clone(), port })
    }

    pub(crate) fn new_labelled(gate: &Arc<Gate>, gateway: &Gateway, bearers: &Bearers) -> Self {
        let port = PortJob::Labelled(gateway.clone());
        Self { gate: Arc::clone(gate), bearers: bearers.clone(), port }
    }

    /// Whom a connection's certificate names; by TLS without one nobody. In plain text a task of the port's job, and where it has none
    /// whoever it may be.
    fn caller(&self, connection: &ConnectionCalls) -> CallerOfConnection {
        let Known(known) = connection.kept::<Known>();
        let known = known.get_or_init(|| {
            let caller = match (connection.proved(), &self.port) {
                (Some(proved), _) => Caller::by_path(proved.identity().clone()),
                (None, _) if connection.is_encrypted() => Caller::Anonymous,
                (None, PortJob::Own(NamedJob::Named(job))) => Caller::Listener(job.clone()),
                (None, PortJob::Own(_)) => Caller::Anonymous,
                (None, PortJob::Labelled(_)) => Caller::Legacy,
            };
            CallerOfConnection { speaker: speaker(&caller), caller: Arc::new(caller) }
        });
        known.clone()
    }

    /// The job of a call that names none.
    fn job(&self, place: JobPlace, uri: &Uri) -> NamedJob {
        let gateway = match &self.port {
            PortJob::Own(job) => return job.clone(),
            PortJob::Labelled(gateway) => gateway,
        };
        match place {
            JobPlace::Head => named(DEFAULT_JOB),
            JobPlace::HeadOrLabel => {
                let label = uri.host().and_then(Label::of);
                let known = label.filter(|Label(label)| gateway.job_named_here(label).is_some());
                named(known.as_ref().map_or(DEFAULT_JOB, |Label(label)| label.as_str()))
            }
            JobPlace::Message | JobPlace::Nowhere => NamedJob::Unsaid,
        }
    }
}

impl Guard for CallGuard {
    fn admit(&self, head: &mut Head, connection: &ConnectionCalls) -> Result<(), Status> {
        // A token is more than what a connection says by itself: whoever shows it calls as its bearer, and as nobody else.
        let (caller, speaker) = match self.bearers.admit(head, connection, self.gate.enforces())? {
            Some(bearer) => bearer,
            None if self.gate.mode() == Mode::Off => return Ok(()),
            None => {
                let CallerOfConnection { caller, speaker } = self.caller(connection);
                (caller, speaker)
            }
        };
        self.admit_from(&caller, head)?;
        // A gate that only counts refuses nothing, so neither is anything to be refused in apply.
        if let Some(speaker) = speaker.filter(|_| self.gate.enforces()) {
            head.extensions.insert(speaker);
        }
        Ok(())
    }
}

impl CallGuard {
    fn admit_from(&self, caller: &Arc<Caller>, head: &mut Head) -> Result<(), Status> {
        let mut found = None;
        let own = |place| {
            let job = self.job(place, &head.uri);
            // What decides is what counts: the service finds that job named, and looks at no label of its own.
            let is_settled = place == JobPlace::HeadOrLabel && matches!(self.port, PortJob::Labelled(_));
            found = is_settled.then(|| job.clone());
            job
        };
        let admitted = self.gate.judge(caller, head.uri.path(), &head.headers, own).map_err(refused)?;
        if let Some(admitted) = admitted {
            head.extensions.insert(admitted);
        }
        if let Some(NamedJob::Named(job)) = found
            && self.gate.enforces()
            && caller.is_confined()
            && let Ok(job) = HeaderValue::try_from(job.as_str())
        {
            head.headers.insert(metadata::JOB, job);
        }
        Ok(())
    }
}

fn named(job: &str) -> NamedJob {
    job.parse().map_or(NamedJob::NotAName, NamedJob::Named)
}

/// What a call is told that is not made.
fn refused(reason: Reason) -> Status {
    Status::new(Code::from(i32::from(reason.code())), reason.to_string())
}

#[cfg(test)]
#[path = "call_guard_test.rs"]
mod tests;
