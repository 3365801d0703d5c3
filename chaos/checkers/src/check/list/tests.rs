//! Valid lists pass, and every planted mistake is seen.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::check::Conclusion;
use crate::check::testing::{Executor, Tally, small};
use crate::history::{ClientId, Micros, OperationId, Outcome};

const SEEDS: u64 = 60;

fn model(seed: u64) -> History {
    let keys = 1 + seed % 3;
    let mut lists: BTreeMap<u64, Vec<Element>> = BTreeMap::new();
    let mut fresh = 0;
    Executor::new(seed).run(|random, slot| {
        let number = random.random_range(0..keys);
        let list = Key::from(format!("l/{number}"));
        let held = lists.entry(number).or_default();
        if random.random_bool(0.5) {
            return (Call::ReadList { list }, Outcome::Ok(Reply::Elements(held.clone())));
        }
        fresh += 1;
        if slot.effective {
            held.push(Element(fresh));
        }
        (Call::Append { list, element: Element(fresh) }, Outcome::Ok(Reply::Done))
    })
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

/// Changes what some read with at least `at_least` elements saw.
fn edit_read(
    random: &mut SmallRng,
    history: &mut History,
    at_least: usize,
    change: impl FnOnce(&mut SmallRng, &mut Vec<Element>),
) -> bool {
    let mut reads: Vec<&mut Vec<Element>> = history
        .operations
        .iter_mut()
        .filter_map(|operation| match &mut operation.outcome {
            Outcome::Ok(Reply::Elements(elements)) if elements.len() >= at_least => Some(elements),
            _ => None,
        })
        .collect();
    if reads.is_empty() {
        return false;
    }
    let place = random.random_range(0..reads.len());
    change(random, reads[place]);
    true
}

fn acknowledged_before(history: &History, element: Element, read: &Operation) -> bool {
    history.operations.iter().any(|operation| {
        operation.acknowledged()
            && operation.completed < read.invoked
            && matches!(operation.call, Call::Append { element: other, .. } if other == element)
    })
}

#[test]
fn valid_lists_pass() {
    for seed in 0..100 {
        let checked = judge(&model(seed));
        assert!(checked.held(), "seed {seed}: {checked:?}");
    }
}

#[test]
fn a_lost_append_is_seen() {
    Tally::all_caught(
        "lost append",
        SEEDS,
        model,
        |random, history| {
            // Gone from all reads that must have seen it.
            let candidates: Vec<Element> = history
                .operations
                .iter()
                .filter(|operation| operation.acknowledged())
                .filter_map(|operation| match (&operation.call, operation.reply()) {
                    (Call::ReadList { .. }, Some(Reply::Elements(elements))) => elements
                        .iter()
                        .copied()
                        .find(|element| acknowledged_before(history, *element, operation)),
                    _ => None,
                })
                .collect();
            if candidates.is_empty() {
                return false;
            }
            let lost = candidates[random.random_range(0..candidates.len())];
            for operation in &mut history.operations {
                if let Outcome::Ok(Reply::Elements(elements)) = &mut operation.outcome {
                    elements.retain(|element| *element != lost);
                }
            }
            true
        },
        judge,
    );
}

#[test]
fn a_reordered_append_is_seen() {
    Tally::all_caught(
        "reordered append",
        SEEDS,
        model,
        |random, history| {
            // All reads agree on the wrong order: only time contradicts it.
            let before: Vec<(Element, Element)> = history
                .operations
                .iter()
                .filter_map(|operation| match operation.reply() {
                    Some(Reply::Elements(elements)) if elements.len() > 2 => Some((elements, operation)),
                    _ => None,
                })
                .flat_map(|(elements, _)| {
                    elements.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
                })
                .filter(|(first, second)| {
                    let append = |wanted: Element| {
                        history.operations.iter().find(move |operation| {
                        matches!(operation.call, Call::Append { element, .. } if element == wanted)
                    })
                    };
                    let (Some(first), Some(second)) = (append(*first), append(*second)) else { return false };
                    first.acknowledged() && first.completed < second.invoked
                })
                .collect();
            if before.is_empty() {
                return false;
            }
            let (first, second) = before[random.random_range(0..before.len())];
            for operation in &mut history.operations {
                let Outcome::Ok(Reply::Elements(elements)) = &mut operation.outcome else { continue };
                let places: Vec<usize> =
                    (0..elements.len()).filter(|place| [first, second].contains(&elements[*place])).collect();
                match places[..] {
                    [one, other] => elements.swap(one, other),
                    [one] => elements[one] = second,
                    _ => {}
                }
            }
            true
        },
        judge,
    );
}

#[test]
fn a_read_in_another_order_is_seen() {
    Tally::all_caught(
        "another order in one read",
        SEEDS,
        model,
        |random, history| {
            edit_read(random, history, 3, |random, elements| {
                let place = random.random_range(0..elements.len() - 1);
                elements.swap(place, place + 1);
            })
        },
        judge,
    );
}

#[test]
fn a_double_append_is_seen() {
    Tally::all_caught(
        "double append",
        SEEDS,
        model,
        |random, history| {
            edit_read(random, history, 1, |random, elements| {
                let again = elements[random.random_range(0..elements.len())];
                elements.push(again);
            })
        },
        judge,
    );
}

#[test]
fn an_element_from_nowhere_or_of_a_failed_append_is_seen() {
    Tally::all_caught(
        "phantom element",
        SEEDS,
        model,
        |random, history| {
            let failed =
                history.operations.iter().find_map(|operation| match (&operation.call, &operation.outcome) {
                    (Call::Append { element, .. }, Outcome::Fail(_)) => Some(*element),
                    _ => None,
                });
            edit_read(random, history, 0, |_, elements| elements.push(failed.unwrap_or(Element(1 << 40))))
        },
        judge,
    );
}

#[test]
fn a_stale_read_is_seen() {
    Tally::all_caught(
        "stale read of a list",
        SEEDS,
        model,
        |random, history| {
            // Back to before something that an earlier read had seen: no append needs to be acknowledged for
            // that.
            let reads: Vec<(usize, usize)> = (0..history.operations.len())
                .filter_map(|place| {
                    let read = &history.operations[place];
                    let (Call::ReadList { list }, Some(Reply::Elements(_))) = (&read.call, read.reply())
                    else {
                        return None;
                    };
                    let earlier =
                        history.operations.iter().filter_map(|other| match (&other.call, other.reply()) {
                            (Call::ReadList { list: same }, Some(Reply::Elements(elements)))
                                if same == list && other.completed < read.invoked =>
                            {
                                Some(elements.len())
                            }
                            _ => None,
                        });
                    earlier.max().filter(|length| *length > 0).map(|length| (place, length - 1))
                })
                .collect();
            if reads.is_empty() {
                return false;
            }
            let (place, length) = reads[random.random_range(0..reads.len())];
            let Outcome::Ok(Reply::Elements(elements)) = &mut history.operations[place].outcome else {
                return false;
            };
            elements.truncate(length);
            true
        },
        judge,
    );
}

#[test]
fn the_cycle_is_short_and_in_words() {
    let operation = |id: u64, times: (u64, u64), call: Call, outcome: Outcome| Operation {
        id: OperationId(id),
        client: ClientId(0),
        node: None,
        call,
        invoked: Micros(times.0),
        completed: Micros(times.1),
        attempts: 1,
        outcome,
    };
    let list = Key::from("l");
    let append = |id: u64, times, element| {
        let call = Call::Append { list: list.clone(), element: Element(element) };
        operation(id, times, call, Outcome::Unknown("no answer".into()))
    };
    let read = |id: u64, times, elements: &[u64]| {
        let elements = elements.iter().copied().map(Element).collect();
        operation(id, times, Call::ReadList { list: list.clone() }, Outcome::Ok(Reply::Elements(elements)))
    };
    let operations = vec![
        append(0, (0, 1), 1),
        append(1, (2, 3), 2),
        read(2, (10, 20), &[1, 2]),
        read(3, (30, 40), &[1]),
        read(4, (50, 60), &[1, 2]),
    ];
    let checked = judge(&History { operations, ..History::default() });
    let [violation] = checked.violations() else { panic!("{checked:?}") };
    assert_eq!((violation.rule.as_str(), violation.operations.len()), ("cycle", 3), "{violation}");
    assert!(violation.operations.contains(&OperationId(2)) && violation.operations.contains(&OperationId(3)));
}

#[test]
fn an_element_that_is_appended_twice_voids_the_check() {
    let mut history = model(1);
    let append = history
        .operations
        .iter()
        .find(|operation| matches!(operation.call, Call::Append { .. }) && operation.acknowledged());
    history.operations.push(append.unwrap().clone());
    assert!(matches!(judge(&history).conclusion, Conclusion::Void(_)));
}

/// Every order is tried, by rules that are written down once more and as simply as possible.
#[test]
fn the_checker_is_right_both_ways() {
    let mut random = SmallRng::seed_from_u64(12);
    let (mut with, mut without) = (0, 0);
    for round in 0..6_000 {
        let length = random.random_range(2..7);
        let history = small::random(&mut random, length, |random, id| {
            let list = Key::from("l");
            if random.random_bool(0.5) {
                return (Call::Append { list, element: Element(id) }, Outcome::Ok(Reply::Done));
            }
            let seen: Vec<Element> = (0..length).filter(|_| random.random_bool(0.25)).map(Element).collect();
            (Call::ReadList { list }, Outcome::Ok(Reply::Elements(seen)))
        });
        let expected = small::has_order(
            &history,
            &Vec::new(),
            &|held: &Vec<Element>, operation: &Operation| match (&operation.call, operation.reply()) {
                (Call::Append { element, .. }, _) => Some([held.as_slice(), &[*element]].concat()),
                (_, Some(Reply::Elements(seen))) => (seen == held).then(|| held.clone()),
                _ => None,
            },
        );
        let checked = judge(&history);
        assert_eq!(checked.held(), expected, "round {round}: {:#?} {checked:?}", history.operations);
        *if expected { &mut with } else { &mut without } += 1;
    }
    eprintln!("{with} histories with an order, {without} without");
    assert!(with > 500 && without > 500, "{with} {without}");
}
