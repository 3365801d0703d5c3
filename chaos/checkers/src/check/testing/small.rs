//! Histories so small that every order of their operations can be tried, to see that a checker is right both
//! ways.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use crate::history::{Call, ClientId, History, Micros, Operation, OperationId, Outcome};

/// A few operations at random moments with random answers, most of them wrong.
pub(in crate::check) fn random(
    random: &mut SmallRng,
    operations: u64,
    mut call: impl FnMut(&mut SmallRng, u64) -> (Call, Outcome),
) -> History {
    let operations = (0..operations).map(|id| {
        let (call, answer) = call(random, id);
        let invoked = random.random_range(0..30);
        let outcome = match random.random_range(0..8) {
            0 => Outcome::Unknown("no answer".into()),
            1 if id % 3 == 0 => Outcome::Fail("refused at once".into()),
            _ => answer,
        };
        Operation {
            id: OperationId(id),
            client: ClientId(0),
            node: None,
            call,
            invoked: Micros(invoked),
            completed: Micros(invoked + random.random_range(1..15)),
            attempts: 1,
            outcome,
        }
    });
    let mut operations: Vec<Operation> = operations.collect();
    operations.sort_by_key(|operation| (operation.invoked, operation.id));
    for (id, operation) in (0..).zip(&mut operations) {
        operation.id = OperationId(id);
    }
    History { operations, ..History::default() }
}

/// Whether some order respects time and explains all answers. `step` tells the state after an operation, or
/// `None` if the operation could not have been answered so. Operations whose outcome is not known may be left
/// out.
pub(in crate::check) fn has_order<S: Clone>(
    history: &History,
    state: &S,
    step: &impl Fn(&S, &Operation) -> Option<S>,
) -> bool {
    let left: Vec<&Operation> = history
        .operations
        .iter()
        .filter(|operation| !matches!(operation.outcome, Outcome::Fail(_)))
        .collect();
    order_of(&left, state, step)
}

fn order_of<S: Clone>(left: &[&Operation], state: &S, step: &impl Fn(&S, &Operation) -> Option<S>) -> bool {
    let known = |operation: &Operation| operation.reply().is_some();
    if !left.iter().any(|operation| known(operation)) {
        return true;
    }
    (0..left.len()).any(|next| {
        let first = left[next];
        let in_time = left.iter().all(|other| !known(other) || other.completed >= first.invoked);
        let rest: Vec<&Operation> = left.iter().copied().filter(|other| other.id != first.id).collect();
        in_time && step(state, first).is_some_and(|after| order_of(&rest, &after, step))
    })
}
