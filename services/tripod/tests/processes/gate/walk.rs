//! Every RPC by every role about its own job and another one, on the ports of a running node: what happens is what the table says.

use std::sync::Arc;

use futures::StreamExt as _;
use tripod_gate::{JobPlace, Jobs, Port, RayScheduler, Role, Rpc, row};

use super::dialled::{Call, Dialled};

/// Calls under way at a time.
const AT_ONCE: usize = 32;

/// How a call says which job it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saying {
    /// By metadata.
    Metadata,
    /// By its message, without metadata.
    Message,
    /// By nothing: the port is the job's own.
    Port,
}

/// Somebody of the job `own`, connected to one port.
#[derive(Clone)]
pub(super) struct Somebody {
    pub(super) name: &'static str,
    pub(super) role: Role,
    pub(super) dialled: Dialled,
}

/// What the walk has to say that is not as in the table.
pub(super) async fn walk(somebody: &Somebody, saying: Saying, job: &'static str) -> (usize, Vec<String>) {
    let rpcs = Rpc::ALL.iter().copied().filter(|rpc| is_walked(*rpc, saying, somebody.role));
    let somebody = Arc::new(somebody.clone());
    let calls = futures::stream::iter(rpcs).map(|rpc| {
        let somebody = Arc::clone(&somebody);
        async move { difference(&somebody, rpc, saying, job).await }
    });
    let said: Vec<Option<String>> = calls.buffer_unordered(AT_ONCE).collect().await;
    (said.len(), said.into_iter().flatten().collect())
}

fn is_walked(rpc: Rpc, saying: Saying, role: Role) -> bool {
    // The jobs are needed to the end.
    let deletes = rpc == Rpc::Jobs(Jobs::Delete) && role == Role::Operator;
    let is_said = match saying {
        Saying::Metadata => true,
        // Changes of resources by themselves are not served, and nothing of such a stream is read.
        Saying::Message => {
            JobPlace::of(rpc) == JobPlace::Message && rpc.method() != "DeltaAggregatedResources"
        }
        Saying::Port => matches!(JobPlace::of(rpc), JobPlace::Head | JobPlace::HeadOrLabel),
    };
    is_said && !deletes
}

/// How what happens is another thing than the table says.
async fn difference(somebody: &Somebody, rpc: Rpc, saying: Saying, job: &str) -> Option<String> {
    let named = if saying == Saying::Message { job } else { "own" };
    let path = rpc.path();
    let call = Call {
        path: &path,
        message: message(rpc, named, somebody.role),
        job: Some(job).filter(|_| saying == Saying::Metadata),
        ..Call::default()
    };
    let said = somebody.dialled.call(call).await;
    if !Port::Client.serves(rpc) {
        return (!said.is_unknown()).then(|| format!("{path} is not of this port: {said:?}"));
    }
    // From the letters of the row alone, and not by what decides.
    let letters = row(rpc).letters(Port::Client);
    let letter = letters.split(' ').nth(somebody.role as usize).expect("one for each role");
    let is_free = matches!(somebody.role, Role::Node | Role::Operator | Role::Viewer);
    let may = match letter {
        "-" => false,
        "y" => true,
        _ => is_free || job == "own",
    };
    (said.is_refused() == may)
        .then(|| format!("{path} by {} about {job}, {saying:?}: {said:?}", somebody.name))
}

/// A message about that job, if it can name one, which changes nothing that is needed.
fn message(rpc: Rpc, job: &str, role: Role) -> Vec<u8> {
    let text = |field: u8, text: &str| {
        let length = u8::try_from(text.len()).expect("short");
        [&[(field << 3) | 2, length][..], text.as_bytes()].concat()
    };
    match rpc {
        Rpc::AggregatedDiscovery(_) => {
            let kind = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
            [text(3, job), text(4, kind)].concat()
        }
        _ if JobPlace::of(rpc) == JobPlace::Message => text(1, job),
        // To a node that there is not.
        Rpc::Cluster(tripod_gate::Cluster::TransferLeader) => vec![1 << 3, 99],
        Rpc::RayScheduler(RayScheduler::RegisterWorker) if role == Role::Driver => vec![3 << 3, 1],
        _ => Vec::new(),
    }
}
