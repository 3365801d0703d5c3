//! A graph of chunks as its client wrote it: any operator goes, and its attributes are the worker's affair.

use std::collections::BTreeSet;

use tonic::Status;
use tripod_proto::mars::v1 as pb;
use tripod_tile::limits::{CHUNK_EDGES_MAX, CHUNK_KEY_BYTES_MAX, DIMS_MAX, INPUTS_MAX};

use super::argument::argument;
use super::identity::Hasher;
use super::nodes::Source;
use super::{Plan, Wanted, needs, number};
use crate::domain::{Chunk, Graph, Input, arrange};
use crate::limits::{CHUNK_ARGUMENT_BYTES_MAX, OPERATOR_BYTES_MAX};
use crate::status;

/// Decodes a graph, and finds an order for its chunks.
///
/// # Errors
/// The first node that is wrong, and why.
pub(crate) fn plan(source: Source<pb::ChunkNode>, wanted: Wanted) -> Result<Plan, Status> {
    let mut hasher = Hasher::new("chunks", &wanted);
    let (mut chunks, mut edges) = (Vec::new(), 0);
    source.each(|node| {
        hasher.node(&node);
        check(&node)?;
        edges += node.inputs.len();
        if edges > CHUNK_EDGES_MAX {
            return Err(status::too_many("inputs of chunks", edges, CHUNK_EDGES_MAX));
        }
        chunks.push(chunk(node)?);
        Ok(())
    })?;
    let targets = targets(&chunks, wanted.target_keys)?;
    let chunks = arrange(chunks).map_err(|(key, why)| refused(&key, why))?;
    Ok(Plan { digest: hasher.digest(), content: Graph { chunks, tileables: Vec::new() }, targets })
}

fn refused(key: &str, why: &str) -> Status {
    status::invalid(&format!("chunk {}: {why}", shown(key)))
}

fn shown(key: &str) -> String {
    key.chars().take(CHUNK_KEY_BYTES_MAX).collect()
}

fn check(node: &pb::ChunkNode) -> Result<(), Status> {
    let wrong = |why: String| Err(refused(&node.key, &why));
    if node.key.is_empty() || node.key.len() > CHUNK_KEY_BYTES_MAX || node.key.contains(char::is_control) {
        return wrong(format!("no key: 1 to {CHUNK_KEY_BYTES_MAX} bytes of text"));
    }
    if node.op_type.is_empty() || node.op_type.len() > OPERATOR_BYTES_MAX {
        return wrong(format!("no operator: 1 to {OPERATOR_BYTES_MAX} bytes of text"));
    }
    if node.inputs.len() > INPUTS_MAX {
        return wrong(format!("more inputs than {INPUTS_MAX}"));
    }
    if node.inputs.iter().any(|input| input.len() > CHUNK_KEY_BYTES_MAX) {
        return wrong("an input whose key is none".to_owned());
    }
    let dims = node.shape.as_ref().map_or(0, |shape| shape.extents.len());
    if dims.max(node.index.len()) > DIMS_MAX {
        return wrong(format!("more axes than {DIMS_MAX}"));
    }
    if pb::ElementType::try_from(node.dtype).is_err() {
        return wrong(format!("dtype: there is no {}", node.dtype));
    }
    if !node.expect_workers.is_empty() {
        let why = "expect_workers: where a chunk is made is the scheduler's choice; name none";
        let text = format!("chunk {}: {why}", shown(&node.key));
        return Err(status::unimplemented(&text));
    }
    Ok(())
}

fn chunk(node: pb::ChunkNode) -> Result<Chunk, Status> {
    let argument = argument(&node);
    if argument.len() > CHUNK_ARGUMENT_BYTES_MAX {
        let why = format!("{} bytes, and the limit is {CHUNK_ARGUMENT_BYTES_MAX}", argument.len());
        return Err(refused(&node.key, &why));
    }
    let unknown = |extent: i64| if extent < 0 { -1 } else { extent };
    let needs = needs(node.resources.unwrap_or_default()).map_err(|why| refused(&node.key, &why))?;
    Ok(Chunk {
        element_type: number(node.dtype()),
        needs,
        key: node.key,
        argument,
        // Those that are nodes of the graph become places in it.
        inputs: node.inputs.into_iter().map(Input::Session).collect(),
        index: node.index,
        shape: node.shape.unwrap_or_default().extents.into_iter().map(unknown).collect(),
        is_retryable: node.retryable,
    })
}

