//! `tripod ray graph`: who made what out of what, as a picture for Graphviz or as data.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use tripod_proto::ray::{CompGraph, Obj, Operation, Value};

use crate::output::Table;

/// The creator of what a driver does outside of any task.
const ROOT: u64 = u64::MAX;
/// The creator of what a worker does that has no task.
const NOBODY: u64 = u64::MAX - 1;

/// Hexadecimal digits behind a function's name, as Python's drivers write them.
const DIGEST_CHARS: usize = 12;

/// An operation. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct OperationView {
    operation: u64,
    /// `task`, `put` or `get`.
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    function: String,
    /// The task that made it; none for a driver's.
    creator: Option<u64>,
    /// Objects that it waits for.
    arguments: Vec<u64>,
    /// Objects that it makes.
    results: Vec<u64>,
}

/// The operations that are remembered, the first of which has this id.
pub(crate) fn operations(graph: &CompGraph, first: u64) -> Vec<OperationView> {
    (first..).zip(&graph.operation).filter_map(|(id, operation)| view(id, operation)).collect()
}

fn view(id: u64, operation: &Operation) -> Option<OperationView> {
    let creator = Some(operation.creator_operationid).filter(|creator| ![ROOT, NOBODY].contains(creator));
    let plain = |kind, arguments, results| OperationView {
        operation: id,
        kind,
        function: String::new(),
        creator,
        arguments,
        results,
    };
    if let Some(task) = &operation.task {
        let by_reference = |argument: &Value| argument.obj.as_ref().map_or(Some(argument.id), |_: &Obj| None);
        let arguments = task.arg.iter().filter_map(by_reference).collect();
        let function = String::from_utf8_lossy(&task.name).into_owned();
        return Some(OperationView { function, ..plain("task", arguments, task.result.clone()) });
    }
    if let Some(put) = &operation.put {
        return Some(plain("put", Vec::new(), vec![put.objectid]));
    }
    operation.get.as_ref().map(|get| plain("get", vec![get.objectid], Vec::new()))
}

/// The graph in Graphviz's language. Boxes are operations, red those of the tasks that failed, and ellipses objects; a
/// dashed line leads from a task to what it made while it ran.
pub(crate) fn dot(operations: &[OperationView], failed: &BTreeSet<u64>) -> String {
    let mut text = String::from("digraph tasks {\n  rankdir=LR;\n");
    let mut objects: BTreeSet<u64> = BTreeSet::new();
    for one in operations {
        let id = one.operation;
        let label = match one.kind {
            "task" => format!("{}\\n#{id}", escaped(short(&one.function))),
            kind => format!("{kind} #{id}"),
        };
        let colour = if failed.contains(&id) { ", color=red, fontcolor=red" } else { "" };
        writeln!(text, "  op{id} [shape=box, label=\"{label}\"{colour}];").expect("writing to memory");
        objects.extend(one.arguments.iter().chain(&one.results));
    }
    for object in objects {
        writeln!(text, "  obj{object} [label=\"{object}\"];").expect("writing to memory");
    }
    for one in operations {
        let id = one.operation;
        for object in &one.arguments {
            writeln!(text, "  obj{object} -> op{id};").expect("writing to memory");
        }
        for object in &one.results {
            writeln!(text, "  op{id} -> obj{object};").expect("writing to memory");
        }
        if let Some(creator) = one.creator {
            writeln!(text, "  op{creator} -> op{id} [style=dashed];").expect("writing to memory");
        }
    }
    text + "}"
}

/// The operations, a line each.
pub(crate) fn list(operations: &[OperationView]) -> String {
    let ids = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    let mut table = Table::new(&["OPERATION", "KIND", "FUNCTION", "CREATOR", "ARGUMENTS", "RESULTS"]);
    for one in operations {
        table.row(vec![
            one.operation.to_string(),
            one.kind.to_owned(),
            one.function.clone(),
            one.creator.map(|creator| creator.to_string()).unwrap_or_default(),
            ids(&one.arguments),
            ids(&one.results),
        ]);
    }
    table.render()
}

/// A function's name without what tells programs apart: the digest that Python's drivers add, and the name of every
/// main program.
fn short(function: &str) -> &str {
    let digest = |text: &str| text.len() == DIGEST_CHARS && text.chars().all(|c| c.is_ascii_hexdigit());
    let name = function.rsplit_once(':').filter(|(_, last)| digest(last)).map_or(function, |(name, _)| name);
    name.strip_prefix("__main__.").unwrap_or(name)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use tripod_proto::ray::{Get, Put, Task};

    use super::*;

    fn graph() -> CompGraph {
        let by_value = Value { id: 0, obj: Some(Obj::default()) };
        let by_reference = Value { id: 0, obj: None };
        let task = Task { name: "m.\"f\"".into(), arg: vec![by_value, by_reference], result: vec![1] };
        let operation = [
            Operation { put: Some(Put { objectid: 0 }), creator_operationid: ROOT, ..Operation::default() },
            Operation { task: Some(task), creator_operationid: NOBODY, ..Operation::default() },
            Operation::default(),
            Operation { get: Some(Get { objectid: 1 }), creator_operationid: 1, ..Operation::default() },
        ];
        CompGraph { operation: operation.into() }
    }

    #[test]
    fn operations_keep_their_ids_and_the_forgotten_ones_are_left_out() {
        let operations = operations(&graph(), 10);
        let ids: Vec<_> = operations.iter().map(|one| (one.operation, one.kind, one.creator)).collect();
        assert_eq!(ids, [(10, "put", None), (11, "task", None), (13, "get", Some(1))]);
        assert_eq!((&operations[1].arguments[..], &operations[1].results[..]), (&[0][..], &[1][..]));
    }

    #[test]
    fn the_picture_has_every_operation_object_and_line() {
        let picture = dot(&operations(&graph(), 0), &BTreeSet::new());
        let wanted = "digraph tasks {\n  rankdir=LR;\n  op0 [shape=box, label=\"put #0\"];\n  \
                      op1 [shape=box, label=\"m.\\\"f\\\"\\n#1\"];\n  op3 [shape=box, label=\"get #3\"];\n  \
                      obj0 [label=\"0\"];\n  obj1 [label=\"1\"];\n  op0 -> obj0;\n  obj0 -> op1;\n  op1 -> obj1;\n  \
                      obj1 -> op3;\n  op1 -> op3 [style=dashed];\n}";
        assert_eq!(picture, wanted);
    }
    /// The number is that of the walk-through of a new operator.
    #[test]
    fn n42_a_failed_task_is_red_and_labels_are_short() {
        let task = |name: &str| Operation {
            task: Some(Task { name: name.as_bytes().to_vec().into(), ..Task::default() }),
            creator_operationid: ROOT,
            ..Operation::default()
        };
        let names = ["__main__.add:4fdd1f06df57", "maths.square", "model.load:4fdd1f06df57", "a:b"];
        let graph = CompGraph { operation: names.map(task).into() };
        let picture = dot(&operations(&graph, 7), &BTreeSet::from([8]));
        for line in [
            "op7 [shape=box, label=\"add\\n#7\"];",
            "op8 [shape=box, label=\"maths.square\\n#8\", color=red, fontcolor=red];",
            "op9 [shape=box, label=\"model.load\\n#9\"];",
            "op10 [shape=box, label=\"a:b\\n#10\"];",
        ] {
            assert!(picture.lines().any(|shown| shown.trim() == line), "{line} is not in\n{picture}");
        }
    }
}
