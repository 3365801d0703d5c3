//! Barriers of a model that makes no mistakes pass.

mod planted;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::history::{BarrierSeen, ClientId, Micros, Missing, OperationId, Outcome};

const TIMEOUT: Micros = Micros::from_millis(1_000);
/// The model's arrivals count within this.
const SETTLES: Micros = Micros::from_millis(100);

/// Tasks that meet some twenty times; some come too late, some answers are lost, and somebody looks on.
fn model(seed: u64) -> History {
    let mut random = SmallRng::seed_from_u64(seed);
    let members: Vec<TaskId> = (0..random.random_range(2..6)).map(TaskId).collect();
    let mut operations = Vec::new();
    let mut now = 0;
    for generation in 0..20 {
        now += 5_000_000;
        meet(&mut random, &members, Generation(generation), now, &mut operations);
    }
    operations.sort_by_key(|operation: &Operation| operation.invoked);
    for (id, operation) in (0..).zip(&mut operations) {
        operation.id = OperationId(id);
    }
    History { operations, ..History::default() }
}

fn meet(
    random: &mut SmallRng,
    members: &[TaskId],
    generation: Generation,
    now: u64,
    operations: &mut Vec<Operation>,
) {
    let fails = random.random_bool(0.5);
    // When each task calls, and when that counts. In half of the instances one or more come late or never.
    let late = random.random_range(1..members.len());
    let calls: Vec<Option<(u64, u64)>> = (0..members.len())
        .map(|place| {
            let invoked = now + random.random_range(0..300_000);
            let counts = invoked + random.random_range(1_000..50_000);
            match fails && place >= late {
                true if random.random_bool(0.5) => None,
                true => Some((invoked + 3_000_000, counts + 3_000_000)),
                false => Some((invoked, counts)),
            }
        })
        .collect();
    let opened = calls.iter().flatten().map(|(_, counts)| *counts).min().unwrap();
    let end = if fails {
        opened + TIMEOUT.0
    } else {
        calls.iter().flatten().map(|(_, counts)| *counts).max().unwrap()
    };
    let came = |at: u64| -> (Vec<TaskId>, Vec<TaskId>) {
        let there = |place: &usize| calls[*place].is_some_and(|(_, counts)| counts <= at);
        let (came, missing): (Vec<usize>, Vec<usize>) = (0..members.len()).partition(there);
        (
            came.into_iter().map(|at| members[at]).collect(),
            missing.into_iter().map(|at| members[at]).collect(),
        )
    };
    let missing = came(end).1;
    let mut named = missing.clone();
    if random.random_bool(0.5) {
        named.truncate(2);
    }
    let missing = Missing { count: u32::try_from(missing.len()).unwrap(), named };
    for (place, call) in calls.iter().enumerate() {
        let Some((invoked, counts)) = *call else { continue };
        let outcome = match fails {
            _ if random.random_bool(0.1) => Outcome::Unknown("no answer".into()),
            true => Outcome::Ok(Reply::BarrierFailed {
                reason: "timed out".into(),
                missing: Some(missing.clone()),
            }),
            false => Outcome::Ok(Reply::Passed),
        };
        let completed = end.max(counts) + random.random_range(1_000..50_000);
        operations.push(operation(
            members[place],
            (invoked, completed),
            arrive(generation, members[place], members),
            outcome,
        ));
    }
    for _ in 0..3 {
        let at = random.random_range(opened..end);
        let (arrived, missing) = came(at);
        let times = (at - random.random_range(1..900), at + random.random_range(1..900));
        let call = Call::ReadBarrier { job: Job::from("job"), barrier: Barrier::from("b") };
        let seen = BarrierSeen { generation, arrived, missing };
        operations.push(operation(TaskId(99), times, call, Outcome::Ok(Reply::BarrierSeen(Some(seen)))));
    }
}

fn arrive(generation: Generation, task: TaskId, members: &[TaskId]) -> Call {
    Call::Arrive {
        job: Job::from("job"),
        barrier: Barrier::from("b"),
        generation,
        task,
        members: members.to_vec(),
        timeout_ms: TIMEOUT.0 / 1_000,
    }
}

fn operation(task: TaskId, times: (u64, u64), call: Call, outcome: Outcome) -> Operation {
    Operation {
        id: OperationId(0),
        client: ClientId(u32::try_from(task.0).unwrap()),
        node: None,
        call,
        invoked: Micros(times.0),
        completed: Micros(times.1),
        attempts: 1,
        outcome,
    }
}

fn judge(history: &History) -> Checked {
    check(history, &Rules { arrival_settles: Some(SETTLES), ..Rules::default() })
}

/// As a run is judged that cannot say how soon an arrival counts.
fn judge_by_looks(history: &History) -> Checked {
    check(history, &Rules::default())
}

#[test]
fn valid_barriers_pass() {
    for seed in 0..300 {
        for judge in [judge, judge_by_looks] {
            let checked = judge(&model(seed));
            assert!(checked.held(), "seed {seed}: {checked:?}");
            assert!(checked.examined > 60, "{checked:?}");
        }
    }
}
