//! Every call says which cluster and which node it is meant for. An address may be reused by
//! another process; without this check a node could vote in another cluster's election. And every connection
//! says whose it is, so that a node that was removed is told so.

use std::sync::Arc;

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};
use tripod_proto::code::Code;
use tripod_state::ids::FeatureLevel;
use tripod_state::level;

use super::proof::{PeerConnection, Proof};
use crate::base::local_identity::LocalIdentity;

const CLUSTER: &str = "tripod-cluster-id";
const TARGET: &str = "tripod-target-node";
/// Where HTTP clients name themselves. It is set once for a connection.
const SOURCE: &str = "user-agent";
const SOURCE_PREFIX: &str = "tripod-node/";
/// Behind that, the highest feature level that the node supports. Builds of the first level do not say.
const LEVEL_PREFIX: &str = "tripod-level/";
/// Marks a refusal after which the caller is to end: it was removed, or is too old.
const REMOVED: &str = "tripod-removed-node";

/// Marks the refusal of a call that was meant for another node of this cluster, with whom it came to.
const NODE: &str = "tripod-node";

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

/// What the connections of a node name themselves that supports feature levels up to `level_max`.
pub(crate) fn source(node: u64, level_max: FeatureLevel) -> String {
    if level_max == level::FIRST {
        return format!("{SOURCE_PREFIX}{node}");
    }
    format!("{SOURCE_PREFIX}{node} {LEVEL_PREFIX}{level_max}")
}

/// Which feature level a connection says that its node supports.
fn level_of(source: &str) -> FeatureLevel {
    let said = source.split(' ').find_map(|word| word.strip_prefix(LEVEL_PREFIX)?.parse().ok());
    said.map_or(level::FIRST, FeatureLevel)
}

/// Whose connection names itself so; `None` for one of a program that does not say.
fn node_of(source: &str) -> Option<u64> {
    source.strip_prefix(SOURCE_PREFIX)?.split(' ').next()?.parse().ok()
}

/// Of which node the connection of a call says that it is.
pub(crate) fn source_of(metadata: &MetadataMap) -> Option<u64> {
    node_of(metadata.get(SOURCE)?.to_str().ok()?)
}

/// What an operator is told of a node that was removed.
pub(crate) fn removed(cluster_id: &str, node: u64) -> String {
    format!(
        "T4201 node-removed: node {node} was removed from cluster {cluster_id}, and its id never comes back; to use \
         its machine again stop it, empty its data directory and start it with `tripod server --join HOST:PORT`, \
         where HOST:PORT is the client address of a member"
    )
}

/// Whether a call was refused because this node was removed, or is too old: it is to end.
pub(crate) fn says_end(status: &Status) -> bool {
    status.metadata().contains_key(REMOVED)
}

/// Which node of this cluster a call came to that was meant for another one; `None` if it was refused otherwise, or
/// by a build that does not say.
pub(crate) fn refused_by(status: &Status) -> Option<u64> {
    status.metadata().get(NODE)?.to_str().ok()?.parse().ok()
}

/// Tells why a node that supports feature levels up to this one is no member of this cluster any more, if so.
pub(crate) type WhyEnd = Arc<dyn Fn(u64, FeatureLevel) -> Option<String> + Send + Sync>;

/// Refuses calls that are not meant for this node, or that come from one that was removed or is too old.
#[derive(Clone)]
pub(crate) struct Guard {
    own: LocalIdentity,
    why_end: WhyEnd,
    proof: Option<Proof>,
}

impl Guard {
    /// Lets calls for this node pass.
    pub(crate) fn new(own: LocalIdentity, why_end: WhyEnd) -> Self {
        Self { own, why_end, proof: None }
    }

