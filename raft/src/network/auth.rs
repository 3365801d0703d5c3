//! Every call says which cluster and which node it is meant for. An address may be reused by
//! another process; without this check a node could vote in another cluster's election.

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

const CLUSTER: &str = "tripod-cluster-id";
const TARGET: &str = "tripod-target-node";

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

/// Refuses calls that are not meant for this node.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    cluster_id: String,
    node: String,
}

impl Guard {
    /// Lets calls for `node` of `cluster_id` pass.
    pub(crate) fn new(cluster_id: &str, node: u64) -> Self {
        Self { cluster_id: cluster_id.to_owned(), node: node.to_string() }
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
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cluster: &str, target: u64) -> Result<(), Status> {
        let marked = Caller::new(cluster, target).unwrap().request(());
        Guard::new("ours", 2).call(marked).map(|_| ())
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
        let refused = Guard::new("ours", 2).call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    }
}
