//! Many calls in one: `tripod.v1.Ray/Batch`.

use tonic::{Code, Status};
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_result::Reply;
use tripod_proto::tripod::v1::{
    RayBatchResponse, RayCall, RayCancelReply, RayResult, RayRun, RayTaskOptions,
};
use tripod_state::ray::ids::{Attempt, OperationId, WorkerId};
use tripod_state::ray::{Answer, Peer, Refusal, Request, Run, TaskCall, TaskOptions};

use crate::{caller, decode, status};

/// Calls of one batch. One command holds the state for as long as all of them take.
pub(crate) const CALLS_MAX: usize = 4096;

/// The batch as one request. A call that cannot be read refuses all of them: its client is broken, and nothing has
/// been done yet.
///
/// # Errors
/// `INVALID_ARGUMENT` or `RESOURCE_EXHAUSTED`, with the place of the call.
pub(crate) fn decode(calls: Vec<RayCall>) -> Result<Request, Status> {
    if calls.len() > CALLS_MAX {
        let text = format!("calls: {} of them, and the limit is {CALLS_MAX}", calls.len());
        return Err(status::with_reason(Status::resource_exhausted(text), "full"));
    }
    let read = |(place, call)| one(call).map_err(|refused| at(place, &refused));
    calls.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Request::Batch)
}

fn one(RayCall { call, options, run, child }: RayCall) -> Result<Request, Status> {
    let options = options.unwrap_or_default();
    let run = run.map(decode_run).transpose()?;
    let child = child.map(|place| TaskCall { run, place });
    let request = match call.ok_or_else(|| status::invalid("call: it is none"))? {
        Call::Submit(request) => {
            decode::submit(request, task_options(&options)?, decode::needs(options)?, child)?
        }
        Call::Put(request) => decode::put(request, child),
        Call::Request(request) => decode::get(request),
        Call::Alias(request) => decode::alias(request, run),
        Call::Ready(request) => decode::ready(request, run),
        Call::Increment(request) => decode::add_references(request)?,
        Call::Decrement(request) => decode::drop_references(request)?,
        Call::Contained(request) => decode::contain(request),
        Call::Idle(request) => decode::idle(request, run),
        Call::Function(request) => decode::register_function(request),
        Call::GiveBack(request) => Request::GiveBack {
            worker: WorkerId(request.workerid),
            runs: request.runs.into_iter().map(decode_run).collect::<Result<_, _>>()?,
        },
        Call::FetchFailed(request) => decode::fetch_failed(request),
        Call::Leave(request) => Request::Leave { peer: Peer::Worker(WorkerId(request.workerid)) },
        Call::Cancel(request) => decode::cancel(request),
        Call::Describe(request) => decode::describe(request, run)?,
    };
    Ok(request)
}

fn decode_run(run: RayRun) -> Result<Run, Status> {
    if run.attempt == 0 {
        return Err(status::invalid("run.attempt: it is 0, and the first is 1"));
    }
    Ok(Run { operation: OperationId(run.operationid), attempt: Attempt(run.attempt) })
}

fn task_options(options: &RayTaskOptions) -> Result<TaskOptions, Status> {
    let mut read = TaskOptions::default();
    if let Some(retries) = options.max_retries {
        read.max_retries = caller::max_retries(retries.into())
            .ok_or_else(|| status::invalid("options.max_retries: it is below -1"))?;
    }
    read.retry_exceptions = options.retry_exceptions;
    Ok(read)
}

fn at(place: usize, refused: &Status) -> Status {
    let reason = if refused.code() == Code::ResourceExhausted { "full" } else { "invalid" };
    status::with_reason(Status::new(refused.code(), format!("call {place}: {}", refused.message())), reason)
}

/// # Errors
/// The answer is none of a batch.
pub(crate) fn encode(answer: Answer, replayed: bool) -> Result<RayBatchResponse, Status> {
    let Answer::Batch(results) = answer else { return Err(status::unexpected(&answer)) };
    Ok(RayBatchResponse { results: results.into_iter().map(result).collect(), replayed })
}

fn result(result: Result<Answer, Refusal>) -> RayResult {
    match result {
        Ok(Answer::Replayed(first)) => self::result(Ok(*first)),
        Ok(Answer::Submitted { results }) => replied(Reply::Submit(pb::SubmitTaskReply {
            result: results.into_iter().map(|id| id.0).collect(),
            function_registered: true,
        })),
        Ok(Answer::Object { object, present }) => {
            replied(Reply::Put(pb::PutObjReply { objectid: object.0, already_present: present }))
        }
        Ok(Answer::Cancelled { over }) => replied(Reply::Cancel(RayCancelReply { over })),
        Ok(_) => RayResult::default(),
        // Not an error to a client of 2016 either: it asks again.
        Err(Refusal::FunctionUnknown { .. }) => replied(Reply::Submit(pb::SubmitTaskReply::default())),
        Err(refusal) => {
            let told = status::told(&refusal);
            RayResult { code: told.code.into(), text: told.text, reason: told.reason.to_owned(), reply: None }
        }
    }
}

