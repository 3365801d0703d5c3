//! A graph of tileables: decoded, and tiled.

use std::collections::BTreeMap;

use tonic::Status;
use tripod_proto::mars::v1 as pb;
use tripod_tile::{
    ChunkGraph, ChunkId, ChunkKey, ChunkOperator, ColumnType, Content, DType, Declared, Reason, Refusal,
    Target, Tileable, TileableGraph, TileableKey, fuse, limits, read_operator, tile,
};

use super::argument::{argument, dtype_of, dtype_of_elements, message};
use super::identity::Hasher;
use super::nodes::Source;
use super::{Plan, Wanted, needs, number};
use crate::domain::{self, Chunk, Graph, Input, Needs, Place, TileableKind};
use crate::limits::CHUNK_ARGUMENT_BYTES_MAX;
use crate::status;

/// What clients say of tileables that tiling need not know.
#[derive(Default)]
struct Beside {
    needs: BTreeMap<String, Needs>,
    names: BTreeMap<String, String>,
}

/// Decodes a graph and tiles it. Takes as long as a million chunks take.
///
/// # Errors
/// The first node that cannot be decoded or tiled, and why.
pub(crate) fn plan(source: Source<pb::TileableNode>, wanted: Wanted) -> Result<Plan, Status> {
    let mut hasher = Hasher::new("tileables", &wanted);
    let is_fused = wanted.options.as_ref().is_some_and(|options| options.fuse);
    let mut graph = TileableGraph::default();
    let mut beside = Beside::default();
    source.each(|node| {
        hasher.node(&node);
        if graph.tileables.len() >= limits::TILEABLES_MAX {
            let (is, most) = (graph.tileables.len() + 1, limits::TILEABLES_MAX);
            return Err(status::too_many("tileables of a graph", is, most));
        }
        graph.tileables.push(tileable(node, &mut beside)?);
        Ok(())
    })?;
    graph.targets = wanted.target_keys.into_iter().map(TileableKey).collect();
    let tiled = tile(&graph, wanted.helpers).map_err(|refusal| status::untiled(&refusal))?;
    drop(graph);
    let at_one_place =
        |one: &ChunkKey, other: &ChunkKey| beside.of_chunk(&one.0) == beside.of_chunk(&other.0);
    let tiled = if is_fused { fuse(tiled, at_one_place) } else { tiled };
    let (content, targets) = of_tiled(tiled, &beside)?;
    Ok(Plan { digest: hasher.digest(), content, targets })
}

fn tileable(node: pb::TileableNode, beside: &mut Beside) -> Result<Tileable, Status> {
    let key = TileableKey(node.key);
    let shown = || TileableKey(key.0.chars().take(limits::KEY_CHARS_MAX).collect());
    let refused = |reason| status::untiled(&Refusal { node: Some(shown()), reason });
    if node.op_version > 1 || node.output_index > 0 {
        let why = "op_version above 1 and output_index above 0 mean nothing here".to_owned();
        return Err(refused(Reason::Attributes { operator: node.op_type, why }));
    }
    let operator = read_operator(&node.op_type, &node.payload).map_err(refused)?;
    let declared = match (node.dtype, node.shape) {
        (0, _) => None,
        (dtype, shape) => Some(Declared {
            shape: shape.unwrap_or_default().extents.into_iter().map(|at| u64::try_from(at).ok()).collect(),
            dtype: pb::ElementType::try_from(dtype).ok().and_then(elements).ok_or_else(|| {
                let why = format!("dtype: {dtype} is none of a tensor's");
                refused(Reason::Attributes { operator: node.op_type.clone(), why })
            })?,
        }),
    };
    let needs = needs(node.resources.unwrap_or_default())
        .map_err(|why| status::invalid(&format!("tileable {}: {why}", shown().0)))?;
    if needs != Needs::default() {
        beside.needs.insert(key.0.clone(), needs);
    }
    if !node.name.is_empty() {
        if node.name.len() > limits::KEY_CHARS_MAX {
            return Err(refused(Reason::Text { bytes: node.name.len(), most: limits::KEY_CHARS_MAX }));
        }
        beside.names.insert(key.0.clone(), node.name);
    }
    let inputs = node.inputs.into_iter().map(TileableKey).collect();
    Ok(Tileable { key, operator, inputs, data: node.data.into(), declared })
}

fn elements(dtype: pb::ElementType) -> Option<DType> {
    match dtype {
        pb::ElementType::Bool => Some(DType::Bool),
        pb::ElementType::I32 => Some(DType::I32),
        pb::ElementType::I64 => Some(DType::I64),
        pb::ElementType::F32 => Some(DType::F32),
        pb::ElementType::F64 => Some(DType::F64),
        pb::ElementType::Text | pb::ElementType::Unspecified => None,
    }
}

