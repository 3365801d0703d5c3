//! Requests of the wire to requests of the domain. Total: what a client may send is either translated or
//! refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use tonic::Status;
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1::{RayCancelRequest, RayDescribeRequest, RayFetchFailedRequest, RayTaskOptions};
use tripod_state::ids::DurationMs;
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::limits::{RESOURCE_NAME_BYTES_MAX, RESOURCES_MAX};
use tripod_state::ray::{
    Argument, Description, FetchFailure, Needs, Offers, Previous, Registration, Request, Role, Run, Task,
    TaskCall, TaskOptions,
};

use crate::caller::Caller;
use crate::status;
use crate::values;

/// Bytes of one task, encoded. A task is in the log, in every snapshot and in every attempt; what is larger
/// belongs into an object.
pub(crate) const TASK_BYTES_MAX: usize = 1 << 20;

/// One that says nothing of what it has is registered as ever, and at any level; a driver has nothing.
pub(crate) fn register_worker(
    caller: &Caller,
    offers: Offers,
    request: pb::RegisterWorkerRequest,
) -> Request {
    let registration = Registration {
        host: request.node_ip_address,
        store: request.objstore_address,
        role: if request.is_driver { Role::Driver } else { Role::Worker },
        attributed: caller.session.is_some(),
        extended: caller.extended,
        slots: caller.slots,
    };
    if offers.is_default() || registration.role == Role::Driver {
        Request::RegisterWorker(registration)
    } else {
        Request::RegisterWorkerWith { registration, offers }
    }
}

pub(crate) fn register_function(request: pb::RegisterFunctionRequest) -> Request {
    Request::RegisterFunction {
        worker: WorkerId(request.workerid),
        name: FunctionName(request.fnname),
        results: request.num_return_vals,
    }
}

/// # Errors
/// `INVALID_ARGUMENT` without a task, `RESOURCE_EXHAUSTED` for one that is too large.
pub(crate) fn submit(
    request: pb::SubmitTaskRequest,
    options: TaskOptions,
    needs: Needs,
    child: Option<TaskCall>,
) -> Result<Request, Status> {
    let Some(task) = request.task else { return Err(status::invalid("task: it is missing")) };
    let bytes = task.encoded_len();
    if bytes > TASK_BYTES_MAX {
        let text = format!(
            "task: {bytes} bytes, and the limit is {TASK_BYTES_MAX}; put large arguments and pass their ids"
        );
        return Err(status::with_reason(Status::resource_exhausted(text), "full"));
    }
    let task = Task {
        name: FunctionName(task.name),
        arguments: task.arg.iter().map(argument).collect(),
        results_given: task.result.len() as u64,
    };
    // The hint is the planner's word, not the client's.
    let (worker, hint) = (WorkerId(request.workerid), None);
    // One that needs nothing is submitted as ever, and at any level.
    Ok(if needs.is_default() {
        Request::Submit { worker, task, options, child, hint }
    } else {
        Request::SubmitWith { worker, task, options, child, hint, needs }
    })
}

/// # Errors
/// `RESOURCE_EXHAUSTED` for too many names, `INVALID_ARGUMENT` for one that is too long.
pub(crate) fn needs(options: RayTaskOptions) -> Result<Needs, Status> {
    let RayTaskOptions { priority, cpus_milli, memory_bytes, resources_milli, .. } = options;
    let named_milli = named("options.resources_milli", resources_milli)?;
    Ok(Needs { priority, cpus_milli, memory_bytes, named_milli })
}

/// Amounts by their names, as far as there may be such; what amounts there may be says the domain.
///
/// # Errors
/// As [`needs`].
pub(crate) fn named(
    field: &str,
    amounts: impl IntoIterator<Item = (String, u64)>,
) -> Result<BTreeMap<String, u64>, Status> {
    let mut named = BTreeMap::new();
    for (name, amount) in amounts {
        if name.is_empty() || name.len() > RESOURCE_NAME_BYTES_MAX {
            let bytes = name.len();
            return Err(status::invalid(&format!(
                "{field}: a name of {bytes} bytes, and names have 1 to {RESOURCE_NAME_BYTES_MAX}"
            )));
        }
        named.insert(name, amount);
        if named.len() as u64 > RESOURCES_MAX {
            let text = format!("{field}: too many names, and the limit is {RESOURCES_MAX}");
            return Err(status::with_reason(Status::resource_exhausted(text), "full"));
        }
    }
    Ok(named)
}

