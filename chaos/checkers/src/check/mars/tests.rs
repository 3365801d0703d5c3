//! Graphs and tensors of a service that makes no mistakes, and the mistakes that are planted in what clients saw.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::check;
use crate::check::testing::{Executor, Tally, small};
use crate::check::{Checked, Conclusion, Rules};
use crate::history::{
    Call, Cell, ClientId, Content, Epoch, Found, GraphAct, GraphName, GraphSeen, GraphState, Header, History,
    Micros, Operation, Outcome, Recorder, Refusal, Reply, StreamId, TensorAct, TensorName, TensorSeen,
    TensorState, Timestamp, Value,
};

type Act = (Call, Outcome);

fn graph(act: GraphAct, reply: Reply) -> Act {
    (Call::Graph { graph: GraphName::from("s/g"), act }, Outcome::Ok(reply))
}

fn tensor(act: TensorAct, reply: Reply) -> Act {
    (Call::Tensor { tensor: TensorName::from("s/t"), act }, Outcome::Ok(reply))
}

fn is(state: GraphState, progress: u32) -> Reply {
    Reply::Graph(GraphSeen { state, progress_millionths: Some(progress) })
}

fn open(epoch: u64, state: TensorState) -> Reply {
    Reply::Tensor(TensorSeen { epoch: Epoch(epoch), state, copies: 2 })
}

fn found(value: Option<u64>) -> Reply {
    Reply::Value(value.map(|value| Found { value: Value(value), version: None, index: None }))
}

fn submit(content: u64, makes: Option<u64>) -> GraphAct {
    GraphAct::Submit { content: Content(content), makes: makes.map(Value), expires: false }
}

fn write(at: i64, value: u64, epoch: u64) -> TensorAct {
    TensorAct::Write { cell: Cell(0), at: Timestamp(at), value: Value(value), epoch: Epoch(epoch) }
}

fn read(at: Option<i64>, epoch: u64) -> TensorAct {
    TensorAct::Read { cell: Cell(0), at: at.map(Timestamp), epoch: Epoch(epoch) }
}

fn seal(at: Option<i64>) -> TensorAct {
    TensorAct::Seal { at: at.map(Timestamp) }
}

