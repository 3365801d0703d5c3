//! What must be true of sessions, barriers, log time, and of calls that wait.

use super::Mutant;

const STATE: &str = "-p tripod-state";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "refusal-not-remembered",
        promise: "A stamped command that comes again has the reply of the first time, also if that was a refusal: it \
                  is not executed later, when it would succeed.",
        file: "state/src/apply.rs",
        original: &[
            "let reply = self.execute(&context, taken, &mut effects);",
            "self.sessions.remember(stamp, mark, &reply);",
        ],
        replacement: &[
            "let reply = self.execute(&context, taken, &mut effects);",
            "if reply.is_ok() {",
            "self.sessions.remember(stamp, mark, &reply);",
            "}",
        ],
        tests: STATE,
    },
    Mutant {
        name: "again-in-a-new-session",
        promise: "INV-10: a command whose first attempt may have taken effect is not sent again in another session: its \
                  outcome is told as unknown.",
        file: "services/gateway/src/submit.rs",
        original: &["(Err(Fault::SessionExpired | Fault::ReplyForgotten), Some(unknown)) => Err(unknown),"],
        replacement: &["(Err(Fault::ReplyForgotten), Some(unknown)) => Err(unknown),"],
        tests: "-p tripod-gateway",
    },
    Mutant {
        name: "time-runs-back",
        promise: "INV-3: log time never runs backwards, whatever the clock of the next leader says.",
        file: "state/src/apply.rs",
        original: &["self.now_ms = self.now_ms.max(context.now_ms);"],
        replacement: &["self.now_ms = context.now_ms;"],
        tests: STATE,
    },
    Mutant {
        name: "deadline-of-an-earlier-instance",
        promise: "INV-3: the expiry of a barrier's instance ends that one only: apply checks again whether it is still \
                  the one that is open.",
        file: "state/src/barrier/expire.rs",
        original: &["barrier.members.as_ref().filter(|_| !instance.ended() && instance.counter == counter)"],
        replacement: &[
            "barrier.members.as_ref().filter(|_| !instance.ended() && instance.counter >= counter)",
        ],
        tests: STATE,
    },
    Mutant {
        name: "counted-though-it-left",
        promise: "A barrier passes only when all its members wait at it: one that arrived and left does not count.",
        file: "state/src/barrier/instance.rs",
        original: &["let Some(through) = self.arrived.remove(&task) else { return false };"],
        replacement: &["let Some(through) = self.arrived.get(&task).copied() else { return false };"],
        tests: STATE,
    },
    Mutant {
        name: "looks-before-it-listens",
        promise: "INV-16: a waiter listens before it looks, so a change right behind its look wakes it.",
        file: "services/gateway/src/gateway/waiting.rs",
        original: &[
            "loop {",
            "if let Some(reply) = self.look(|state| state.resolve(ticket)) {",
            "if let Some(entered) = entered {",
            "entered.answered(reply.is_ok());",
            "}",
            "// It may have been entered just after its job was deleted.",
            "if matches!(reply, Err(Fault::JobUnknown { .. })) {",
            "self.open_calls.forget(ticket.job());",
            "}",
            "return Ok(reply);",
            "}",
            "watch.changed().await;",
            "}",
        ],
        replacement: &[
            "loop {",
            "watch.changed().await;",
            "if let Some(reply) = self.look(|state| state.resolve(ticket)) {",
            "return Ok(reply);",
            "}",
            "}",
        ],
        tests: "-p tripod-gateway",
    },
];