pub(crate) fn cancel(request: RayCancelRequest) -> Request {
    let RayCancelRequest { workerid, objectid, grace_ms } = request;
    let grace_ms = DurationMs(grace_ms);
    Request::Cancel { worker: WorkerId(workerid), object: ObjectId(objectid), grace_ms }
}

/// # Errors
/// `INVALID_ARGUMENT` for a number that is no type of elements.
pub(crate) fn describe(request: RayDescribeRequest, run: Option<Run>) -> Result<Request, Status> {
    let RayDescribeRequest { objectid, shape, element_type, bytes } = request;
    let element_type = u8::try_from(element_type)
        .map_err(|_| status::invalid(&format!("element_type: {element_type} is none")))?;
    let description = Description { shape, element_type, bytes };
    Ok(Request::Describe { object: ObjectId(objectid), run, description })
}

/// An argument is by value if there is one. Id 0 is not sent, so an empty argument is a reference to object 0.
fn argument(value: &pb::Value) -> Argument {
    match &value.obj {
        Some(object) => {
            Argument::Value { bytes: object.encode_to_vec().into(), nested: values::nested(object) }
        }
        None => Argument::Object(ObjectId(value.id)),
    }
}

pub(crate) fn put(request: pb::PutObjRequest, child: Option<TaskCall>) -> Request {
    Request::Put { worker: WorkerId(request.workerid), child, hold: request.hold }
}

pub(crate) fn get(request: pb::RequestObjRequest) -> Request {
    Request::Get { worker: WorkerId(request.workerid), object: ObjectId(request.objectid) }
}

pub(crate) fn alias(request: pb::AliasObjectIDsRequest, run: Option<Run>) -> Request {
    let (alias, target) = (ObjectId(request.alias_objectid), ObjectId(request.target_objectid));
    Request::Alias { alias, target, run }
}

pub(crate) fn ready(request: pb::ObjReadyRequest, run: Option<Run>) -> Request {
    Request::Ready { object: ObjectId(request.objectid), store: StoreId(request.objstoreid), run }
}

pub(crate) fn fetch_failed(request: RayFetchFailedRequest) -> Request {
    let RayFetchFailedRequest { objstoreid, objectid, absent_at, told } = request;
    let why = match absent_at {
        _ if told => FetchFailure::Told,
        source if source.is_empty() => FetchFailure::Unfinished,
        source => FetchFailure::Absent { source },
    };
    Request::FetchFailed { object: ObjectId(objectid), store: StoreId(objstoreid), why }
}

/// # Errors
/// `INVALID_ARGUMENT` for an empty list, as it ended upstream's process.
pub(crate) fn add_references(request: pb::IncrementRefCountRequest) -> Result<Request, Status> {
    Ok(Request::AddReferences { objects: listed(request.objectid)? })
}

/// # Errors
/// As [`add_references`].
pub(crate) fn drop_references(request: pb::DecrementRefCountRequest) -> Result<Request, Status> {
    Ok(Request::DropReferences { objects: listed(request.objectid)? })
}

fn listed(ids: Vec<u64>) -> Result<Vec<ObjectId>, Status> {
    if ids.is_empty() {
        return Err(status::invalid("objectid: the list is empty"));
    }
    Ok(ids.into_iter().map(ObjectId).collect())
}

pub(crate) fn contain(request: pb::AddContainedObjectIDsRequest) -> Request {
    let contained = request.contained_objectid.into_iter().map(ObjectId).collect();
    Request::Contain { object: ObjectId(request.objectid), contained }
}

pub(crate) fn idle(request: pb::ReadyForNewTaskRequest, run: Option<Run>) -> Request {
    let previous = request
        .previous_task_info
        .map(|previous| Previous { succeeded: previous.task_succeeded, error: previous.error_message });
    Request::Idle { worker: WorkerId(request.workerid), previous, run }
}

/// # Errors
/// `INVALID_ARGUMENT` without a function.
pub(crate) fn export_function(request: &pb::ExportFunctionRequest) -> Result<Request, Status> {
    let function = request.function.as_ref().ok_or_else(|| status::invalid("function: it is missing"))?;
    Ok(Request::ExportFunction { body: opaque(function) })
}

