//! Nodes of MindSpore: their frames are passed on to the node in use, one after the other, each until it is answered.
//!
//! A connection of a client has one to the cluster, which is opened with its first frame and again on another node whenever
//! the agent moves. What changes something carries a stamp, so that it takes effect once however often it is sent.
//! `docs/decisions/049-the-agent-knows-mindspores-frames.md` says what nodes and agents say to each other for it.
//!
//! | module | what |
//! |---|---|
//! | `conversation` | one client's connection, its frames and their answers |
//! | `incoming` | frames as they come, counted and within a time |
//! | `passed` | what must be known of a frame, in both protocols |
//! | `way` | a frame sent until it is answered |
//! | `open` | one connection to a node |
//! | `place` | where the node in use serves the job |
//! | `ended`, `complaints` | why a connection ends, and how often that is told |

mod complaints;
mod conversation;
mod ended;
mod incoming;
mod open;
mod passed;
mod place;
mod way;

use std::sync::Arc;

use tripod_port::Framed;
use tripod_proto::code::Code;

use self::complaints::Complaints;
use crate::job::AgentJob;
use crate::meters::Meters;
use crate::sessions::Sessions;
use crate::upstream::Upstream;

/// What the connections of MindSpore's nodes share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    upstream: Upstream,
    sessions: Arc<Sessions>,
    job: AgentJob,
    job_name: Arc<str>,
    meters: Arc<Meters>,
    complaints: Complaints,
}

impl Relay {
    pub(crate) fn new(
        upstream: Upstream,
        sessions: Arc<Sessions>,
        (job, job_name): (AgentJob, &str),
        meters: Arc<Meters>,
    ) -> Self {
        let complaints = Complaints::default();
        Self { upstream, sessions, job, job_name: job_name.into(), meters, complaints }
    }

    /// The node in use has no place for the job.
    fn tell_unserved(&self, why: &str) {
        let (code, job) = (Code::MindsporeUnserved, &self.job_name);
        self.complaints.tell(&format_args!("{code}: job `{job}` is not served to MindSpore: node {why}"));
    }

    /// How connections are served.
    pub(crate) fn framed(self) -> Framed {
        let handle = move |accepted, stopping| conversation::serve(self.clone(), accepted, stopping);
        Framed::new(handle).within(incoming::TIMEOUTS)
    }
}
