//! All checkers together.

use super::*;
use crate::history::{
    Call, ClientId, Element, Fence, Found, Header, History, Incarnation, Job, Key, LockSeen, LogIndex,
    Micros, NodeId, Outcome, Recorder, Reply, TaskId, Value, Work,
};

#[test]
fn every_checker_says_something_of_its_own() {
    let checks = check_all(&History::default(), &Rules::default());
    let names: Vec<&str> = checks.iter().map(|check| check.checker.as_str()).collect();
    let expected = [
        "linear",
        "list",
        "counter",
        "barrier",
        "incarnation",
        "heartbeat",
        "digest",
        "lock",
        "kept",
        "release",
        "scheduled",
        "mindspore",
        "mars",
    ];
    assert_eq!(names, expected);
    assert!(checks.iter().all(|check| check.held() && check.examined == 0), "{checks:?}");
}

/// A run that breaks one promise of each kind is accused once by each checker, also after it was read from a
/// file.
#[test]
fn checkers_do_not_disturb_each_other() {
    let recorder = Recorder::new(Header::default());
    let mut now = 0;
    let mut done = |call: Call, reply: Reply| {
        now += 1_000_000;
        recorder.invoke(Micros(now), ClientId(1), call).complete(Micros(now + 10), Outcome::Ok(reply));
    };
    let (job, task) = (Job::from("job"), TaskId(0));
    let barrier = crate::history::Barrier::from("b");
    done(Call::Write { key: Key::from("r"), value: Value(1) }, Reply::Written { version: None, index: None });
    done(Call::Read { key: Key::from("r") }, Reply::Value(None));
    done(Call::Write { key: Key::from("w"), value: Value(2) }, Reply::Written { version: None, index: None });
    done(Call::Append { list: Key::from("l"), element: Element(1) }, Reply::Done);
    done(Call::ReadList { list: Key::from("l") }, Reply::Elements(Vec::new()));
    done(Call::ReadCounter { counter: Key::from("c") }, Reply::Count(1));
    let (generation, members) = (crate::history::Generation(0), vec![task, TaskId(1)]);
    done(Call::Arrive { job: job.clone(), barrier, generation, task, members, timeout_ms: 9 }, Reply::Passed);
    for incarnation in [1, 2].map(Incarnation) {
        done(Call::Register { job: job.clone(), task, incarnation }, Reply::Done);
    }
    done(Call::Heartbeat { job: job.clone(), task, incarnation: Incarnation(1) }, Reply::Done);
    let dead = Reply::Refused(crate::history::Refusal::Dead);
    done(Call::Heartbeat { job, task, incarnation: Incarnation(2) }, dead);
    for digest in [1, 2] {
        let node = NodeId(digest);
        done(Call::ReadDigest { node }, Reply::Digest { node, applied_index: LogIndex(5), digest });
    }
    done(
        Call::ReadLock { lock: Key::from("lock") },
        Reply::Lock(Some(LockSeen { fence: Fence(1), held: true })),
    );
    done(Call::Submit { work: Work(1), makes: None }, Reply::Done);
    let (role, life) = (crate::history::ClusterRole::Worker, crate::history::LifeId(1));
    let (round, name) = (crate::history::Round(1), crate::history::NodeName::from("n"));
    let node = crate::history::ClusterNode { job: Job::from("ms"), round, name, role, life };
    for rank in [0, 1] {
        let call = Call::Node { node: node.clone(), act: crate::history::Act::ReadRank };
        done(call, Reply::Rank(crate::history::Rank(rank)));
    }
    let graph = crate::history::GraphName::from("s/g");
    for state in [crate::history::GraphState::Succeeded, crate::history::GraphState::Failed] {
        let seen = crate::history::GraphSeen { state, progress_millionths: None };
        let call = Call::Graph { graph: graph.clone(), act: crate::history::GraphAct::Look };
        done(call, Reply::Graph(seen));
    }
    now += 1_000_000;
    let waits = recorder.invoke(Micros(now), ClientId(2), Call::Read { key: Key::from("w") });
    now += 8_000_000;
    let found = Found { value: Value(2), version: None, index: None };
    waits.complete(Micros(now), Outcome::Ok(Reply::Value(Some(found))));
    let timeout = Micros::from_millis(60_000);
    let release = ReleaseRule { bound: Micros::from_millis(6_000), aftermath: timeout };
    let heartbeat = HeartbeatRule { timeout, bound: timeout };
    let rules = Rules { heartbeat: Some(heartbeat), release: Some(release), ..Rules::default() };
    let history = recorder.history(Micros(now));
    let checks = check_all(&history, &rules);
    for check in &checks {
        assert_eq!(check.violations().len(), 1, "{check:?}");
    }
    let mut lines = Vec::new();
    history.write(&mut lines).unwrap();
    let again = History::read(std::io::BufReader::new(&lines[..])).unwrap();
    assert_eq!(check_all(&again, &rules), checks);
}

#[test]
fn a_flood_of_violations_is_counted_and_not_told_in_full() {
    let violation = Violation::new("stale-read", "r", "it was old".into(), &[]);
    let checked = Checked::told("linear", 900, vec![violation; 500]);
    assert_eq!(checked.violations().len(), VIOLATIONS_TOLD);
    assert!(matches!(checked.conclusion, Conclusion::Violated { total: 500, .. }));
}
