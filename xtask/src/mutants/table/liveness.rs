//! Who is given up and who is not: tasks by their heartbeats, workers and stores by theirs.

use super::Mutant;

const GATEWAY: &str = "-p tripod-gateway";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "silence-of-an-earlier-life",
        promise: "INV-3: the silence of a task's earlier life fails nobody who has registered since: apply checks the \
                  expiry again.",
        file: "state/src/task/error.rs",
        original: &["if record.phase() != Phase::Connected || record.incarnation != incarnation {"],
        replacement: &["if record.phase() != Phase::Connected {"],
        tests: "-p tripod-state",
    },
    Mutant {
        name: "end-of-an-earlier-life",
        promise: "The end of a process fails the life that it was, and no other life of its task.",
        file: "state/src/task/ended.rs",
        original: &["if record.incarnation != incarnation {"],
        replacement: &["if record.incarnation < incarnation {"],
        tests: "-p tripod-state",
    },
    Mutant {
        name: "timers-of-an-earlier-term",
        promise: "INV-14: after an election every timer starts again in full, also on the node that led before.",
        file: "services/gateway/src/keeper/run.rs",
        original: &["if memory.led == led {"],
        replacement: &["if memory.led.is_some() == led.is_some() {"],
        tests: GATEWAY,
    },
    Mutant {
        name: "beat-takes-the-grace",
        promise: "INV-14: a heartbeat never shortens the time that a task has: not what the election before it gave.",
        file: "services/gateway/src/keeper/tasks.rs",
        original: &["self.deadline = self.deadline.max(deadline);"],
        replacement: &["self.deadline = deadline;"],
        tests: GATEWAY,
    },
    Mutant {
        name: "beat-of-an-earlier-life",
        promise: "A dead task is given up, though a process of its earlier life goes on beating and is answered.",
        file: "services/gateway/src/keeper/mod.rs",
        original: &[
            "Opinion::Recorded(service) => {",
            "let Beat { scope, task, incarnation, .. } = *beat;",
            "let heard = state.silence(scope.job, task, incarnation, beat.interval());",
            "Self { service: Some(service), heard }",
            "}",
            "Opinion::Tolerated(service) => Self { service: Some(service), heard: None },",
        ],
        replacement: &[
            "Opinion::Recorded(service) | Opinion::Tolerated(service) => {",
            "let Beat { scope, task, incarnation, .. } = *beat;",
            "let heard = state.silence(scope.job, task, incarnation, beat.interval());",
            "Self { service: Some(service), heard }",
            "}",
        ],
        tests: GATEWAY,
    },
    Mutant {
        name: "slow-program-given-up",
        promise: "INV-43: a job waits as long as its program expects, by what its heartbeats tell.",
        file: "state/src/task/interval.rs",
        original: &["if exceeds(promised, timeout) { promised } else { timeout }"],
        replacement: &["if exceeds(promised, timeout) { timeout } else { timeout }"],
        tests: GATEWAY,
    },
    Mutant {
        name: "turns-in-arrears",
        promise: "INV-41: who comes when others have had many turns has one of two from then on, and not as many as they \
                  had before.",
        file: "services/gateway/src/fairness/order.rs",
        original: &["None => self.now,"],
        replacement: &["None => 0,"],
        tests: GATEWAY,
    },
    Mutant {
        name: "watched-anew",
        promise: "A worker or a store that is silent is given up: that its leader compares whom it watches with the \
                  state gives nobody more time.",
        file: "services/gateway/src/liveness/mod.rs",
        original: &["watched.peers.insert(*peer, before.get(peer).copied().unwrap_or_else(fresh));"],
        replacement: &[
            "let note = before.get(peer).and_then(|known| known.note);",
            "watched.peers.insert(*peer, Entry { note, ..fresh() });",
        ],
        tests: "-p tripod-gateway --lib",
    },
];
