//! The chunks of a graph, as a picture for Graphviz.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use prost::Message as _;
use tripod_client::mars_wire::ChunkNode;
use tripod_proto::ray::CompGraph;

/// The function of tasks that make chunks.
const CHUNK_FUNCTION: &[u8] = b"tripod.mars.chunk";

/// What is drawn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// Chunks by their keys, and how far they are.
    states: BTreeMap<String, String>,
    /// What their tasks say.
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Node {
    operator: String,
    inputs: Vec<String>,
}

impl Drawn {
    /// The chunks of a graph; how each is made says its task, if the scheduler remembers that.
    pub(crate) fn of(states: HashMap<String, String>, tasks: &CompGraph) -> Self {
        let mut nodes = BTreeMap::new();
        let tasks = tasks.operation.iter().filter_map(|operation| operation.task.as_ref());
        for task in tasks.filter(|task| task.name[..] == *CHUNK_FUNCTION) {
            let value = task.arg.first().and_then(|first| first.obj.as_ref()?.pyobj_data.as_ref());
            let Some(node) = value.and_then(|value| ChunkNode::decode(value.data.clone()).ok()) else {
                continue;
            };
            if states.contains_key(&node.key) {
                nodes.insert(node.key, Node { operator: node.op_type, inputs: node.inputs });
            }
        }
        Self { states: states.into_iter().collect(), nodes }
    }
}

/// The picture in Graphviz's language.
pub(crate) fn dot(drawn: &Drawn) -> String {
    let mut text = String::from("digraph chunks {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
    for (key, state) in &drawn.states {
        let operator = drawn.nodes.get(key).map_or("", |node| node.operator.as_str());
        let label = if operator.is_empty() {
            escaped(key)
        } else {
            format!("{}\\n{}", escaped(key), escaped(operator))
        };
        let colour = colour(state);
        writeln!(text, "  \"{}\" [label=\"{label}\", fillcolor={colour}];", escaped(key))
            .expect("writing to memory");
    }
    for (key, node) in &drawn.nodes {
        for input in &node.inputs {
            writeln!(text, "  \"{}\" -> \"{}\";", escaped(input), escaped(key)).expect("writing to memory");
        }
    }
    text + "}"
}

fn colour(state: &str) -> &'static str {
    match state {
        "running" => "khaki",
        "succeeded" => "palegreen",
        "errored" => "tomato",
        "cancelled" => "plum",
        _ => "lightgrey",
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use tripod_proto::ray::{Obj, Operation, PyObj, Task, Value};

    use super::*;

    fn task(name: &str, key: &str, inputs: &[&str]) -> Operation {
        let node = ChunkNode {
            key: key.to_owned(),
            op_type: "add".to_owned(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            ..Default::default()
        };
        let data = node.encode_to_vec().into();
        let obj = Some(Obj { pyobj_data: Some(PyObj { data }), ..Obj::default() });
        let task =
            Task { name: name.as_bytes().to_vec().into(), arg: vec![Value { id: 0, obj }], result: vec![1] };
        Operation { task: Some(task), ..Operation::default() }
    }

    #[test]
    fn the_picture_has_every_chunk_with_its_colour_and_lines_from_what_it_is_made_of() {
        let states = [("b:0", "succeeded"), ("a:0", "pending"), ("c\"", "errored")];
        let states = states.map(|(key, state)| (key.to_owned(), state.to_owned())).into();
        let tasks = [
            task("tripod.mars.chunk", "b:0", &["a:0"]),
            task("tripod.mars.chunk", "of another graph", &[]),
            task("other", "a:0", &["b:0"]),
        ];
        let picture = dot(&Drawn::of(states, &CompGraph { operation: tasks.into() }));
        let wanted = "digraph chunks {\n  rankdir=LR;\n  node [shape=box, style=filled];\n  \
                      \"a:0\" [label=\"a:0\", fillcolor=lightgrey];\n  \
                      \"b:0\" [label=\"b:0\\nadd\", fillcolor=palegreen];\n  \
                      \"c\\\"\" [label=\"c\\\"\", fillcolor=tomato];\n  \"a:0\" -> \"b:0\";\n}";
        assert_eq!(picture, wanted);
    }
}