/// What is wanted, each once; if nothing is named, all that nothing else is made of.
fn targets(chunks: &[Chunk], wanted: Vec<String>) -> Result<Vec<String>, Status> {
    if wanted.is_empty() {
        let read = chunks.iter().flat_map(|chunk| &chunk.inputs).filter_map(|input| match input {
            Input::Session(key) => Some(key.as_str()),
            Input::Chunk(_) => None,
        });
        let read: BTreeSet<&str> = read.collect();
        let unread = chunks.iter().filter(|chunk| !read.contains(chunk.key.as_str()));
        return Ok(unread.map(|chunk| chunk.key.clone()).collect());
    }
    let known: BTreeSet<&str> = chunks.iter().map(|chunk| chunk.key.as_str()).collect();
    if let Some(unknown) = wanted.iter().find(|key| !known.contains(key.as_str())) {
        let text = format!("target_keys: no chunk of the graph is {}", shown(unknown));
        return Err(status::invalid(&text));
    }
    let mut seen = BTreeSet::new();
    Ok(wanted.into_iter().filter(|key| seen.insert(key.clone())).collect())
}

#[cfg(test)]
mod tests {
    use tripod_tile::Helpers;

    use super::*;
    use crate::domain::Place;

    fn node(key: &str, inputs: &[&str]) -> pb::ChunkNode {
        pb::ChunkNode {
            key: key.to_owned(),
            op_type: "mine".to_owned(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            ..Default::default()
        }
    }

    fn planned(nodes: Vec<pb::ChunkNode>, targets: &[&str]) -> Result<Plan, Status> {
        let target_keys = targets.iter().map(|target| (*target).to_owned()).collect();
        plan(Source::Whole(nodes), Wanted { target_keys, options: None, helpers: Helpers::Refused })
    }

    #[test]
    fn chunks_stand_behind_their_inputs_whatever_the_order_was_and_others_are_the_sessions() {
        let nodes = vec![node("c", &["b", "a", "elsewhere"]), node("b", &["a"]), node("a", &[])];
        let plan = planned(nodes, &[]).unwrap();
        let keys: Vec<_> = plan.content.chunks.iter().map(|chunk| chunk.key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        let known = Input::Session("elsewhere".to_owned());
        assert_eq!(plan.content.chunks[2].inputs, [Input::Chunk(Place(1)), Input::Chunk(Place(0)), known]);
        assert_eq!(plan.targets, ["c"]);
    }

    #[test]
    fn targets_are_each_wanted_once() {
        let nodes = vec![node("a", &[]), node("b", &["a"])];
        assert_eq!(planned(nodes, &["a", "a"]).unwrap().targets, ["a"]);
    }

    #[test]
    fn cycles_keys_twice_and_unknown_targets_are_refused_with_the_node() {
        let text = |nodes, targets: &[&str]| planned(nodes, targets).unwrap_err().message().to_owned();
        let cycle = vec![node("a", &["b"]), node("b", &["a"])];
        assert!(text(cycle, &[]).starts_with("chunk a: "));
        assert!(text(vec![node("a", &["a"])], &[]).starts_with("chunk a: "));
        assert!(text(vec![node("a", &[]), node("a", &[])], &[]).starts_with("chunk a: "));
        assert_eq!(text(vec![node("a", &[])], &["b"]), "target_keys: no chunk of the graph is b");
        assert!(text(vec![node("", &[])], &[]).contains("no key"));
        let mut odd = node("a", &[]);
        odd.dtype = 99;
        assert_eq!(text(vec![odd], &[]), "chunk a: dtype: there is no 99");
    }
}
