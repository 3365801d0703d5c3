//! `tripod ray graph`: who made what out of what, as a picture for Graphviz or as data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use tripod_proto::ray::{CompGraph, Obj, Operation, Value};

use crate::output::Table;

/// The creator of what a driver does outside of any task.
const ROOT: u64 = u64::MAX;
/// The creator of what a worker does that has no task.
const NOBODY: u64 = u64::MAX - 1;

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

/// The graph in Graphviz's language. Boxes are operations, ellipses objects; a dashed line leads from a task to what
/// it made while it ran.
pub(crate) fn dot(operations: &[OperationView]) -> String {
    let mut text = String::from("digraph tasks {\n  rankdir=LR;\n");
    let mut objects = BTreeMap::new();
    for one in operations {
        let id = one.operation;
        let label = match one.kind {
            "task" => format!("{}\\n#{id}", escaped(&one.function)),
            kind => format!("{kind} #{id}"),
        };
        writeln!(text, "  op{id} [shape=box, label=\"{label}\"];").expect("writing to memory");
        for object in one.arguments.iter().chain(&one.results) {
            objects.insert(*object, ());
        }
    }
    for object in objects.keys() {
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
        let picture = dot(&operations(&graph(), 0));
        let wanted = "digraph tasks {\n  rankdir=LR;\n  op0 [shape=box, label=\"put #0\"];\n  \
                      op1 [shape=box, label=\"m.\\\"f\\\"\\n#1\"];\n  op3 [shape=box, label=\"get #3\"];\n  \
                      obj0 [label=\"0\"];\n  obj1 [label=\"1\"];\n  op0 -> obj0;\n  obj0 -> op1;\n  op1 -> obj1;\n  \
                      obj1 -> op3;\n  op1 -> op3 [style=dashed];\n}";
        assert_eq!(picture, wanted);
    }
}