fn replied(reply: Reply) -> RayResult {
    RayResult { reply: Some(reply), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use tripod_proto::tripod::v1::{RayCancelRequest, RayDescribeRequest};
    use tripod_state::ids::DurationMs;
    use tripod_state::ray::Description;
    use tripod_state::ray::ids::ObjectId;
    use tripod_state::ray::limits::{RESOURCE_NAME_BYTES_MAX, RESOURCES_MAX};

    use super::*;

    #[test]
    fn a_batch_keeps_its_order_and_what_goes_with_each_call() {
        let put = RayCall {
            call: Some(Call::Put(pb::PutObjRequest { workerid: 4, hold: false })),
            child: Some(2),
            ..Default::default()
        };
        let ready = RayCall {
            call: Some(Call::Ready(pb::ObjReadyRequest { objectid: 1, objstoreid: 0 })),
            run: Some(RayRun { operationid: 9, attempt: 3 }),
            ..Default::default()
        };
        let Ok(Request::Batch(requests)) = decode(vec![put, ready]) else { panic!("it is a batch") };
        assert!(
            matches!(requests[0], Request::Put { child: Some(TaskCall { place: 2, .. }), .. }),
            "{requests:?}"
        );
        let Request::Ready { run: Some(run), .. } = requests[1] else { panic!("{requests:?}") };
        assert_eq!((run.operation, run.attempt), (OperationId(9), Attempt(3)));
    }

    #[test]
    fn a_call_that_cannot_be_read_is_named_by_its_place() {
        let good = RayCall { call: Some(Call::Put(pb::PutObjRequest::default())), ..Default::default() };
        let refused = decode(vec![good.clone(), RayCall::default()]).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with("call 1: "), "{refused}");
        let zero = RayCall { run: Some(RayRun::default()), ..good.clone() };
        assert_eq!(decode(vec![zero]).unwrap_err().code(), Code::InvalidArgument);
        let many = decode(vec![good; CALLS_MAX + 1]).unwrap_err();
        assert_eq!(many.code(), Code::ResourceExhausted);
    }

    #[test]
    fn what_a_task_needs_goes_with_it_and_without_needs_it_is_what_it_was() {
        let submit = |options| {
            let task = pb::Task { name: "f".into(), ..Default::default() };
            let call = Call::Submit(pb::SubmitTaskRequest { workerid: 4, task: Some(task) });
            decode(vec![RayCall { call: Some(call), options, ..Default::default() }])
        };
        let Ok(Request::Batch(plain)) = submit(Some(RayTaskOptions::default())) else { panic!("a batch") };
        assert!(matches!(plain[0], Request::Submit { .. }), "{plain:?}");
        let gpus = |milli| [("gpu".to_owned(), milli), ("tpu".to_owned(), 0)].into();
        let options = RayTaskOptions {
            priority: -3,
            cpus_milli: 1_500,
            memory_bytes: 9,
            resources_milli: gpus(500),
            ..Default::default()
        };
        let Ok(Request::Batch(with)) = submit(Some(options.clone())) else { panic!("a batch") };
        let Request::SubmitWith { needs, .. } = &with[0] else { panic!("{with:?}") };
        assert_eq!((needs.priority, needs.cpus_milli, needs.memory_bytes), (-3, 1_500, 9));
        assert_eq!(needs.named_milli.get("gpu"), Some(&500));
        let many = (0..=RESOURCES_MAX).map(|number| (number.to_string(), 1)).collect();
        let refused = submit(Some(RayTaskOptions { resources_milli: many, ..options.clone() })).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let long = [("g".repeat(RESOURCE_NAME_BYTES_MAX + 1), 1)].into();
        let refused = submit(Some(RayTaskOptions { resources_milli: long, ..options })).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }

    #[test]
    fn a_cancel_and_a_description_are_read() {
        let run = RayRun { operationid: 9, attempt: 3 };
        let cancel = RayCancelRequest { workerid: 4, objectid: 7, grace_ms: 2_000 };
        let describe = |element_type| {
            let describe = RayDescribeRequest { objectid: 7, shape: vec![2, 3], element_type, bytes: 48 };
            RayCall { call: Some(Call::Describe(describe)), run: Some(run), ..Default::default() }
        };
        let cancel = RayCall { call: Some(Call::Cancel(cancel)), ..Default::default() };
        let Ok(Request::Batch(requests)) = decode(vec![cancel, describe(11)]) else { panic!("a batch") };
        let (worker, object) = (WorkerId(4), ObjectId(7));
        let grace_ms = DurationMs(2_000);
        assert_eq!(requests[0], Request::Cancel { worker, object, grace_ms });
        let description = Description { shape: vec![2, 3], element_type: 11, bytes: 48 };
        let run = Some(Run { operation: OperationId(9), attempt: Attempt(3) });
        assert_eq!(requests[1], Request::Describe { object, run, description });
        assert_eq!(decode(vec![describe(256)]).unwrap_err().code(), Code::InvalidArgument);
        let told = encode(Answer::Batch(vec![Ok(Answer::Cancelled { over: true })]), false).unwrap();
        assert_eq!(told.results[0].reply, Some(Reply::Cancel(RayCancelReply { over: true })));
    }

    #[test]
    fn results_say_what_became_of_each_call() {
        let refused = Refusal::ObjectUnknown { object: ObjectId(7) };
        let unknown = Refusal::FunctionUnknown { name: tripod_state::ray::ids::FunctionName("f".into()) };
        let submitted = Answer::Submitted { results: vec![ObjectId(3)] };
        let answer = Answer::Batch(vec![Ok(Answer::Done), Err(refused), Err(unknown), Ok(submitted)]);
        let told = encode(answer, true).unwrap();
        assert!(told.replayed);
        assert_eq!(told.results[0], RayResult::default());
        assert_eq!((told.results[1].code, told.results[1].reason.as_str()), (5, "no-object"));
        let submit = |place: usize| match &told.results[place].reply {
            Some(Reply::Submit(reply)) => (reply.function_registered, reply.result.clone()),
            other => panic!("{other:?}"),
        };
        assert_eq!(submit(2), (false, vec![]));
        assert_eq!(submit(3), (true, vec![3]));
        assert!(encode(Answer::Done, false).is_err());
    }
}
