//! What a worker is given for one chunk: a value as the scheduler has it, whose bytes are those of a node.

use bytes::Bytes;
use prost::Message;
use tripod_proto::mars::v1 as pb;
use tripod_proto::ray;
use tripod_tile::{ChunkNode, Content, DType};

/// How an operator is written begins so, and goes on with its name.
const BEGINS: &[u8] = b"{\"op\":\"";
/// Bytes that most payloads fit.
const PAYLOAD_BYTES: usize = 96;

/// The node as a value.
pub(super) fn argument(node: &pb::ChunkNode) -> Bytes {
    let data = node.encode_to_vec().into();
    let value = ray::Obj { pyobj_data: Some(ray::PyObj { data }), ..Default::default() };
    value.encode_to_vec().into()
}

/// The message of a chunk that tiling made. `keys`: those of its inputs.
pub(super) fn message(node: ChunkNode, keys: Vec<String>) -> pb::ChunkNode {
    let (op_type, payload) = payload(&node);
    let extent = |extent: &tripod_tile::Extent| {
        extent.known().and_then(|extent| i64::try_from(extent).ok()).unwrap_or(-1)
    };
    let dtype = dtype_of(&node.content);
    pb::ChunkNode {
        key: node.key.0,
        op_type,
        op_version: 0,
        payload: payload.into(),
        inputs: keys,
        index: node.index.iter().map(|at| *at as u64).collect(),
        shape: Some(pb::Extents { extents: node.extents.iter().map(extent).collect() }),
        dtype: dtype.into(),
        resources: None,
        expect_workers: Vec::new(),
        retryable: true,
        data: node.data.into(),
    }
}

/// The operator's name; and how the chunk is made, as an object of JSON. What the message says itself is left out, extents
/// and the type of a tensor: there may be a million chunks, and all nodes keep what is written here. One buffer each.
fn payload(node: &ChunkNode) -> (String, Vec<u8>) {
    const PLAIN: &str = "an operator and a content have no keys but texts";
    let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
    payload.extend_from_slice(br#"{"operator":"#);
    let begin = payload.len();
    serde_json::to_writer(&mut payload, &node.operator).expect(PLAIN);
    let behind = payload.get(begin..).and_then(|operator| operator.strip_prefix(BEGINS)).unwrap_or_default();
    let name = behind.split(|byte| *byte == b'"').next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    if dtype_of(&node.content) == pb::ElementType::Unspecified {
        payload.extend_from_slice(br#","content":"#);
        serde_json::to_writer(&mut payload, &node.content).expect(PLAIN);
    }
    payload.push(b'}');
    (name, payload)
}

/// The type of a tensor's elements. What is no tensor has none.
pub(super) fn dtype_of(content: &Content) -> pb::ElementType {
    match content {
        Content::Tensor(dtype) => dtype_of_elements(*dtype),
        Content::Frame(_) | Content::Partial => pb::ElementType::Unspecified,
    }
}

pub(super) fn dtype_of_elements(dtype: DType) -> pb::ElementType {
    match dtype {
        DType::Bool => pb::ElementType::Bool,
        DType::I32 => pb::ElementType::I32,
        DType::I64 => pb::ElementType::I64,
        DType::F32 => pb::ElementType::F32,
        DType::F64 => pb::ElementType::F64,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tripod_tile::{ChunkKey, ChunkOperator, Column, ColumnType, Extent, Scalar};

    use super::*;

    fn node() -> ChunkNode {
        ChunkNode {
            key: ChunkKey("a:0.1".to_owned()),
            operator: ChunkOperator::Full { value: Scalar::Float(0.5) },
            inputs: Vec::new(),
            index: vec![0, 1],
            extents: vec![Extent::Known(4), Extent::Known(2)],
            content: Content::Tensor(DType::F64),
            data: Vec::new(),
        }
    }

    /// What stands in a chunk's own form stands here, under the same names, or the message has it.
    #[test]
    fn a_payload_is_the_node_as_it_is_written_without_what_the_message_has() {
        let (name, payload) = payload(&node());
        assert_eq!(name, "full");
        let expected = json!({"operator": {"op": "full", "value": "0.5"}});
        assert_eq!(serde_json::from_slice::<Value>(&payload).unwrap(), expected);
    }

    #[test]
    fn what_is_no_tensor_says_in_its_payload_what_it_is() {
        let partial = ChunkNode { content: Content::Partial, ..node() };
        let payload = |node: &ChunkNode| serde_json::from_slice::<Value>(&payload(node).1).unwrap();
        assert_eq!(payload(&partial)["content"], json!("partial"));
        let columns = vec![Column { name: "price".to_owned(), dtype: ColumnType::F64 }];
        let frame = ChunkNode { content: Content::Frame(columns), ..node() };
        assert_eq!(payload(&frame)["content"], json!({"frame": [{"name": "price", "dtype": "f64"}]}));
        assert_eq!(message(frame, Vec::new()).shape.unwrap().extents, [4, 2], "extents are the message's");
    }

    #[test]
    fn a_worker_finds_the_node_in_the_value() {
        let sent = message(node(), vec!["b:0".to_owned()]);
        let value = ray::Obj::decode(argument(&sent)).unwrap();
        let node = pb::ChunkNode::decode(value.pyobj_data.unwrap().data).unwrap();
        assert_eq!(node, sent);
        assert_eq!((node.key.as_str(), node.op_type.as_str()), ("a:0.1", "full"));
        assert_eq!(node.shape.as_ref().unwrap().extents, [4, 2]);
        assert_eq!(node.dtype(), pb::ElementType::F64);
        assert_eq!((node.index.as_slice(), node.inputs.as_slice()), (&[0, 1][..], &["b:0".to_owned()][..]));
    }
}
