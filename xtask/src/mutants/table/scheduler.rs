//! What must be true of the scheduler, whichever tests of it stay: attempts, references, retries, and what apply
//! checks again of a plan.

use super::Mutant;

const STATE: &str = "-p tripod-state";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "plan-of-an-earlier-attempt",
        promise: "INV-34: what was planned for an attempt of a task that is over is not given out as the next one.",
        file: "state/src/ray/assign.rs",
        original: &["if next == Some(attempt) && self.assign_if_due(operation, worker) {"],
        replacement: &[
            "if next.is_some_and(|next| attempt.0 <= next.0) && self.assign_if_due(operation, worker) {",
        ],
        tests: STATE,
    },
    Mutant {
        name: "given-while-it-is-freed",
        promise: "INV-34: apply checks that no order to free an earlier result is under way to the store: it would free \
                  what the next attempt writes there.",
        file: "state/src/ray/assign.rs",
        original: &[
            "&& self.workers.get(&worker).is_some_and(|worker| self.is_clear(operation, worker.store))",
        ],
        replacement: &[],
        tests: STATE,
    },
    Mutant {
        name: "reclaimed-before-the-retry",
        promise: "INV-32: the tasks of a dead worker take their references before its own are given up, so nothing that \
                  they need is freed in between.",
        file: "state/src/ray/expire.rs",
        original: &[
            "for run in running {",
            "self.ray.stop_running(id, run);",
            "if self.ray.is_cancelling(run.operation) {",
            "self.fail_task(run.operation, Reason::Cancelled);",
            "} else {",
            "self.retry(run.operation, &format!(\"worker {id} at {address} died: {why}\"));",
            "}",
            "}",
            "self.give_up_puts(id);",
            "if attributed {",
            "self.reclaim(id);",
            "}",
        ],
        replacement: &[
            "if attributed {",
            "self.reclaim(id);",
            "}",
            "for run in running {",
            "self.ray.stop_running(id, run);",
            "if self.ray.is_cancelling(run.operation) {",
            "self.fail_task(run.operation, Reason::Cancelled);",
            "} else {",
            "self.retry(run.operation, &format!(\"worker {id} at {address} died: {why}\"));",
            "}",
            "}",
            "self.give_up_puts(id);",
        ],
        tests: STATE,
    },
    Mutant {
        name: "delivery-keeps-its-reference",
        promise: "INV-32: a delivery that is taken back gives its reference back.",
        file: "state/src/ray/expire.rs",
        original: &["self.ray.wanted.insert((object, to));", "self.drop_one(object);"],
        replacement: &["self.ray.wanted.insert((object, to));"],
        tests: STATE,
    },
    Mutant {
        name: "poisoned-by-lost-results",
        promise: "A task without a bound of retries fails when workers died with it, and not because its results were \
                  lost as often.",
        file: "state/src/ray/retry.rs",
        original: &["None => self.deaths < POISON_DEATHS,"],
        replacement: &["None => self.spent < POISON_DEATHS,"],
        tests: STATE,
    },
    Mutant {
        name: "never-made-at-a-dead-store",
        promise: "A task whose store dies between its report and its results is run again: what was never made is \
                  missing as much as what was lost.",
        file: "state/src/ray/expire.rs",
        original: &["self.lost.extend(results.into_iter().filter(|result| self.ray.is_awaited(*result)));"],
        replacement: &["self.lost.extend(results.into_iter().filter(|result| self.ray.is_lost(*result)));"],
        tests: STATE,
    },
    Mutant {
        name: "lost-while-its-task-ran",
        promise: "A result that was stored, and lost before its task said that it is done, is made again.",
        file: "state/src/ray/report.rs",
        original: &[
            "let results = self.ray.entry(run.operation).map(|entry| entry.results.clone()).unwrap_or_default();",
            "self.lost.extend(results.into_iter().filter(|result| self.ray.is_lost(*result)));",
        ],
        replacement: &[],
        tests: STATE,
    },
    Mutant {
        name: "older-answer-counts",
        promise: "What became ready in the millisecond in which its store was asked what it holds is not lost by the \
                  answer.",
        file: "state/src/ray/reconcile.rs",
        original: &["if self.ray.placed_since(id, store).is_none_or(|since| since >= asked_ms) {"],
        replacement: &["if self.ray.placed_since(id, store).is_none_or(|since| since > asked_ms) {"],
        tests: STATE,
    },
    Mutant {
        name: "put-again-while-it-is-freed",
        promise: "INV-33: an object that a store is still told to free is not written anew under its id: the order, \
                  which stays until it was carried out, would free that.",
        file: "state/src/ray/calls.rs",
        original: &["None => !self.stores.keys().any(|store| self.outbox.is_freeing(*store, object)),"],
        replacement: &["None => true,"],
        tests: STATE,
    },
    Mutant {
        name: "session-begun-in-its-middle",
        promise: "A request of a session that has expired is refused, and never executed once more in a new one.",
        file: "state/src/ray/session.rs",
        original: &["if stamp.sequence.0 != 1 {"],
        replacement: &["if stamp.acknowledged_below.0 > 1 {"],
        tests: STATE,
    },
];