/// Chunks that are fetched are there already; all others are made.
fn of_tiled(tiled: ChunkGraph, beside: &Beside) -> Result<(Graph, Vec<String>), Status> {
    let ChunkGraph { nodes, targets } = tiled;
    let mut inputs: Vec<Input> = Vec::with_capacity(nodes.len());
    let mut keys: Vec<String> = Vec::with_capacity(nodes.len());
    let mut chunks = Vec::new();
    for node in nodes {
        if let ChunkOperator::Fetch { chunk } = &node.operator {
            inputs.push(Input::Session(chunk.clone()));
            keys.push(chunk.clone());
            continue;
        }
        let reads = node.inputs.iter().map(|ChunkId(at)| inputs[*at].clone()).collect();
        let names = node.inputs.iter().map(|ChunkId(at)| keys[*at].clone()).collect();
        let place = u32::try_from(chunks.len()).expect("fewer than the bound of tiling");
        inputs.push(Input::Chunk(Place(place)));
        keys.push(node.key.0.clone());
        let element_type = number(dtype_of(&node.content));
        let chunk = message(node, names);
        chunks.push(made(chunk, reads, element_type, beside)?);
    }
    let target_keys = targets.iter().map(|target| target.key.0.clone()).collect();
    let tileables = targets.into_iter().map(|target| tileable_of(target, &inputs, beside)).collect();
    Ok((Graph { chunks, tileables }, target_keys))
}

fn made(sent: pb::ChunkNode, inputs: Vec<Input>, element_type: u8, beside: &Beside) -> Result<Chunk, Status> {
    let argument = argument(&sent);
    if argument.len() > CHUNK_ARGUMENT_BYTES_MAX {
        let text = format!(
            "chunk {}: {} bytes of data and attributes, and the limit is {CHUNK_ARGUMENT_BYTES_MAX}; cut it into smaller chunks",
            sent.key,
            argument.len()
        );
        return Err(status::invalid(&text));
    }
    let index = if domain::key_says_index(&sent.key, &sent.index) { Vec::new() } else { sent.index };
    Ok(Chunk {
        needs: beside.of_chunk(&sent.key),
        key: sent.key,
        argument,
        inputs,
        index,
        shape: sent.shape.unwrap_or_default().extents,
        element_type,
        is_retryable: true,
    })
}

fn tileable_of(target: Target, inputs: &[Input], beside: &Beside) -> domain::Tileable {
    let extent =
        |part: &tripod_tile::Extent| part.known().and_then(|extent| i64::try_from(extent).ok()).unwrap_or(-1);
    let (kind, columns) = match &target.content {
        Content::Frame(columns) => (TileableKind::Frame, columns.iter().map(column).collect()),
        Content::Tensor(_) | Content::Partial => (TileableKind::Tensor, Vec::new()),
    };
    domain::Tileable {
        kind,
        columns,
        element_type: number(dtype_of(&target.content)),
        name: beside.names.get(&target.key.0).cloned().unwrap_or_default(),
        key: target.key.0,
        nsplits: target.splits.0.iter().map(|parts| parts.iter().map(extent).collect()).collect(),
        chunks: target.chunks.iter().map(|ChunkId(at)| inputs[*at].clone()).collect(),
    }
}

fn column(column: &tripod_tile::Column) -> domain::Column {
    let dtype = match column.dtype {
        ColumnType::Text => pb::ElementType::Text,
        other => other.dtype().map_or(pb::ElementType::Unspecified, dtype_of_elements),
    };
    domain::Column { name: column.name.clone(), element_type: number(dtype) }
}

