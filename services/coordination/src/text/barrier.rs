//! The exact texts of failed barriers, as openxla/xla writes them.

use tripod_state::ids::{BarrierCounter, BarrierName};
use tripod_state::{BarrierFault, Fault, Leaving};

use crate::names::Voice;
use crate::status::{Rendered, code_number};

/// What a counter mismatch means when one side is at its first instance.
const RESTARTED: &str = "The service or task probably restarted, check the earlier logs to debug \
    further. Usually, a restart on the stale tasks will resolve the issue.";
/// What it means otherwise.
const OUT_OF_STEP: &str = "One task is probably way too quick / slow in its execution. For example, one \
    task started a barrier early, which timed out, and started a second barrier before the late task \
    even joined once.";

/// The message of a barrier's failure, or of a refused call for it.
pub(crate) fn of(
    barrier: &BarrierName,
    counter: BarrierCounter,
    fault: &BarrierFault,
    voice: Voice<'_>,
) -> String {
    let instance = format!("{barrier}::{counter}");
    let nested = |fault: &Fault| Rendered::of(fault, voice).print(voice);
    match fault {
        BarrierFault::TimedOut { arrived, total, first, missing } => {
            let missing: Vec<String> = missing.iter().map(|task| voice.task(*task)).collect();
            timed_out(&instance, &format!("{arrived}/{total}"), &voice.task(*first), &missing)
        }
        BarrierFault::UnknownMember { task } => format!(
            "Unexpected task ({}) that is not in the cluster called the barrier. Barrier Id: {instance}",
            voice.task(*task)
        ),
        BarrierFault::ConflictingTasks => format!(
            "Conflicting tasks specified by different processes for the same barrier: {instance}. Check \
             that the callers are invoking the barrier with the same arguments."
        ),
        BarrierFault::ListMissing => format!(
            "{instance}: No tasks were specified by the client, which implies that the entire cluster is \
             participating in the barrier. However, the service disagrees. Check that the callers are \
             invoking the barrier with the same arguments."
        ),
        BarrierFault::NotAMember { task } => {
            format!("A non-participating task ({}) called the barrier: {instance}", voice.task(*task))
        }
        BarrierFault::MemberInError { task, existing } => format!(
            "Task ({}) is already in error before the barrier was called. Barrier Id: {instance} Task \
             error: {}",
            voice.task(*task),
            nested(existing)
        ),
        BarrierFault::MemberLost { task, reason } => format!(
            "Barrier failed because: {}. Barrier Id: {instance}, Task: {}",
            leaving(reason, voice),
            voice.task(*task)
        ),
        BarrierFault::CounterMismatch { called } => counter_mismatch(barrier, *called, counter),
        BarrierFault::Cancelled { by } => {
            format!("Barrier ({instance}) is cancelled by task: {}", voice.task(*by))
        }
        BarrierFault::CancelOfOtherInstance { called } => format!(
            "Barrier ({barrier}::{called}) is cancelled by task, but the service thinks it is the \
             {counter}-th instance. This is likely due to a restart in the task or service."
        ),
        BarrierFault::CancelAfterEnd { result } => format!(
            "Barrier ({instance}) has already been passed with status code: {}",
            code_number(result.as_deref())
        ),
        BarrierFault::StaleArrival { task, reason } => format!(
            "Stale barrier invocation is cancelled because:  {}. Barrier: {instance} Task {}",
            leaving(reason, voice),
            voice.task(*task)
        ),
    }
}

/// The message to a call whose place a newer one of the same task took.
pub(crate) fn replaced(barrier: &BarrierName, counter: BarrierCounter) -> String {
    format!(
        "Cancelled because there's a more recent barrier call for {barrier}::{counter} from the same task."
    )
}

fn timed_out(instance: &str, reached: &str, first: &str, missing: &[String]) -> String {
    let missing: String = missing.iter().map(|task| format!("{task}\n")).collect();
    format!(
        "Barrier timed out. Id: {instance}. This usually happens because a task triggered the barrier too \
         early or too slowly. Please look at the task logs (both timed out and first task) to debug \
         further.\n# of tasks that reached the barrier: {reached}.\nThe first task at the barrier: {first}. \
         Some timed out task names:\n{missing}"
    )
}

fn counter_mismatch(barrier: &BarrierName, called: BarrierCounter, current: BarrierCounter) -> String {
    let first = BarrierCounter(0);
    let reason = if called == first || current == first { RESTARTED } else { OUT_OF_STEP };
    format!(
        "Barrier ({barrier}::{called}) is invoked by the task, but the service thinks it is the \
         {current}-th instance. {reason}"
    )
}

fn leaving(reason: &Leaving, voice: Voice<'_>) -> String {
    match reason {
        Leaving::Error(fault) => {
            format!("task is set to ERROR: {}", Rendered::of(fault, voice).print(voice))
        }
        Leaving::Disconnected => "task disconnected".to_owned(),
        Leaving::ConnectedAgain => "recoverable task silently connected again".to_owned(),
    }
}
