//! The scheduler against a direct and naive writing of the scheduler of 2016, and against its own laws.
//!
//! | module | what |
//! |---|---|
//! | `upstream` | the model: vectors and scans, as the original had them, and refusals where it aborted |
//! | `generate` | random histories, made of choices that a model's state turns into requests |
//! | `drive` | one history in both, compared after every call |
//! | `search` | many histories, and the shortest one that fails |
//! | `machine` | a state with one job, and short words for what the tests do |
//! | `facts` | single facts, written by hand |
//! | `rows` | fixed scenarios in which the leader is killed after every step |
//! | `failures` | a world of processes that die, repeat themselves and come late, and the laws that hold in it |
//!
//! `TRIPOD_CASES=N` runs N histories, `TRIPOD_SEED=S` begins with the one that a failure named.

mod drive;
mod facts;
mod failures;
mod generate;
mod machine;
mod rows;
mod search;
mod upstream;

use tripod_state::ray::Algorithm;

/// Assignments, answers, orders and everything that is shown are the same for random histories.
#[test]
fn the_scheduler_does_what_the_original_did() {
    search::search(1, |choices| drive::compare(Algorithm::LocalityAware, choices));
}

#[test]
fn the_naive_scheduler_does_what_the_original_did() {
    search::search(4, |choices| drive::compare(Algorithm::Naive, choices));
}

/// The comparison is worth something only if the histories get to the interesting places.
#[test]
fn the_random_histories_reach_everything() {
    use std::collections::BTreeMap;

    use upstream::{Sent, Upstream};

    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..1_500 {
        let mut model = Upstream::new(Algorithm::LocalityAware);
        for choice in generate::history(seed) {
            for (process, request) in generate::calls(&model, choice) {
                let (verdict, sent) = model.ask(process, &request);
                let faults = verdict.err().unwrap_or_default().into_iter().map(str::to_owned);
                let sent = sent.iter().map(|sent: &Sent| format!("{sent:?}"));
                for text in faults.chain(sent) {
                    let word = text.split('(').next().unwrap_or_default();
                    *seen.entry(word.to_owned()).or_default() += 1;
                }
            }
        }
    }
    for wanted in [
        "Execute",
        "Import",
        "Die",
        "Deliver",
        "NotifyAlias",
        "Deallocate",
        "FunctionUnknown",
        "WorkerUnknown",
        "WorkerExpired",
        "StoreUnknown",
        "NoStore",
        "ObjectUnknown",
        "ObjectDeallocated",
        "ArgumentUnknown",
        "ArgumentDeallocated",
        "Invalid",
        "NotOwned",
        "TooFewReferences",
        "AliasedAlready",
        "AliasOfItself",
        "AliasCycle",
        "AliasOfValue",
        "ReadyAlias",
        "ContainedAlready",
        "IsDriver",
    ] {
        assert!(seen.get(wanted).is_some_and(|times| *times >= 3), "{wanted} was hardly seen: {seen:?}");
    }
}
