//! The gate in front of one port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use http::HeaderMap;
use tripod_identity::JobName;

use crate::caller::Scope;
use crate::{Call, Caller, Checks, Decision, Mode, Port, Reason, Rpc, Subject, Tally, decide};

/// The metadata by which a call names its job.
pub(crate) const JOB_METADATA: &str = "x-tripod-job";

/// Decides about the calls of one port, and counts. To change its mode takes effect with the next call, on every connection.
#[derive(Debug)]
pub struct Gate {
    at: Port,
    mode: AtomicU8,
    tally: Arc<Tally>,
}

/// The job that a call names in its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedJob {
    /// It names none.
    Unsaid,
    /// This one.
    Named(JobName),
    /// It names something that no job can be called.
    NotAName,
}

impl NamedJob {
    /// The first that the metadata names, as handlers have it.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        match headers.get(JOB_METADATA) {
            None => Self::Unsaid,
            Some(name) => match name.to_str().map(str::parse) {
                Ok(Ok(name)) => Self::Named(name),
                Ok(Err(_)) | Err(_) => Self::NotAName,
            },
        }
    }
}

impl Gate {
    /// One for a port, whose decisions are counted there.
    #[must_use]
    pub fn new(at: Port, mode: Mode, tally: Arc<Tally>) -> Self {
        Self { at, mode: AtomicU8::new(mode as u8), tally }
    }

    /// What it does with a refusal.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Relaxed) {
            0 => Mode::Off,
            1 => Mode::Rehearse,
            _ => Mode::Enforce,
        }
    }

    /// Changes what it does with a refusal.
    pub fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// What is left to be checked of a call that is made. Nothing is, unless refusals are enforced.
    ///
    /// `own` is the job of the port, if it has one; the job that the call names comes before it.
    ///
    /// # Errors
    /// The call is not to be made.
    pub fn judge(
        &self,
        caller: &Caller,
        path: &str,
        headers: &HeaderMap,
        own: Option<&JobName>,
    ) -> Result<Checks, Reason> {
        let mode = self.mode();
        if mode == Mode::Off {
            return Ok(Checks::NONE);
        }
        let rpc = Rpc::of_path(path);
        let decision = self.decision(caller, rpc, &NamedJob::of(headers), own);
        self.tally.note(mode, caller, rpc, decision);
        match (mode, decision) {
            (Mode::Enforce, Decision::Refused(reason)) => Err(reason),
            (Mode::Enforce, Decision::InApply(checks)) => Ok(checks),
            _ => Ok(Checks::NONE),
        }
    }

    fn decision(
        &self,
        caller: &Caller,
        rpc: Option<Rpc>,
        named: &NamedJob,
        own: Option<&JobName>,
    ) -> Decision {
        let Some(rpc) = rpc else {
            // Whoever could always ask for anything is told by the service that there is no such thing.
            let is_legacy = matches!(caller, Caller::Legacy);
            return if is_legacy { Decision::Allowed } else { Decision::Refused(Reason::UnknownRpc) };
        };
        let job = match named {
            NamedJob::Named(job) => Some(job),
            NamedJob::Unsaid => own,
            NamedJob::NotAName => None,
        };
        let decision = decide(caller, &Call { rpc, at: self.at, job, subject: Subject::Unread });
        let is_confined = caller.role().is_some() && caller.scope() != Scope::Everywhere;
        match (decision, named) {
            // It is nobody's, so it is not the caller's.
            (Decision::InApply(_), NamedJob::NotAName) if is_confined => Decision::Refused(Reason::OtherJob),
            _ => decision,
        }
    }
}
