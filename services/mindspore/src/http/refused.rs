//! Refusals, in upstream's words where it has some: programs of operators compare them.

use hyper::StatusCode;
use tripod_gateway::Outage;
use tripod_proto::code::Code;
use tripod_state::Fault;
use tripod_state::mindspore::Refusal;
use tripod_state::mindspore::cluster::Switch;

use crate::connection::outage_code;
use crate::queries::Unanswered;

/// Why something was not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// What the operator is told.
    pub(super) text: String,
    /// What the log is told.
    pub(super) code: Code,
}

impl Refused {
    /// In upstream's words.
    pub(super) fn upstream(text: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, text: text.into(), code: Code::MessageRefused }
    }

    /// In ours.
    pub(super) fn ours(text: &str) -> Self {
        Self::upstream(format!("{}: {text}", Code::MessageRefused))
    }

    /// There is no such thing here.
    pub(super) fn unknown(status: StatusCode, text: &str) -> Self {
        let code = Code::MessageUnknown;
        Self { status, text: format!("{code}: {text}"), code }
    }

    /// Not all servers had been told after a while. They are told still.
    pub(super) fn late(switch: Switch) -> Self {
        Self::upstream(match switch {
            Switch::NewInstance => "The new instance is timeout.",
            Switch::EnableFls => "The enable FLS is timeout.",
            Switch::DisableFls => "The disable FLS is timeout.",
        })
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        let Fault::Mindspore(refusal) = &fault else { return Self::ours(&fault.text()) };
        match refusal {
            Refusal::NotReady { .. } => Self::upstream("The cluster is not ready."),
            Refusal::WorkersFixed => Self::upstream("The Worker does not currently support scale out."),
            Refusal::NodeUnknown { node } => {
                Self::upstream(format!("The node id:{} is illegal.", node.as_str()))
            }
            Refusal::FirstServer { node } => Self::upstream(format!(
                "The node id:{} is rank 0 of server, should not be scale in.",
                node.as_str()
            )),
            Refusal::NoServer { node } => Self::upstream(format!(
                "The node id:{} is the role of worker, should not be scale in.",
                node.as_str()
            )),
            Refusal::NotAbortable => {
                Self::upstream("The cluster state is not CLUSTER_SCALE_OUT, does not need to rollback.")
            }
            Refusal::NodeLeft { .. }
            | Refusal::OtherRole { .. }
            | Refusal::Full { .. }
            | Refusal::NotInitialized
            | Refusal::Replaced { .. }
            | Refusal::NotFormed
            | Refusal::Ending
            | Refusal::NothingToScale
            | Refusal::Outdated { .. } => Self::ours(&refusal.text()),
        }
    }
}

impl From<Unanswered> for Refused {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Fault(fault) => fault.into(),
            Unanswered::Outage(outage) => outage.into(),
            Unanswered::Nobody => Self::upstream("The cluster is not ready."),
            Unanswered::Late { .. } => Self::upstream("The query instance is timeout."),
            Unanswered::Failed { .. } => {
                let code = Code::NodeUntold;
                Self { status: StatusCode::BAD_REQUEST, text: format!("{code}: {unanswered}"), code }
            }
            Unanswered::TooLong { .. } => Self::ours(&unanswered.to_string()),
        }
    }
}

impl From<Outage> for Refused {
    fn from(outage: Outage) -> Self {
        let status = match outage {
            // It may have been done.
            Outage::Unknown(_) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let code = outage_code(&outage);
        Self { status, text: format!("{code}: {outage}"), code }
    }
}
