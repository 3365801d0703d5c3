//! What clients send as graphs, as the state is to have it: chunks in an order in which they can be computed, and of which
//! chunks tileables consist.
//!
//! | module | does |
//! |---|---|
//! | `nodes` | nodes of a message, one at a time, whether it came whole or in parts |
//! | `tileables` | a graph of tileables: decoded, tiled |
//! | `chunks` | a graph of chunks as its client wrote it |
//! | `argument` | what a worker is given for one chunk |
//! | `identity` | whether two graphs of one key are the same |

mod argument;
mod chunks;
mod identity;
mod nodes;
mod tileables;

use tonic::Status;
use tripod_proto::mars::v1 as pb;

use crate::domain::{Digest, Graph, GraphKind, Needs, RESOURCE_MILLI_MAX};

use self::nodes::Node;
pub(crate) use self::nodes::Source;

/// A graph that can be submitted. Nothing of it is in the log yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) digest: Digest,
    pub(crate) content: Graph,
    /// What is wanted.
    pub(crate) targets: Vec<String>,
}

/// What is to become of a graph, beside itself.
pub(crate) struct Wanted {
    /// None: all that nothing else is made of.
    pub(crate) target_keys: Vec<String>,
    pub(crate) options: Option<pb::GraphOptions>,
    pub(crate) helpers: tripod_tile::Helpers,
}

/// A node of one of the two kinds of graphs.
pub(crate) trait Planned: Node + Send + 'static {
    const KIND: GraphKind;

    /// What is submitted for a graph of such nodes. Takes as long as a million chunks take.
    ///
    /// # Errors
    /// The first node that is wrong, and why.
    fn plan(nodes: Source<Self>, wanted: Wanted) -> Result<Plan, Status>
    where
        Self: Sized;
}

impl Planned for pb::TileableNode {
    const KIND: GraphKind = GraphKind::Tileable;

    fn plan(nodes: Source<Self>, wanted: Wanted) -> Result<Plan, Status> {
        tileables::plan(nodes, wanted)
    }
}

impl Planned for pb::ChunkNode {
    const KIND: GraphKind = GraphKind::Chunk;

    fn plan(nodes: Source<Self>, wanted: Wanted) -> Result<Plan, Status> {
        chunks::plan(nodes, wanted)
    }
}

/// What a chunk's task needs, as its client says it. What every worker has is not said: of memory nobody knows, unless a
/// worker says what it has.
///
/// # Errors
/// More than the scheduler takes of anything: the task would be refused when its turn has come.
fn needs(resources: pb::Resources) -> Result<Needs, String> {
    let most = RESOURCE_MILLI_MAX / 1_000;
    for (what, is) in [("slots", resources.slots), (GPU, resources.gpu)] {
        if u64::from(is) > most {
            return Err(format!("resources: {is} {what}, and the limit is {most}"));
        }
    }
    let mut needs = Needs::default();
    if resources.slots > 1 {
        needs.cpus_milli = u64::from(resources.slots) * 1_000;
    }
    needs.memory_bytes = resources.memory_bytes;
    if resources.gpu > 0 {
        needs.named_milli.insert(GPU.to_owned(), u64::from(resources.gpu) * 1_000);
    }
    Ok(needs)
}

/// What a worker calls its GPUs.
const GPU: &str = "gpu";

/// The number of an element type as the state keeps it.
pub(crate) fn number(dtype: pb::ElementType) -> u8 {
    u8::try_from(i32::from(dtype)).unwrap_or_default()
}
