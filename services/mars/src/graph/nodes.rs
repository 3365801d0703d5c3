//! Nodes of a graph's message, one at a time: what came in parts is not decoded as a whole, as two bytes of it may be some
//! hundred in memory.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use tonic::Status;
use tripod_proto::mars::v1 as pb;

use crate::limits::NODES_MAX;
use crate::status;

/// Where a graph's nodes are.
pub(crate) enum Source<N> {
    /// They came in one request, whose bytes its connection has a bound for.
    Whole(Vec<N>),
    /// All parts of the graph's message, one after the other.
    Parts(Bytes),
}

/// The number of the field `nodes` in both messages.
const NODES: u32 = 1;

/// A node of a message, and how often a list of it may have an element.
pub(crate) trait Node: Message + Default {
    const INPUTS_MAX: usize;
    /// The field of its inputs.
    const INPUTS: u32;
    /// Fields that are lists of something, besides: each has few.
    const LISTS: &'static [u32];
}

/// Elements of a list of a node that are not its inputs: extents of axes, and where it is.
const LISTED_BYTES_MAX: usize = 4_096;

impl Node for pb::TileableNode {
    const INPUTS_MAX: usize = tripod_tile::limits::INPUTS_MAX;
    const INPUTS: u32 = 5;
    const LISTS: &'static [u32] = &[7];
}

impl Node for pb::ChunkNode {
    const INPUTS_MAX: usize = tripod_tile::limits::INPUTS_MAX;
    const INPUTS: u32 = 5;
    const LISTS: &'static [u32] = &[6, 7, 10];
}

impl<N: Node> Source<N> {
    /// Gives each node to somebody, in their order.
    ///
    /// # Errors
    /// The bytes are no graph, it has too many nodes, or whoever takes them refuses one.
    pub(crate) fn each(self, mut take: impl FnMut(N) -> Result<(), Status>) -> Result<(), Status> {
        match self {
            Self::Whole(nodes) => {
                check_count(nodes.len())?;
                nodes.into_iter().try_for_each(take)
            }
            Self::Parts(mut bytes) => {
                let mut count = 0;
                while let Some((field, value)) = next(&mut bytes)? {
                    let (NODES, Some(node)) = (field, value) else { continue };
                    count += 1;
                    check_count(count)?;
                    check_lists::<N>(node.clone())?;
                    take(N::decode(node).map_err(|error| broken(&error.to_string()))?)?;
                }
                Ok(())
            }
        }
    }
}

fn check_count(nodes: usize) -> Result<(), Status> {
    if nodes > NODES_MAX { Err(status::too_many("nodes of a graph", nodes, NODES_MAX)) } else { Ok(()) }
}

/// Looks at lists before they are made.
fn check_lists<N: Node>(mut node: Bytes) -> Result<(), Status> {
    let (mut inputs, mut listed) = (0, 0);
    while let Some((field, value)) = next(&mut node)? {
        if field == N::INPUTS {
            inputs += 1;
        } else if N::LISTS.contains(&field) {
            listed += 1 + value.map_or(0, |value| value.len());
        }
    }
    if inputs > N::INPUTS_MAX {
        return Err(status::too_many("inputs of a node", inputs, N::INPUTS_MAX));
    }
    if listed > LISTED_BYTES_MAX {
        return Err(status::too_many("bytes of a node's shape and index", listed, LISTED_BYTES_MAX));
    }
    Ok(())
}

/// The next field, with its bytes if it has a length.
fn next(bytes: &mut Bytes) -> Result<Option<(u32, Option<Bytes>)>, Status> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (field, wire) = decode_key(bytes).map_err(|error| broken(&error.to_string()))?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, field, bytes, DecodeContext::default())
            .map_err(|error| broken(&error.to_string()))?;
        return Ok(Some((field, None)));
    }
    let length = decode_varint(bytes).map_err(|error| broken(&error.to_string()))?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > bytes.len() {
        return Err(broken("it ends too early"));
    }
    Ok(Some((field, Some(bytes.split_to(length)))))
}

fn broken(why: &str) -> Status {
    status::invalid(&format!("part: all parts together are no graph: {why}"))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn graph(keys: &[&str]) -> pb::TileableGraph {
        let node = |key: &&str| pb::TileableNode { key: (*key).to_owned(), ..Default::default() };
        pb::TileableGraph { nodes: keys.iter().map(node).collect() }
    }

    fn keys(source: Source<pb::TileableNode>) -> Result<Vec<String>, Status> {
        let mut keys = Vec::new();
        source.each(|node| {
            keys.push(node.key);
            Ok(())
        })?;
        Ok(keys)
    }

    #[test]
    fn nodes_are_the_same_whole_and_in_parts() {
        let graph = graph(&["a", "b", ""]);
        let parts = Source::Parts(graph.encode_to_vec().into());
        assert_eq!(keys(parts).unwrap(), ["a", "b", ""]);
        assert_eq!(keys(Source::Whole(graph.nodes)).unwrap(), ["a", "b", ""]);
    }

    #[test]
    fn what_is_cut_or_no_message_is_refused() {
        let bytes = graph(&["abc"]).encode_to_vec();
        for cut in 1..bytes.len() {
            let refused = keys(Source::Parts(Bytes::copy_from_slice(&bytes[..cut]))).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{cut}");
        }
        assert!(keys(Source::Parts(Bytes::from_static(b"\xff\xff\xff"))).is_err());
    }

    #[test]
    fn lists_are_counted_before_they_are_made() {
        let inputs = vec![String::new(); pb::TileableNode::INPUTS_MAX + 1];
        let node = pb::TileableNode { inputs, ..Default::default() };
        let graph = pb::TileableGraph { nodes: vec![node] };
        let refused = keys(Source::Parts(graph.encode_to_vec().into())).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let shape = Some(pb::Extents { extents: vec![1; LISTED_BYTES_MAX] });
        let graph = pb::TileableGraph { nodes: vec![pb::TileableNode { shape, ..Default::default() }] };
        assert!(keys(Source::Parts(graph.encode_to_vec().into())).is_err());
    }
}
