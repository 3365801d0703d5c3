//! What a client of this dialect is told: codes and exact texts. Its errors carry no payload.
//!
//! Source: tensorflow `tensorflow/compiler/xla/pjrt/distributed/service.cc` of 2022 and 2023, and what
//! jaxlib 0.4.13's own service answers.

use tonic::{Code, Status};
use tripod_state::Fault;
use tripod_state::runtime::{Call, Refusal};

use crate::dialect::Dialect;
use crate::names::Voice;
use crate::status::{Rendered, cut};

/// What the caller is answered.
pub(crate) fn of_fault(fault: &Fault) -> Status {
    let rendered = Rendered::of(fault, Voice::plain(Dialect::L));
    let (code, text) = match fault {
        Fault::ServiceMismatch { requested, current } => (
            Code::FailedPrecondition,
            format!("Session ID of request {requested} does not match active session ID {current}"),
        ),
        Fault::KeyMissing { asked } => (Code::NotFound, asked.clone()),
        _ => (Code::from_i32(rendered.code), rendered.message),
    };
    Status::new(code, cut(text))
}

/// The code of a refusal by the runtime, in any dialect.
pub(crate) fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::NotInitializing | Refusal::Replaced { .. } | Refusal::Lost { .. } => Code::Aborted,
        Refusal::TaskUnknown { task, .. } if task.0 < 0 => Code::InvalidArgument,
        Refusal::NotRunning { .. }
        | Refusal::TaskUnknown { .. }
        | Refusal::BarrierUsed
        | Refusal::BarrierSpoiled => Code::FailedPrecondition,
        Refusal::TimedOut { .. } => Code::DeadlineExceeded,
    }
}

/// The message of a refusal by the runtime.
pub(crate) fn text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotInitializing => "Connect() called when system is not initializing.".to_owned(),
        Refusal::NotRunning { call: Call::Put } => {
            "KeyValueSet() called when system is not running; clients must call Connect() first".to_owned()
        }
        Refusal::NotRunning { call } => format!("{}() called when system is not running.", name(*call)),
        Refusal::TaskUnknown { task, .. } if task.0 < 0 => {
            format!("Invalid node ID {task}, must be non-negative")
        }
        Refusal::TaskUnknown { task, tasks } => {
            format!("Invalid node ID {task}, must be in the range [0, {tasks})")
        }
        Refusal::Replaced { task } => format!("Duplicate node ID {task}"),
        Refusal::Lost { task } => format!("Shutting down due to missed heartbeat from task {task}"),
        Refusal::BarrierUsed => "Calling WaitAtBarrier with the same id across barriers is not allowed. \
                                 Please use unique barrier ids across barriers."
            .to_owned(),
        Refusal::BarrierSpoiled => "A process timed out waiting at the barrier. Exiting early because the \
                                    current process will also timeout."
            .to_owned(),
        Refusal::TimedOut { call, waited_ms } => {
            let doing = if *call == Call::Barrier { "be at" } else { "call" };
            format!(
                "Timed out after {} waiting for all nodes to {doing} {}()",
                length(*waited_ms),
                name(*call)
            )
        }
    }
}

fn name(call: Call) -> &'static str {
    match call {
        Call::Connect => "Connect",
        Call::Enumerate => "EnumerateDevices",
        Call::Heartbeat => "Heartbeat",
        Call::Get => "KeyValueGet",
        Call::Put => "KeyValueSet",
        Call::Barrier => "WaitAtBarrier",
        Call::Shutdown => "Shutdown",
    }
}

/// A length of time as absl prints it: `1h2m3.5s`, `300ms`, `0`.
fn length(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    match ms {
        0 => return "0".to_owned(),
        1..1000 => return format!("{sign}{ms}ms"),
        _ => {}
    }
    let (hours, minutes, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms % 60_000);
    let mut text = sign.to_owned();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    if rest > 0 {
        let fraction = format!("{}.{:03}", rest / 1000, rest % 1000);
        text.push_str(fraction.trim_end_matches('0').trim_end_matches('.'));
        text.push('s');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_as_absl_writes_them() {
        for (ms, text) in [
            (0, "0"),
            (1, "1ms"),
            (300, "300ms"),
            (1_500, "1.5s"),
            (-1_500, "-1.5s"),
            (-1, "-1ms"),
            (10_000, "10s"),
            (60_000, "1m"),
            (61_250, "1m1.25s"),
            (300_000, "5m"),
            (3_600_000, "1h"),
            (3_723_045, "1h2m3.045s"),
            (i64::MIN, "-2562047788015h12m55.808s"),
        ] {
            assert_eq!(length(ms), text, "{ms}");
        }
    }
}
