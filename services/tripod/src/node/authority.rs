//! Who may call what on the ports of this node.

use std::sync::Arc;

use tripod_gate::{Gate, Mode, News, Port, Rpc, Tally};
use tripod_proto::code::Code;

use crate::logging::number;

/// The gates before this node's ports, which count together.
#[derive(Debug)]
pub(super) struct Authority {
    /// Before the client port, the unix socket and the job ports.
    pub(super) client: Arc<Gate>,
    pub(super) peer: Arc<Gate>,
    pub(super) calls: Arc<Tally>,
}

impl Authority {
    pub(super) fn new(mode: Mode) -> Self {
        let calls = Arc::new(Tally::default());
        let gate = |port| Arc::new(Gate::new(port, mode, Arc::clone(&calls)).telling(tell));
        Self { client: gate(Port::Client), peer: gate(Port::Peer), calls }
    }
}

/// Logs a refusal: once a minute for each caller and reason.
fn tell(news: &News) {
    let News { at, caller, rpc, reason, was_refused } = news;
    let rpc = rpc.map_or_else(|| "(none)".to_owned(), Rpc::path);
    let (port, reason) = (at.word(), reason.word());
    let code = number(Code::NotAuthorised);
    if *was_refused {
        tracing::warn!(code, caller, rpc, port, reason, "a call was refused");
    } else {
        tracing::warn!(code, caller, rpc, port, reason, "a call was made that `enforce` would refuse");
    }
}