impl Beside {
    /// What the chunk's tileable needs. A chunk is named after it.
    fn of_chunk(&self, chunk: &str) -> Needs {
        if self.needs.is_empty() {
            return Needs::default();
        }
        let tileable = chunk.split([':', '~']).next().unwrap_or_default();
        self.needs.get(tileable).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tonic::Code;
    use tripod_tile::Helpers;

    use super::*;

    fn node(key: &str, op_type: &str, payload: &str, inputs: &[&str]) -> pb::TileableNode {
        pb::TileableNode {
            key: key.to_owned(),
            op_type: op_type.to_owned(),
            payload: payload.as_bytes().to_vec().into(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            ..Default::default()
        }
    }

    fn planned(nodes: Vec<pb::TileableNode>) -> Result<Plan, Status> {
        let wanted = Wanted { target_keys: Vec::new(), options: None, helpers: Helpers::Refused };
        plan(Source::Whole(nodes), wanted)
    }

    const ZEROS: &str = r#"{"shape":[4],"dtype":"f64","chunks":2}"#;

    #[test]
    fn chunks_stand_behind_their_inputs_and_targets_have_theirs() {
        let mut sum = node("s", "reduce", r#"{"function":"sum"}"#, &["a"]);
        sum.resources = Some(pb::Resources { memory_bytes: 7, gpu: 2, slots: 1 });
        sum.name = "total".to_owned();
        let plan = planned(vec![sum, node("a", "zeros", ZEROS, &[])]).unwrap();
        assert_eq!(plan.targets, ["s"]);
        for (place, chunk) in plan.content.chunks.iter().enumerate() {
            for input in &chunk.inputs {
                assert!(matches!(input, Input::Chunk(at) if (at.0 as usize) < place), "{chunk:?}");
            }
            let is_sum = chunk.key.starts_with('s');
            assert_eq!(chunk.needs.memory_bytes, if is_sum { 7 } else { 0 }, "{}", chunk.key);
            assert_eq!(chunk.needs.named_milli.get("gpu").copied(), is_sum.then_some(2_000), "{}", chunk.key);
            assert_eq!(chunk.needs.cpus_milli, 0, "every worker has one");
        }
        let [target] = &plan.content.tileables[..] else { panic!("{:?}", plan.content.tileables) };
        let f64_number = number(pb::ElementType::F64);
        assert_eq!((target.name.as_str(), target.element_type), ("total", f64_number));
        assert_eq!((target.nsplits.len(), target.chunks.len()), (0, 1));
    }

    #[test]
    fn what_is_fetched_is_no_chunk_of_the_graph() {
        let payload = r#"{"content":{"tensor":"f64"},"splits":[[2,null]],"chunks":["x:0","x:1"]}"#;
        let negative = node("n", "unary", r#"{"function":"neg"}"#, &["x"]);
        let plan = planned(vec![node("x", "fetch", payload, &[]), negative]).unwrap();
        let chunks = &plan.content.chunks;
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0].inputs, [Input::Session("x:0".to_owned())]);
        assert_eq!((chunks[0].shape.as_slice(), chunks[1].shape.as_slice()), (&[2][..], &[-1][..]));
        let [target] = &plan.content.tileables[..] else { panic!("{:?}", plan.content.tileables) };
        assert_eq!(target.nsplits, [[2, -1]]);
    }

    #[test]
    fn a_graph_is_the_same_whole_and_in_parts_and_another_with_other_options() {
        let nodes = vec![node("a", "zeros", ZEROS, &[])];
        let parts = pb::TileableGraph { nodes: nodes.clone() }.encode_to_vec();
        let wanted = |priority| Wanted {
            target_keys: Vec::new(),
            options: Some(pb::GraphOptions { priority, ..Default::default() }),
            helpers: Helpers::Refused,
        };
        let whole = plan(Source::Whole(nodes.clone()), wanted(0)).unwrap();
        assert_eq!(plan(Source::Parts(parts.into()), wanted(0)).unwrap(), whole);
        assert_ne!(plan(Source::Whole(nodes), wanted(1)).unwrap().digest, whole.digest);
    }

    #[test]
    fn refusals_name_node_and_reason() {
        let code_and_text = |nodes| {
            let status = planned(nodes).unwrap_err();
            (status.code(), status.message().to_owned())
        };
        let (code, text) = code_and_text(vec![node("a", "sort", "", &[])]);
        assert_eq!((code, text.as_str()), (Code::Unimplemented, "tileable a: unknown operator sort"));
        let (code, text) = code_and_text(vec![node("a", "cast", r#"{"dtype":"f16"}"#, &["b"])]);
        assert!(
            code == Code::InvalidArgument && text.starts_with("tileable a: attributes of cast:"),
            "{text}"
        );
        let cycle = r#"{"function":"neg"}"#;
        let (code, text) =
            code_and_text(vec![node("a", "unary", cycle, &["b"]), node("b", "unary", cycle, &["a"])]);
        assert!(code == Code::InvalidArgument && text.contains("in a cycle"), "{text}");
        let mut declared = node("a", "zeros", ZEROS, &[]);
        declared.dtype = pb::ElementType::Text.into();
        assert!(code_and_text(vec![declared]).1.contains("dtype: 6"));
        let mut versioned = node("a", "zeros", ZEROS, &[]);
        versioned.op_version = 2;
        assert!(code_and_text(vec![versioned]).1.starts_with("tileable a: attributes of zeros:"));
    }

    #[test]
    fn bytes_that_do_not_fit_an_order_are_refused_with_the_chunk() {
        let count = CHUNK_ARGUMENT_BYTES_MAX / 8 + 1;
        let payload = format!(r#"{{"shape":[{count}],"dtype":"f64"}}"#);
        let mut brought = node("a", "from_bytes", &payload, &[]);
        brought.data = vec![0; count * 8].into();
        let refused = planned(vec![brought]).unwrap_err();
        assert!(refused.message().contains("chunk a:0") && refused.message().contains("smaller chunks"));
    }
}