/// One after the other; with such a fault all the while, if there is one.
fn history(acts: &[Act], fault: Option<&str>) -> History {
    let recorder = Recorder::new(Header::default());
    if let Some(kind) = fault {
        recorder.fault(Micros(0), kind, "somebody").heal(Micros(1));
    }
    for (place, (call, outcome)) in (1..).zip(acts.iter().cloned()) {
        recorder.invoke(Micros(place * 10), ClientId(1), call).complete(Micros(place * 10 + 1), outcome);
    }
    recorder.history(Micros(1_000_000))
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

fn broken(acts: &[Act], fault: Option<&str>) -> Vec<String> {
    let checked = judge(&history(acts, fault));
    assert_eq!(checked.examined, acts.len() as u64);
    checked.violations().iter().map(|violation| violation.rule.clone()).collect()
}

/// A graph that succeeds, is read and is deleted.
fn course() -> Vec<Act> {
    let hear = GraphAct::Hear { stream: StreamId(1) };
    vec![
        graph(submit(1, Some(7)), is(GraphState::Unscheduled, 0)),
        graph(submit(1, Some(7)), is(GraphState::Running, 0)),
        graph(submit(2, Some(8)), Reply::Refused(Refusal::Exists)),
        graph(GraphAct::Look, is(GraphState::Running, 500_000)),
        graph(hear.clone(), is(GraphState::Running, 0)),
        graph(hear, is(GraphState::Succeeded, 1_000_000)),
        graph(GraphAct::Look, is(GraphState::Succeeded, 1_000_000)),
        graph(GraphAct::Fetch, found(Some(7))),
        graph(GraphAct::Delete, Reply::Done),
        graph(GraphAct::Look, Reply::Refused(Refusal::Missing)),
    ]
}

/// A tensor that is written, sealed, read and deleted, after sealing has failed once.
fn life() -> Vec<Act> {
    vec![
        tensor(TensorAct::Create, open(1, TensorState::Open)),
        tensor(read(None, 1), found(None)),
        tensor(write(5, 50, 1), Reply::Done),
        tensor(write(9, 90, 1), Reply::Done),
        tensor(write(7, 70, 1), Reply::Done),
        tensor(read(None, 1), found(Some(90))),
        tensor(read(Some(8), 1), found(Some(70))),
        tensor(read(Some(4), 1), found(None)),
        tensor(TensorAct::Look, open(1, TensorState::Sealing)),
        tensor(TensorAct::Look, open(2, TensorState::Open)),
        tensor(write(8, 80, 1), Reply::Refused(Refusal::Stale)),
        tensor(write(8, 81, 2), Reply::Done),
        tensor(seal(Some(8)), Reply::Done),
        tensor(seal(Some(9)), Reply::Refused(Refusal::Busy)),
        tensor(write(8, 82, 2), Reply::Refused(Refusal::Stale)),
        tensor(TensorAct::ReadSealed { cell: Cell(0) }, found(Some(81))),
        tensor(read(None, 2), found(Some(90))),
        tensor(TensorAct::Look, open(2, TensorState::Sealed)),
        tensor(TensorAct::Delete, Reply::Done),
        tensor(TensorAct::Look, Reply::Refused(Refusal::Missing)),
    ]
}

fn with(mut acts: Vec<Act>, place: usize, reply: Reply) -> Vec<Act> {
    acts[place].1 = Outcome::Ok(reply);
    acts
}

fn without(mut acts: Vec<Act>, place: usize) -> Vec<Act> {
    acts.remove(place);
    acts
}

#[test]
fn what_keeps_every_promise_holds() {
    assert_eq!(broken(&course(), None), [""; 0]);
    assert_eq!(broken(&life(), None), [""; 0]);
    let stopped = [
        graph(submit(1, Some(7)), is(GraphState::Running, 0)),
        graph(GraphAct::Stop, is(GraphState::Cancelling, 0)),
        graph(GraphAct::Look, is(GraphState::Cancelled, 0)),
        graph(GraphAct::Stop, is(GraphState::Cancelled, 0)),
    ];
    assert_eq!(broken(&stopped, None), [""; 0]);
}

#[test]
fn a_graph_has_one_end_and_goes_forward() {
    let failed = with(course(), 6, is(GraphState::Failed, 1_000_000));
    assert_eq!(broken(&failed, Some("kill-worker")), ["two-ends"]);
    let back = with(course(), 6, is(GraphState::Running, 1_000_000));
    assert_eq!(broken(&back, None), ["state-went-back"]);
    let fell = with(course(), 6, is(GraphState::Succeeded, 400_000));
    assert_eq!(broken(&fell, None), ["progress-fell"]);
    // What one stream tells is in order; of two streams each may be late.
    let mut late = course();
    late.insert(6, graph(GraphAct::Hear { stream: StreamId(2) }, is(GraphState::Running, 0)));
    assert_eq!(broken(&late, None), [""; 0]);
    late[6] = graph(GraphAct::Hear { stream: StreamId(1) }, is(GraphState::Running, 0));
    assert_eq!(broken(&late, None), ["state-went-back"]);
    let revived = [
        graph(submit(1, Some(7)), is(GraphState::Running, 0)),
        graph(GraphAct::Stop, is(GraphState::Cancelling, 0)),
        graph(GraphAct::Look, is(GraphState::Succeeded, 1_000_000)),
    ];
    assert_eq!(broken(&revived, None), ["state-went-back"]);
}

#[test]
fn a_graph_ends_as_it_must() {
    let cancelled = [
        graph(submit(1, Some(7)), is(GraphState::Running, 0)),
        graph(GraphAct::Look, is(GraphState::Cancelled, 0)),
    ];
    assert_eq!(broken(&cancelled, None), ["cancelled-by-nobody"]);
    let failed = with(cancelled.to_vec(), 1, is(GraphState::Failed, 0));
    assert_eq!(broken(&failed, None), ["failed-for-nothing"]);
    assert_eq!(broken(&failed, Some("kill-machine")), [""; 0]);
    let open = with(cancelled.to_vec(), 1, is(GraphState::Running, 0));
    assert_eq!(broken(&open, None), ["no-end"]);
    let mut succeeded = with(cancelled.to_vec(), 1, is(GraphState::Succeeded, 1_000_000));
    succeeded[0] = graph(submit(1, None), is(GraphState::Running, 0));
    assert_eq!(broken(&succeeded, None), ["failure-succeeded"]);
    let wrong = with(course(), 7, found(Some(6)));
    assert_eq!(broken(&wrong, None), ["wrong-value"]);
}

#[test]
fn a_graph_is_there_until_it_is_deleted_and_one_name_has_one_graph() {
    let lost = with(course(), 6, Reply::Refused(Refusal::Missing));
    assert_eq!(broken(&lost, None), ["graph-lost"]);
    let there = with(course(), 9, is(GraphState::Succeeded, 1_000_000));
    assert_eq!(broken(&there, None), ["deleted-is-there"]);
    // Somebody may have made it once more.
    let mut again = there;
    again[1].1 = Outcome::Unknown("no answer".into());
    assert_eq!(broken(&again, None), [""; 0]);
    let kept: Vec<Act> = course().into_iter().take(8).collect();
    let other = with(kept.clone(), 2, is(GraphState::Running, 0));
    assert_eq!(broken(&other, None), ["other-bytes-taken"]);
    let same = with(kept, 1, Reply::Refused(Refusal::Exists));
    assert_eq!(broken(&same, None), ["same-bytes-refused"]);
}

#[test]
fn epochs_rise_and_what_is_sealed_or_lost_stays_so() {
    let fell = with(life(), 9, open(0, TensorState::Open));
    assert_eq!(broken(&fell, None), ["tensor-went-back", "other-epoch-taken"]);
    let same = with(life(), 9, open(1, TensorState::Open));
    assert_eq!(broken(&same, None), ["tensor-went-back"]);
    let opened = with(life(), 17, open(2, TensorState::Open));
    let mut opened = opened;
    opened.insert(17, tensor(TensorAct::Look, open(2, TensorState::Sealed)));
    assert_eq!(broken(&opened, None), ["tensor-went-back"]);
    let lost: Vec<Act> = vec![
        tensor(TensorAct::Create, open(1, TensorState::Open)),
        tensor(TensorAct::Look, open(1, TensorState::Lost)),
    ];
    assert_eq!(broken(&lost, Some("kill-store")), ["lost-with-a-copy"]);
    assert_eq!(broken(&lost, Some("kill-peers")), [""; 0]);
}

#[test]
fn nothing_stale_is_taken() {
    let stale = with(life(), 10, Reply::Done);
    assert_eq!(broken(&stale, None), ["other-epoch-taken"]);
    let mut early = life();
    early[7] = tensor(write(6, 60, 2), Reply::Done);
    assert_eq!(broken(&early, None), ["other-epoch-taken"]);
    let late = with(life(), 14, Reply::Done);
    assert_eq!(broken(&late, None), ["written-after-seal", "no-order"]);
    let twice = with(life(), 13, Reply::Done);
    assert_eq!(broken(&twice, None), ["sealed-twice"]);
}

#[test]
fn a_tensor_is_there_and_is_sealed_in_the_end() {
    let missing = with(life(), 8, Reply::Refused(Refusal::Missing));
    assert_eq!(broken(&missing, None), ["tensor-lost"]);
    let there = with(life(), 19, open(2, TensorState::Sealed));
    assert_eq!(broken(&there, None), ["deleted-is-there"]);
    let never: Vec<Act> = life().into_iter().take(12).collect();
    assert_eq!(broken(&never, None), ["never-sealed"]);
}

#[test]
fn a_cell_is_read_as_of_its_time_and_sealed_so() {
    for (place, value) in
        [(5, Some(70)), (5, None), (6, Some(50)), (6, Some(90)), (7, Some(50)), (15, Some(70))]
    {
        let wrong = with(life(), place, found(value));
        assert_eq!(broken(&wrong, None), ["no-order"], "{place} {value:?}");
    }
    // After the seal: as of its time by the store that sealed it, as of any by another copy.
    assert_eq!(broken(&with(life(), 16, found(Some(81))), None), [""; 0]);
    assert_eq!(broken(&with(life(), 16, found(Some(70))), None), ["no-order"]);
    let invented = with(life(), 6, found(Some(1234)));
    assert_eq!(broken(&invented, None), ["value-from-nowhere"]);
    // Nobody was told of the write, so it may be missing or there; but not first the one and then the other.
    let mut unknown = without(life(), 6);
    unknown[4].1 = Outcome::Unknown("no answer".into());
    assert_eq!(broken(&unknown, None), [""; 0]);
    unknown.insert(5, tensor(read(Some(7), 1), found(Some(70))));
    assert_eq!(broken(&unknown, None), [""; 0]);
    unknown.insert(6, tensor(read(Some(7), 1), found(Some(50))));
    assert_eq!(broken(&unknown, None), ["no-order"]);
    let mut changed = life();
    changed.insert(16, tensor(TensorAct::ReadSealed { cell: Cell(0) }, found(Some(70))));
    assert_eq!(broken(&changed, None), ["sealed-changed"]);
}

#[test]
fn of_equal_timestamps_the_last_to_take_effect_counts() {
    let acts = |last: u64| {
        [
            tensor(write(5, 1, 1), Reply::Done),
            tensor(write(5, 2, 1), Reply::Done),
            tensor(read(Some(5), 1), found(Some(last))),
        ]
    };
    assert_eq!(broken(&acts(2), None), [""; 0]);
    assert_eq!(broken(&acts(1), None), ["no-order"]);
}

/// Writes of a few timestamps and reads as of some, most of them wrong: some order explains them, or it is noticed.
#[test]
fn small_histories_are_judged_as_by_trying_every_order() {
    let mut orders = 0;
    for seed in 0..4_000 {
        let mut random = SmallRng::seed_from_u64(seed);
        let operations = random.random_range(2..7);
        let history = small::random(&mut random, operations, |random, id| {
            let at = random.random_range(1..4);
            if random.random_bool(0.5) {
                return tensor(write(at, id + 1, 1), Reply::Done);
            }
            let seen = random.random_range(0..operations + 1);
            let at = random.random_bool(0.7).then_some(at);
            tensor(read(at, 1), found((seen > 0).then_some(seen)))
        });
        let step = |state: &BTreeMap<Timestamp, Value>, operation: &Operation| {
            let Call::Tensor { act, .. } = &operation.call else { return None };
            let mut state = state.clone();
            match (act, operation.reply()) {
                (TensorAct::Write { at, value, .. }, _) => {
                    state.insert(*at, *value);
                }
                (TensorAct::Read { at, .. }, Some(Reply::Value(seen))) => {
                    let last = state.range(..=at.unwrap_or(Timestamp(i64::MAX))).next_back();
                    if last.map(|(_, value)| *value) != seen.map(|found| found.value) {
                        return None;
                    }
                }
                _ => {}
            }
            Some(state)
        };
        let expected = small::has_order(&history, &BTreeMap::new(), &step);
        let checked = judge(&history);
        assert_eq!(checked.held(), expected, "seed {seed}: {checked:?}\n{:#?}", history.operations);
        orders += u32::from(expected);
    }
    assert!((400..3_600).contains(&orders), "{orders} of 4000 have an order");
}

/// Several clients write and read one cell, and lose some answers.
fn model(seed: u64) -> History {
    let mut written: BTreeMap<i64, u64> = BTreeMap::new();
    let mut value = 0;
    Executor::new(seed).run(|random, slot| {
        let at = random.random_range(1..6);
        if random.random_bool(0.4) {
            let last = written.range(..=at).next_back().map(|(_, value)| *value);
            return tensor(read(Some(at), 1), found(last));
        }
        value += 1;
        if slot.effective {
            written.insert(at, value);
        }
        tensor(write(at, value, 1), Reply::Done)
    })
}

#[test]
fn long_histories_of_a_right_cell_hold_and_are_decided() {
    for seed in 0..60 {
        let checked = judge(&model(seed));
        assert!(checked.held() && checked.examined > 20, "seed {seed}: {checked:?}");
    }
}

#[test]
fn an_acknowledged_write_that_is_gone_is_seen() {
    Tally::all_caught(
        "acknowledged write of a cell gone",
        60,
        model,
        |random, history| {
            let end = history.end();
            let mut operations = std::mem::take(&mut history.operations);
            let id = operations.len() as u64;
            let value = 1_000_000 + random.random_range(0..1_000);
            let mut at = end.plus(Micros(100_000));
            let acts = [tensor(write(3, value, 1), Reply::Done), tensor(read(Some(3), 1), found(None))];
            for (place, (call, outcome)) in (0..).zip(acts) {
                operations.push(Operation {
                    id: crate::history::OperationId(id + place),
                    client: ClientId(0),
                    node: None,
                    call,
                    invoked: at,
                    completed: at.plus(Micros(5)),
                    attempts: 1,
                    outcome,
                });
                at = at.plus(Micros(10));
            }
            history.operations = operations;
            true
        },
        judge,
    );
}

#[test]
fn a_search_without_a_budget_says_that_it_does_not_know() {
    let checked = check(&model(1), &Rules { steps_per_key: 1, ..Rules::default() });
    assert!(matches!(checked.conclusion, Conclusion::Undecided(_)), "{checked:?}");
}