    /// The same for callers that have proved who they are.
    pub(crate) fn proved_by(self, proof: Option<Proof>) -> Self {
        Self { proof, ..self }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let marked =
            |key| request.metadata().get(key).and_then(|value| value.to_str().ok()).unwrap_or("(none)");
        if let Some(proof) = &self.proof
            && let Some(why) =
                proof.refusal(request.extensions().get::<PeerConnection>(), node_of(marked(SOURCE)))
        {
            proof.log(marked(SOURCE), &why);
            return Err(Status::permission_denied(format!("{}: {why}", Code::TlsRefused)));
        }
        let (cluster, target) = (marked(CLUSTER), marked(TARGET));
        if cluster != self.own.cluster_id {
            return Err(Status::failed_precondition(format!(
                "call for cluster {cluster} refused: this node belongs to cluster {}",
                self.own.cluster_id
            )));
        }
        // Before the target: whoever was away for long may know nobody but nodes in whose places others are now.
        if let Some(source) = node_of(marked(SOURCE))
            && let Some(reason) = (self.why_end)(source, level_of(marked(SOURCE)))
        {
            let mut refusal = Status::failed_precondition(reason);
            refusal.metadata_mut().insert(REMOVED, MetadataValue::from(source));
            return Err(refusal);
        }
        if target.parse() != Ok(self.own.node) {
            let text = format!("call for node {target} refused: this is node {}", self.own.node);
            let mut refusal = Status::failed_precondition(text);
            refusal.metadata_mut().insert(NODE, MetadataValue::from(self.own.node));
            return Err(refusal);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let why_end = |node: u64, level: FeatureLevel| match node {
            4 => Some(removed("ours", 4)),
            _ if level < FeatureLevel(2) => Some(format!("node {node} is too old")),
            _ => None,
        };
        Guard::new(LocalIdentity { node: 2, cluster_id: "ours".to_owned() }, Arc::new(why_end))
    }

    fn check(cluster: &str, target: u64) -> Result<(), Status> {
        let marked = Caller::new(cluster, target).unwrap().request(());
        guard().call(marked).map(|_| ())
    }

    #[test]
    fn a_node_that_is_too_old_is_told_so_with_the_mark_that_every_build_knows() {
        let from = |agent: &str| {
            let mut marked = Caller::new("ours", 2).unwrap().request(());
            marked.metadata_mut().insert(SOURCE, agent.parse().unwrap());
            guard().call(marked).map(|_| ())
        };
        assert!(from(&format!("{} tonic/0.14", source(3, FeatureLevel(2)))).is_ok());
        assert!(from(&format!("{} tonic/0.14", source(3, FeatureLevel(12)))).is_ok());
        let refused = from(&format!("{} tonic/0.14", source(3, level::FIRST))).unwrap_err();
        assert!(says_end(&refused) && refused.metadata().contains_key("tripod-removed-node"));
        assert!(refused.message().contains("node 3 is too old"), "{refused}");
        // What a build of the first level takes for the node's id.
        let words = source(3, FeatureLevel(2));
        assert_eq!(words.strip_prefix("tripod-node/").unwrap().split(' ').next(), Some("3"));
    }

    #[test]
    fn a_removed_node_is_told_so_and_what_to_do() {
        let from = |agent: &str| {
            let mut marked = Caller::new("ours", 2).unwrap().request(());
            marked.metadata_mut().insert(SOURCE, agent.parse().unwrap());
            guard().call(marked).map(|_| ())
        };
        assert!(from(&format!("{} tonic/0.14", source(3, FeatureLevel(2)))).is_ok());
        assert!(from("tonic/0.14").is_ok(), "a program that does not say whose it is");
        let refused = from(&format!("{} tonic/0.14", source(4, FeatureLevel(2)))).unwrap_err();
        assert!(says_end(&refused));
        assert!(refused.message().contains("node 4") && refused.message().contains("--join"), "{refused}");
        assert!(!says_end(&check("theirs", 2).unwrap_err()));

        let mut marked = Caller::new("ours", 3).unwrap().request(());
        marked.metadata_mut().insert(SOURCE, source(4, FeatureLevel(2)).parse().unwrap());
        let refused = guard().call(marked).map(|_| ()).unwrap_err();
        assert!(says_end(&refused), "also by one that it takes for another: {refused}");
    }

    #[test]
    fn only_calls_for_this_node_of_this_cluster_pass() {
        assert!(check("ours", 2).is_ok());
        let cluster = check("theirs", 2).unwrap_err();
        assert_eq!(cluster.code(), tonic::Code::FailedPrecondition);
        assert!(cluster.message().contains("theirs") && cluster.message().contains("ours"));
        let node = check("ours", 3).unwrap_err();
        assert!(node.message().contains("node 3") && node.message().contains("node 2"));
        assert_eq!((refused_by(&node), refused_by(&cluster)), (Some(2), None));
    }

    #[test]
    fn an_unmarked_call_is_refused() {
        let refused = guard().call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    }
}
