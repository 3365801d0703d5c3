//! Every call says which cluster and which node it is meant for. An address may be reused by
//! another process; without this check a node could vote in another cluster's election. And every connection
//! says whose it is, so that a node that was removed is told so.

use std::sync::Arc;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

const CLUSTER: &str = "tripod-cluster-id";
const TARGET: &str = "tripod-target-node";
/// Where HTTP clients name themselves. It is set once for a connection.
const SOURCE: &str = "user-agent";
const SOURCE_PREFIX: &str = "tripod-node/";
/// Marks a refusal whose reason is that the caller was removed.
const REMOVED: &str = "tripod-removed-node";

/// Marks calls as meant for one node of our cluster.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    cluster: MetadataValue<Ascii>,
    target: MetadataValue<Ascii>,
}

impl Caller {
    /// The mark for calls to `target`.
    ///
    /// # Errors
    /// The cluster id cannot be sent as metadata.
    pub(crate) fn new(cluster_id: &str, target: u64) -> Result<Self, String> {
        let cluster = MetadataValue::try_from(cluster_id);
        let cluster = cluster.map_err(|_| format!("the cluster id {cluster_id:?} is not printable ASCII"))?;
        Ok(Self { cluster, target: MetadataValue::from(target) })
    }

    /// A request that carries the mark.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert(CLUSTER, self.cluster.clone());
        request.metadata_mut().insert(TARGET, self.target.clone());
        request
    }
}

/// What the connections of a node name themselves.
pub(crate) fn source(node: u64) -> String {
    format!("{SOURCE_PREFIX}{node}")
}

/// Whose connection names itself so; `None` for one of a program that does not say.
fn node_of(source: &str) -> Option<u64> {
    source.strip_prefix(SOURCE_PREFIX)?.split(' ').next()?.parse().ok()
}

/// What an operator is told of a node that was removed.
pub(crate) fn removed(cluster_id: &str, node: u64) -> String {
    format!(
        "T4201 node-removed: node {node} was removed from cluster {cluster_id}, and its id never comes back; to use \
         its machine again stop it, empty its data directory and start it with `tripod server --join HOST:PORT`, \
         where HOST:PORT is the client address of a member"
    )
}

/// Whether a call was refused because this node was removed.
pub(crate) fn says_removed(status: &Status) -> bool {
    status.metadata().contains_key(REMOVED)
}

/// Tells whether a node was removed.
pub(crate) type IsRemoved = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// Refuses calls that are not meant for this node, or that come from one that was removed.
#[derive(Clone)]
pub(crate) struct Guard {
    cluster_id: String,
    node: String,
    is_removed: IsRemoved,
}

impl Guard {
    /// Lets calls for `node` of `cluster_id` pass.
    pub(crate) fn new(cluster_id: &str, node: u64, is_removed: IsRemoved) -> Self {
        Self { cluster_id: cluster_id.to_owned(), node: node.to_string(), is_removed }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let marked =
            |key| request.metadata().get(key).and_then(|value| value.to_str().ok()).unwrap_or("(none)");
        let (cluster, target) = (marked(CLUSTER), marked(TARGET));
        if cluster != self.cluster_id {
            return Err(Status::failed_precondition(format!(
                "call for cluster {cluster} refused: this node belongs to cluster {}",
                self.cluster_id
            )));
        }
        if target != self.node {
            return Err(Status::failed_precondition(format!(
                "call for node {target} refused: this is node {}",
                self.node
            )));
        }
        if let Some(source) = node_of(marked(SOURCE))
            && (self.is_removed)(source)
        {
            let mut refusal = Status::failed_precondition(removed(&self.cluster_id, source));
            refusal.metadata_mut().insert(REMOVED, MetadataValue::from(source));
            return Err(refusal);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("ours", 2, Arc::new(|node| node == 4))
    }

    fn check(cluster: &str, target: u64) -> Result<(), Status> {
        let marked = Caller::new(cluster, target).unwrap().request(());
        guard().call(marked).map(|_| ())
    }

    #[test]
    fn a_removed_node_is_told_so_and_what_to_do() {
        let from = |agent: &str| {
            let mut marked = Caller::new("ours", 2).unwrap().request(());
            marked.metadata_mut().insert(SOURCE, agent.parse().unwrap());
            guard().call(marked).map(|_| ())
        };
        assert!(from(&format!("{} tonic/0.14", source(3))).is_ok());
        assert!(from("tonic/0.14").is_ok(), "a program that does not say whose it is");
        let refused = from(&format!("{} tonic/0.14", source(4))).unwrap_err();
        assert!(says_removed(&refused));
        assert!(refused.message().contains("node 4") && refused.message().contains("--join"), "{refused}");
        assert!(!says_removed(&check("theirs", 2).unwrap_err()));
    }

    #[test]
    fn only_calls_for_this_node_of_this_cluster_pass() {
        assert!(check("ours", 2).is_ok());
        let cluster = check("theirs", 2).unwrap_err();
        assert_eq!(cluster.code(), tonic::Code::FailedPrecondition);
        assert!(cluster.message().contains("theirs") && cluster.message().contains("ours"));
        let node = check("ours", 3).unwrap_err();
        assert!(node.message().contains("node 3") && node.message().contains("node 2"));
    }

    #[test]
    fn an_unmarked_call_is_refused() {
        let refused = guard().call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    }
}
