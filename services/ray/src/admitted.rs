//! What is checked of a call by whom its message speaks of: the parts of a batch, and who registers.

use tonic::{Code, Extensions, Status};
use tripod_gate::{Admitted, Membership, RayScheduler, Reason, Rpc};
use tripod_proto::tripod::v1::RayCall;
use tripod_proto::tripod::v1::ray_call::Call;

/// The call registers a driver, or else a worker.
///
/// # Errors
/// The caller is the other of the two.
pub(crate) fn registers(extensions: &Extensions, is_driver: bool) -> Result<(), Status> {
    Admitted::of(extensions).map_or(Ok(()), |admitted| admitted.registers(is_driver).map_err(refused))
}

/// The parts of a batch. One that the caller may not call refuses all of them.
///
/// # Errors
/// There is one.
pub(crate) fn has_parts(admitted: Option<&Admitted>, calls: &[RayCall]) -> Result<(), Status> {
    let Some(admitted) = admitted else { return Ok(()) };
    let parts = calls.iter().filter_map(|call| call.call.as_ref());
    parts.map(stands_for).try_for_each(|rpc| admitted.has_part(rpc)).map_err(refused)
}

/// The RPC by whose row a part is judged. What has no RPC of its own is judged as what is nearest to it.
fn stands_for(part: &Call) -> Rpc {
    Rpc::RayScheduler(match part {
        // Who submits something also takes it back, and says what a task of its has made.
        Call::Submit(_) | Call::Cancel(_) | Call::Describe(_) => RayScheduler::SubmitTask,
        Call::Put(_) => RayScheduler::PutObj,
        Call::Request(_) => RayScheduler::RequestObj,
        Call::Alias(_) => RayScheduler::AliasObjectIDs,
        // That an object came, or could not be fetched.
        Call::Ready(_) | Call::FetchFailed(_) => RayScheduler::ObjReady,
        Call::Increment(_) => RayScheduler::IncrementRefCount,
        Call::Decrement(_) => RayScheduler::DecrementRefCount,
        Call::Contained(_) => RayScheduler::AddContainedObjectIDs,
        // Who gets tasks also gives them back.
        Call::Idle(_) | Call::GiveBack(_) => RayScheduler::ReadyForNewTask,
        Call::Function(_) => RayScheduler::RegisterFunction,
        Call::Leave(_) => return Rpc::Membership(Membership::Heartbeat),
    })
}

fn refused(reason: Reason) -> Status {
    Status::new(Code::from(i32::from(reason.code())), reason.to_string())
}
