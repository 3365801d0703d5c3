//! The audit log of a node: opened before anything is served, closed when all is over.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tripod_audit::{Auditor, Sink};
use tripod_proto::code::Code;

use super::Config;
use crate::failure::Failure;
use crate::logging::{self, number};

/// How often the log says of a sink that it takes no lines; each line that is lost is counted.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// What writes lines of this node; nothing, unless flags say where.
pub(super) fn start(config: &Config) -> Result<Auditor, Failure> {
    let Some(plan) = &config.audit else { return Ok(Auditor::default()) };
    let node = match &config.tls {
        Some(tls) => tls.tls.identity().kind.to_string(),
        None => format!("node {}", config.node),
    };
    let opened = Auditor::start(&plan.sinks, &node, plan.is_required, complain());
    let auditor = opened.map_err(|error| {
        let place =
            plan.sinks.directory.as_ref().map_or_else(String::new, |place| place.display().to_string());
        Failure::new(Code::AuditFile, format!("--audit-dir {place} cannot be used: {error}"))
    })?;
    logging::audit(&auditor);
    Ok(auditor)
}

/// Says once a minute of each sink that it takes no lines.
fn complain() -> tripod_audit::Complain {
    let told: Mutex<BTreeMap<Sink, Instant>> = Mutex::default();
    Box::new(move |sink: Sink, error: &io::Error| {
        let mut told = told.lock();
        if told.get(&sink).is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            told.insert(sink, Instant::now());
            // Those that no sink has taken.
            let lost = tripod_audit::lost();
            tracing::error!(code = number(Code::AuditLost), %sink, %error, lost, "lines of the audit log are not written");
        }
    })
}
