//! The gate in front of one port.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use http::HeaderMap;
use tripod_identity::JobName;

use crate::{
    Admitted, Call, Caller, Check, Decision, JobPlace, Mode, News, Port, Reason, Rpc, Subject, Tally, decide,
};

/// The metadata by which a call names its job.
pub(crate) const JOB_METADATA: &str = "x-tripod-job";

/// Who is told of refusals that are news.
type Tell = Box<dyn Fn(&News) + Send + Sync>;

/// Decides about the calls of one port, and counts. To change its mode takes effect with the next call, on every connection.
pub struct Gate {
    at: Port,
    mode: AtomicU8,
    tally: Arc<Tally>,
    tell: Option<Tell>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Gate({}, {})", self.at.word(), self.mode())
    }
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
        Self { at, mode: AtomicU8::new(mode as u8), tally, tell: None }
    }

    /// The same with somebody who is told of a refusal once a minute for each caller and reason.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&News) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), ..self }
    }

    /// Of which port it is.
    #[must_use]
    pub fn at(&self) -> Port {
        self.at
    }

    /// Whether a refusal is one.
    #[must_use]
    pub fn enforces(&self) -> bool {
        self.mode() == Mode::Enforce
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

    /// A call that is made, if something is left to be checked of it.
    ///
    /// `own` says the job of the port, as far as it has one for such a call; the job that the metadata name comes before it.
    ///
    /// # Errors
    /// The call is not to be made.
    pub fn judge(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        path: &str,
        headers: &HeaderMap,
        own: impl FnOnce(JobPlace) -> NamedJob,
    ) -> Result<Option<Admitted>, Reason> {
        if self.mode() == Mode::Off {
            return Ok(None);
        }
        let Some(rpc) = Rpc::of_path(path) else {
            // Whoever could always ask for anything is told by the service that there is no such thing.
            if matches!(**caller, Caller::Legacy) {
                self.tally.note_made(Decision::Allowed);
                return Ok(None);
            }
            self.refused(caller, None, Reason::UnknownRpc);
            return if self.enforces() { Err(Reason::UnknownRpc) } else { Ok(None) };
        };
        let place = JobPlace::of(rpc);
        let job = match NamedJob::of(headers) {
            NamedJob::Unsaid => own(place),
            said => said,
        };
        match self.decision(caller, rpc, place, &job) {
            Decision::Refused(reason) => {
                self.refused(caller, Some(rpc), reason);
                if self.enforces() { Err(reason) } else { Ok(None) }
            }
            Decision::Allowed => {
                self.tally.note_made(Decision::Allowed);
                Ok(None)
            }
            Decision::InApply(checks) => {
                self.tally.note_made(Decision::InApply(checks));
                Ok(Some(Admitted::new(Arc::clone(self), Arc::clone(caller), rpc, checks)))
            }
        }
    }

    /// Counts a refusal, and tells of it if it is news.
    pub(crate) fn refused(&self, caller: &Caller, rpc: Option<Rpc>, reason: Reason) {
        let was_refused = self.enforces();
        let is_news = self.tally.note_refused(was_refused, caller, rpc, reason);
        if let (true, Some(tell)) = (is_news, &self.tell) {
            let (at, is_by_token) = (self.at, caller.is_by_token());
            tell(&News { at, caller: caller.to_string(), is_by_token, rpc, reason, was_refused });
        }
    }

    fn decision(&self, caller: &Caller, rpc: Rpc, place: JobPlace, named: &NamedJob) -> Decision {
        let about = |job| decide(caller, &Call { rpc, at: self.at, job, subject: Subject::Unread });
        let job = match named {
            NamedJob::Named(job) => Some(job),
            NamedJob::Unsaid | NamedJob::NotAName => None,
        };
        let is_confined = caller.is_confined();
        match (about(job), named, place) {
            (Decision::Refused(reason), ..) => Decision::Refused(reason),
            // It is nobody's, so it is not the caller's.
            (Decision::InApply(checks), NamedJob::NotAName, _)
                if is_confined && checks.has(Check::OwnJob) =>
            {
                Decision::Refused(Reason::OtherJob)
            }
            // Whatever the head says, the message has the last word.
            (_, _, JobPlace::Message) => about(None),
            // Nothing says a job, and there is none that would be another's.
            (Decision::InApply(checks), _, JobPlace::Nowhere) => match checks.without(Check::OwnJob) {
                checks if checks.is_empty() => Decision::Allowed,
                checks => Decision::InApply(checks),
            },
            (decision, ..) => decision,
        }
    }
}
