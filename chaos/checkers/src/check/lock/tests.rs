//! Valid locks pass, and every planted mistake is seen.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::*;
use crate::check::testing::{Executor, Tally};
use crate::history::{Outcome, Value};

const SEEDS: u64 = 100;
const OVERTAKEN: Outcome = Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current: None }));

/// Locks that are taken, stolen and released, and holders that write late.
fn model(seed: u64) -> History {
    let mut lock = LockSeen { fence: Fence(0), held: false };
    let mut held: Option<Guarded> = None;
    let mut fresh = 0;
    let (key, register) = (Key::from("lock/0"), Key::from("guarded/0"));
    let done = Outcome::Ok(Reply::Done);
    Executor::new(seed).run(move |random, slot| {
        let (key, register) = (key.clone(), register.clone());
        let stale = Fence(lock.fence.0.saturating_sub(random.random_range(0..3)).max(1));
        match random.random_range(0..10) {
            0 | 1 => {
                let seen = (lock.fence.0 > 0).then_some(lock);
                (Call::ReadLock { lock: key }, Outcome::Ok(Reply::Lock(seen)))
            }
            2 | 3 => (Call::ReadGuarded { register }, Outcome::Ok(Reply::Guarded(held))),
            4 | 5 => {
                let steals = lock.held;
                if steals && random.random_bool(0.7) {
                    let call = Call::Acquire { lock: key, fence: lock.fence, steals };
                    return (call, Outcome::Fail("somebody else was first".into()));
                }
                let fence = Fence(lock.fence.0 + 1);
                if slot.effective {
                    lock = LockSeen { fence, held: true };
                }
                (Call::Acquire { lock: key, fence, steals }, done.clone())
            }
            6 | 7 if lock.held => {
                let ours = stale == lock.fence;
                if ours && slot.effective {
                    lock.held = false;
                }
                let answer = if ours { done.clone() } else { OVERTAKEN };
                (Call::Release { lock: key, fence: stale }, answer)
            }
            _ if lock.fence.0 > 0 => {
                fresh += 1;
                let value = Value(fresh);
                let allowed = held.is_none_or(|held| held.fence <= stale);
                if allowed && slot.effective {
                    held = Some(Guarded { fence: stale, value });
                }
                let answer = if allowed { done.clone() } else { OVERTAKEN };
                (Call::WriteGuarded { register, fence: stale, value }, answer)
            }
            _ => (Call::ReadLock { lock: key }, Outcome::Ok(Reply::Lock(None))),
        }
    })
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

/// Some operation that fits and what `before` finds among those that were over before it began.
fn pair<T>(
    random: &mut SmallRng,
    history: &History,
    fits: impl Fn(&Operation) -> bool,
    before: impl Fn(&Operation) -> Option<T>,
) -> Option<(usize, T)> {
    let mut places: Vec<usize> = (0..history.operations.len()).collect();
    places.retain(|place| fits(&history.operations[*place]));
    while !places.is_empty() {
        let place = places.swap_remove(random.random_range(0..places.len()));
        let invoked = history.operations[place].invoked;
        let mut earlier = history.operations.iter().filter(|operation| operation.completed < invoked);
        if let Some(found) = earlier.find_map(&before) {
            return Some((place, found));
        }
    }
    None
}

/// The token of an acknowledged call of a kind, if it is not the first one.
fn token(operation: &Operation, kind: &str) -> Option<Fence> {
    match &operation.call {
        Call::Acquire { fence, .. } | Call::WriteGuarded { fence, .. }
            if operation.acknowledged() && operation.call.kind() == kind && fence.0 > 1 =>
        {
            Some(*fence)
        }
        _ => None,
    }
}

/// Gives an acknowledged call the token that `other` makes of an earlier one's.
fn retoken(random: &mut SmallRng, history: &mut History, kind: &str, other: impl Fn(Fence) -> Fence) -> bool {
    let found =
        pair(random, history, |operation| token(operation, kind).is_some(), |earlier| token(earlier, kind));
    let Some((place, earlier)) = found else { return false };
    let (Call::Acquire { fence, .. } | Call::WriteGuarded { fence, .. }) =
        &mut history.operations[place].call
    else {
        return false;
    };
    *fence = other(earlier);
    true
}

#[test]
fn valid_locks_pass() {
    for seed in 0..300 {
        let checked = judge(&model(seed));
        assert!(checked.held() && checked.examined > 0, "seed {seed}: {checked:?}");
    }
}

#[test]
fn a_token_that_is_given_out_twice_is_seen() {
    let plant =
        |random: &mut SmallRng, history: &mut History| retoken(random, history, "acquire", |fence| fence);
    Tally::all_caught("two holders", SEEDS, model, plant, judge);
}

#[test]
fn a_token_that_falls_is_seen() {
    let plant = |random: &mut SmallRng, history: &mut History| {
        retoken(random, history, "acquire", |fence| Fence(fence.0 - 1))
    };
    Tally::all_caught("token went back", SEEDS, model, plant, judge);
}

#[test]
fn a_lock_that_is_taken_from_its_holder_as_if_it_were_free_is_seen() {
    let plant = |_: &mut SmallRng, history: &mut History| {
        let taken = history.operations.iter().find_map(|operation| match &operation.call {
            Call::Acquire { fence, steals: false, .. } if operation.acknowledged() && fence.0 > 1 => {
                Some(Fence(fence.0 - 1))
            }
            _ => None,
        });
        let Some(last) = taken else { return false };
        history
            .operations
            .retain(|operation| !matches!(&operation.call, Call::Release { fence, .. } if *fence == last));
        true
    };
    Tally::all_caught("taken while held", SEEDS, model, plant, judge);
}

#[test]
fn a_write_with_an_old_token_that_is_accepted_is_seen() {
    let plant = |random: &mut SmallRng, history: &mut History| {
        retoken(random, history, "write-guarded", |fence| Fence(fence.0 - 1))
    };
    Tally::all_caught("stale write accepted", SEEDS, model, plant, judge);
}

#[test]
fn a_guarded_value_that_goes_back_is_seen() {
    let plant = |random: &mut SmallRng, history: &mut History| {
        let fits = |operation: &Operation| matches!(operation.reply(), Some(Reply::Guarded(Some(_))));
        let written = |earlier: &Operation| token(earlier, "write-guarded");
        let Some((place, _)) = pair(random, history, fits, written) else { return false };
        history.operations[place].outcome = Outcome::Ok(Reply::Guarded(None));
        true
    };
    Tally::all_caught("guarded value went back", SEEDS, model, plant, judge);
}

#[test]
fn what_nobody_wrote_is_seen() {
    let plant = |random: &mut SmallRng, history: &mut History| {
        let seen = history.operations.iter_mut().filter_map(|operation| match &mut operation.outcome {
            Outcome::Ok(Reply::Guarded(Some(seen))) => Some(seen),
            _ => None,
        });
        let mut seen: Vec<&mut Guarded> = seen.collect();
        if seen.is_empty() {
            return false;
        }
        let place = random.random_range(0..seen.len());
        seen[place].value = Value(1 << 50);
        true
    };
    Tally::all_caught("phantom guarded value", SEEDS, model, plant, judge);
}

#[test]
fn a_holder_that_was_robbed_by_nobody_is_seen() {
    let plant = |_: &mut SmallRng, history: &mut History| {
        let place = history.operations.iter().position(|operation| {
            let Call::Release { fence, .. } = &operation.call else { return false };
            let next = history.operations.iter().filter(|other| other.invoked < operation.completed);
            let mut next = next.filter(|other| other.outcome.may_have_effect());
            let overtaken = next.any(|other| {
                let (Call::Acquire { fence: other, .. } | Call::Release { fence: other, .. }) = &other.call
                else {
                    return false;
                };
                other > fence
            });
            operation.acknowledged() && !overtaken
        });
        let Some(place) = place else { return false };
        history.operations[place].outcome = OVERTAKEN;
        true
    };
    Tally::all_caught("refused by nobody", SEEDS, model, plant, judge);
}
