//! Whether this machine is fit for a node with these settings, found out before one is started: each check is
//! bounded, and leaves nothing behind.
//!
//! | module | what |
//! |---|---|
//! | `disk` | the data directory: may it be written, how fast is a flush, how much is free |
//! | `ports` | whether the node's own addresses can be listened on |
//! | `plain_text` | whether other machines could use them in plain text |
//! | `holder` | which program has a port that is taken |
//! | `running` | whether the node itself runs there already |
//! | `outgoing` | whether the kernel gives ports of jobs to connections that go out |
//! | `peers` | whether the others' names resolve, and who answers |
//! | `host` | limits of the process |
//! | `clock` | this machine's clock against that of nodes that run |

mod clock;
mod disk;
mod holder;
mod host;
mod outgoing;
mod peers;
mod plain_text;
mod ports;
mod running;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::args::initial::InitialMembers;
use crate::args::port_range::PortRange;
use crate::args::tls_flags::TlsFlags;
use crate::args::ui::Ui;

/// What a node would be started with; what is not known is not checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) data: Option<PathBuf>,
    pub(crate) node: Option<u64>,
    pub(crate) client: Option<String>,
    pub(crate) peer: Option<String>,
    pub(crate) http: Option<String>,
    /// Where the page is served.
    pub(crate) ui: Option<Ui>,
    pub(crate) job_ports: Option<PortRange>,
    pub(crate) mindspore_ports: Option<PortRange>,
    pub(crate) initial: Option<InitialMembers>,
    /// Client addresses of nodes of the cluster to be joined.
    pub(crate) join: Vec<String>,
    /// How the ports would be protected.
    pub(crate) tls: TlsFlags,
    /// Client addresses of nodes that may run already.
    pub(crate) endpoints: Vec<String>,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// A node would start; something may be meant otherwise, or will be slow.
    Warn,
    /// A node would not start, or not work.
    Fail,
}

/// One check. Fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Check {
    /// Its name, which never changes.
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
    /// What was found, for people.
    pub(crate) found: String,
    /// What to do about it; null if nothing.
    pub(crate) next: Option<String>,
    /// What was measured, by names that end with the unit.
    pub(crate) figures: BTreeMap<&'static str, Value>,
}

impl Check {
    fn new(check: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        Self { check, verdict, found: found.into(), next: None, figures: BTreeMap::new() }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    fn figure(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.insert(name, value.into());
        self
    }
}

/// Makes all checks, those of the network at the same time. Takes a few seconds at most.
pub(crate) async fn run(plan: &Plan) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(data) = plan.data.clone() {
        let looked = tokio::task::spawn_blocking(move || disk::check(&data)).await;
        checks.extend(looked.unwrap_or_else(|error| {
            vec![Check::new("data-directory", Verdict::Fail, format!("the check was cut: {error}"))]
        }));
    }
    checks.push(host::open_files(plan));
    checks.extend(ports::check(plan, running::find(plan).await.as_ref()));
    checks.extend(plain_text::check(plan));
    let (peers, clock) = tokio::join!(peers::check(plan), clock::check(plan));
    checks.extend(peers);
    checks.push(clock);
    checks
}