/// # Errors
/// `INVALID_ARGUMENT` without a variable, or without its name.
pub(crate) fn export_variable(request: &pb::ExportReusableVariableRequest) -> Result<Request, Status> {
    let variable = request
        .reusable_variable
        .as_ref()
        .ok_or_else(|| status::invalid("reusable_variable: it is missing"))?;
    if variable.name.is_empty() {
        return Err(status::invalid("reusable_variable.name: it is empty"));
    }
    Ok(Request::ExportVariable { name: FunctionName(replaced_by(variable)), body: opaque(variable) })
}

/// How what makes a variable begins, in the languages of ours: each language's workers have variables of their own.
const LANGUAGES: [&[u8]; 2] = [b"TPV1", b"TRV1"];

/// Variables of one name replace each other, those of one language.
fn replaced_by(variable: &pb::ReusableVar) -> Bytes {
    let maker = variable.initializer.as_ref().map_or(&[][..], |initializer| &initializer.implementation);
    match LANGUAGES.iter().find(|language| maker.starts_with(language)) {
        Some(language) => [language, &b":"[..], &variable.name].concat().into(),
        None => variable.name.clone(),
    }
}

fn opaque(message: &impl prost::Message) -> Bytes {
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn submitted(arg: Vec<pb::Value>) -> Result<Request, Status> {
        let task = pb::Task { name: "f".into(), arg, result: vec![4, 5] };
        submit(
            pb::SubmitTaskRequest { workerid: 1, task: Some(task) },
            TaskOptions::default(),
            Needs::default(),
            None,
        )
    }

    #[test]
    fn an_argument_is_by_value_only_if_there_is_one() {
        let value = pb::Obj { objectid_data: Some(pb::ObjId { data: 9 }), ..Default::default() };
        let arguments = vec![
            pb::Value { id: 0, obj: None },
            pb::Value { id: 7, obj: None },
            pb::Value { id: 7, obj: Some(value.clone()) },
            pb::Value { id: 0, obj: Some(pb::Obj::default()) },
        ];
        let Ok(Request::Submit { task, .. }) = submitted(arguments) else { panic!("it is a task") };
        let bytes = Bytes::from(value.encode_to_vec());
        assert_eq!(
            task.arguments,
            [
                Argument::Object(ObjectId(0)),
                Argument::Object(ObjectId(7)),
                Argument::Value { bytes, nested: vec![ObjectId(9)] },
                Argument::Value { bytes: Bytes::new(), nested: vec![] },
            ]
        );
        assert_eq!(task.results_given, 2, "the domain refuses them");
    }

    #[test]
    fn a_task_that_is_too_large_or_missing_is_refused() {
        let data = vec![0; TASK_BYTES_MAX].into();
        let value = pb::Obj { pyobj_data: Some(pb::PyObj { data }), ..Default::default() };
        let refused = submitted(vec![pb::Value { id: 0, obj: Some(value) }]).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("1048576"), "{refused}");
        let none = submit(pb::SubmitTaskRequest::default(), TaskOptions::default(), Needs::default(), None);
        assert_eq!(none.unwrap_err().code(), Code::InvalidArgument);
    }

    /// Workers leave variables of other languages alone, so one of another language must not end theirs.
    #[test]
    fn variables_of_one_name_are_replaced_within_their_language() {
        let named = |maker: &'static [u8]| {
            let initializer = Some(pb::Function { implementation: maker.into() });
            let variable = pb::ReusableVar { name: b"v".as_slice().into(), initializer, reinitializer: None };
            let request = pb::ExportReusableVariableRequest { reusable_variable: Some(variable) };
            match export_variable(&request) {
                Ok(Request::ExportVariable { name, .. }) => name.0,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(named(b"TPV1one"), named(b"TPV1two"));
        assert_ne!(named(b"TPV1one"), named(b"TRV1one"));
        assert_eq!(named(b"of 2016"), b"v".as_slice());
    }

    #[test]
    fn empty_lists_and_missing_exports_are_refused() {
        let code = |refused: Result<Request, Status>| refused.unwrap_err().code();
        assert_eq!(code(add_references(pb::IncrementRefCountRequest::default())), Code::InvalidArgument);
        assert_eq!(code(drop_references(pb::DecrementRefCountRequest::default())), Code::InvalidArgument);
        assert_eq!(code(export_function(&pb::ExportFunctionRequest::default())), Code::InvalidArgument);
        let nameless =
            pb::ExportReusableVariableRequest { reusable_variable: Some(pb::ReusableVar::default()) };
        assert_eq!(code(export_variable(&nameless)), Code::InvalidArgument);
    }
}
