//! `SchedulerInfo` and `TaskInfo` as upstream showed them.

use std::collections::HashMap;

use prost::Message as _;
use tripod_proto::ray as pb;
use tripod_state::ray::Argument;
use tripod_state::ray::view::{Creator, Execution, Info, Kind, Operation, TaskInfo, TaskStatus};

/// The target of an id of which it is not known yet what it means.
pub(crate) const UNINITIALISED_ALIAS: u64 = u64::MAX;
/// The count of an object that is gone.
pub(crate) const DEALLOCATED: u64 = u64::MAX;
/// The creator of what a driver makes.
pub(crate) const ROOT_OPERATION: u64 = u64::MAX;
/// The creator of what an idle worker makes.
pub(crate) const NO_OPERATION: u64 = u64::MAX - 1;

pub(crate) fn scheduler_info(info: Info) -> pb::SchedulerInfoReply {
    let functions = info.functions.into_iter().map(|(name, results, workers)| {
        let workerid = workers.into_iter().map(|worker| worker.0).collect();
        (name.to_string(), pb::FnTableEntry { workerid, num_return_vals: results })
    });
    pb::SchedulerInfoReply {
        operationid: info.queue.into_iter().map(|operation| operation.0).collect(),
        function_table: functions.collect::<HashMap<_, _>>(),
        avail_worker: info.idle.into_iter().map(|worker| worker.0).collect(),
        target_objectid: info
            .targets
            .into_iter()
            .map(|target| target.map_or(UNINITIALISED_ALIAS, |target| target.0))
            .collect(),
        reference_count: info.counts.into_iter().map(|count| count.unwrap_or(DEALLOCATED)).collect(),
        computation_graph: Some(pb::CompGraph { operation: info.graph.into_iter().map(operation).collect() }),
    }
}

fn operation(operation: Operation) -> pb::Operation {
    let creator_operationid = match operation.creator {
        Creator::Root => ROOT_OPERATION,
        Creator::Nobody => NO_OPERATION,
        Creator::Task(task) => task.0,
    };
    let shown = pb::Operation { creator_operationid, ..Default::default() };
    match operation.kind {
        Kind::Task { name, arguments, results } => {
            let result = results.into_iter().map(|result| result.0).collect();
            let task = pb::Task { name: name.0, arg: arguments.iter().map(argument).collect(), result };
            pb::Operation { task: Some(task), ..shown }
        }
        Kind::Put(object) => pb::Operation { put: Some(pb::Put { objectid: object.0 }), ..shown },
        Kind::Get(object) => pb::Operation { get: Some(pb::Get { objectid: object.0 }), ..shown },
        Kind::Forgotten => pb::Operation::default(),
    }
}

/// What a worker is to execute.
pub(crate) fn task(execution: &Execution) -> pb::Task {
    pb::Task {
        name: execution.name.0.clone(),
        arg: execution.arguments.iter().map(argument).collect(),
        result: execution.results.iter().map(|result| result.0).collect(),
    }
}

fn argument(argument: &Argument) -> pb::Value {
    match argument {
        Argument::Object(object) => pb::Value { id: object.0, obj: None },
        Argument::Value { bytes, .. } => {
            // It was decoded when it came, so it can be decoded again.
            let value = pb::Obj::decode(bytes.clone()).unwrap_or_default();
            pb::Value { id: 0, obj: Some(value) }
        }
    }
}

pub(crate) fn task_info(info: TaskInfo) -> pb::TaskInfoReply {
    pb::TaskInfoReply {
        failed_task: info.failed.into_iter().map(task_status).collect(),
        running_task: info.running.into_iter().map(task_status).collect(),
        num_succeeded: info.succeeded,
    }
}

fn task_status(status: TaskStatus) -> pb::TaskStatus {
    pb::TaskStatus {
        operationid: status.operation.0,
        function_name: status.name.0,
        worker_address: status.worker,
        error_message: status.error,
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::{FunctionName, ObjectId, OperationId, WorkerId};

    use super::*;

    #[test]
    fn what_is_not_there_is_shown_by_upstreams_sentinels() {
        let shown = scheduler_info(Info {
            targets: vec![Some(ObjectId(0)), None],
            counts: vec![Some(3), None],
            functions: vec![(FunctionName("m.f".into()), 2, vec![WorkerId(1), WorkerId(4)])],
            graph: vec![
                Operation { id: OperationId(0), creator: Creator::Root, kind: Kind::Put(ObjectId(0)) },
                Operation { id: OperationId(1), creator: Creator::Nobody, kind: Kind::Get(ObjectId(0)) },
                Operation { id: OperationId(2), creator: Creator::Root, kind: Kind::Forgotten },
            ],
            ..Default::default()
        });
        assert_eq!(shown.target_objectid, [0, u64::MAX]);
        assert_eq!(shown.reference_count, [3, u64::MAX]);
        assert_eq!(shown.function_table["m.f"].workerid, [1, 4]);
        let graph = shown.computation_graph.unwrap().operation;
        assert_eq!(graph[0].creator_operationid, u64::MAX);
        assert_eq!(graph[1].creator_operationid, u64::MAX - 1);
        assert_eq!(graph[2], pb::Operation::default());
    }

    #[test]
    fn a_task_is_shown_with_the_arguments_that_it_came_with() {
        let value = crate::values::text("x");
        let by_value = Argument::Value { bytes: value.encode_to_vec().into(), nested: vec![] };
        let kind = Kind::Task {
            name: FunctionName("f".into()),
            arguments: vec![Argument::Object(ObjectId(0)), by_value],
            results: vec![ObjectId(5)],
        };
        let shown = operation(Operation { id: OperationId(0), creator: Creator::Task(OperationId(9)), kind });
        assert_eq!(shown.creator_operationid, 9);
        let task = shown.task.unwrap();
        assert_eq!(task.arg, [pb::Value::default(), pb::Value { id: 0, obj: Some(value) }]);
        assert_eq!(task.result, [5]);
    }
}
