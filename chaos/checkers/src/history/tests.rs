//! The recorder, and histories as lines.

use std::io::BufReader;

use super::*;

fn header() -> Header {
    Header { scenario: "kills".into(), seed: 7 }
}

fn read(key: &str) -> Call {
    Call::Read { key: Key::from(key) }
}

/// What nodes of a MindSpore cluster do.
fn of_nodes(job: &Job) -> Vec<(Call, Reply)> {
    let (role, name, life) = (ClusterRole::Server, NodeName::from("n"), LifeId(40_053));
    let node = ClusterNode { job: job.clone(), round: Round(1), name: name.clone(), role, life };
    let members = vec![ListedNode { role, rank: Rank(0), name, life }];
    let hear_members = Act::HearMembers { rank: Rank(0), members };
    vec![
        (Call::Node { node: node.clone(), act: Act::Join }, Reply::Rank(Rank(0))),
        (Call::Node { node: node.clone(), act: Act::ReadRank }, Reply::Rank(Rank(0))),
        (Call::Node { node: node.clone(), act: Act::Tell { event: 3 } }, Reply::Done),
        (Call::Node { node: node.clone(), act: hear_members }, Reply::Done),
        (Call::Node { node: node.clone(), act: Act::HearEvent { event: 3 } }, Reply::Done),
        (Call::Node { node: node.clone(), act: Act::Finish }, Reply::Done),
        (Call::Node { node: node.clone(), act: Act::HearFinish }, Reply::Done),
        (Call::Node { node, act: Act::End }, Reply::Done),
    ]
}

/// One operation of each kind and one answer of each kind.
fn everything() -> History {
    let recorder = Recorder::new(header());
    let (job, task, incarnation) = (Job::from("job"), TaskId(-1), Incarnation(u64::MAX));
    let (key, value) = (Key::from("a \"key\"\n"), Value(u64::MAX));
    let stamp = Some(Stamp { session: SessionId(3), sequence: Sequence(1) });
    let barrier = Barrier::from("b");
    let found = Found { value, version: Some(Version(2)), index: Some(LogIndex(9)) };
    let missing = Some(Missing { count: 3, named: vec![TaskId(1), TaskId(2)] });
    let seen = BarrierSeen { generation: Generation(-1), arrived: vec![task], missing: Vec::new() };
    let tasks = vec![TaskSeen { task, state: CoordinatedTaskState::Dead, incarnation: Some(incarnation) }];
    let arrive = Call::Arrive {
        job: job.clone(),
        barrier: barrier.clone(),
        generation: Generation(0),
        task,
        members: vec![task],
        timeout_ms: 5,
    };
    let (version, index) = (Some(Version(1)), Some(LogIndex(8)));
    let fenced = Reply::Refused(Refusal::Fenced);
    let mismatch = Reply::Refused(Refusal::VersionMismatch { current: Some(Version(0)) });
    let nodes = of_nodes(&job);
    let calls = vec![
        (read("r"), Reply::Value(Some(found))),
        (read("r"), Reply::Value(None)),
        (Call::Write { key: key.clone(), value }, Reply::Written { version, index }),
        (Call::Insert { key: key.clone(), value }, Reply::Refused(Refusal::Exists)),
        (Call::CompareAndSet { key: key.clone(), expected: Version(4), value }, mismatch),
        (Call::Delete { key: key.clone() }, Reply::Done),
        (Call::Append { list: key.clone(), element: Element(1) }, Reply::Done),
        (Call::ReadList { list: key.clone() }, Reply::Elements(vec![Element(1), Element(2)])),
        (Call::Increment { counter: key.clone(), by: -1, stamp }, Reply::Count(-5)),
        (Call::ReadCounter { counter: key.clone() }, Reply::Count(i64::MIN)),
        (Call::Acquire { lock: key.clone(), fence: Fence(3), steals: true }, Reply::Done),
        (Call::Release { lock: key.clone(), fence: Fence(3) }, Reply::Refused(Refusal::Exists)),
        (Call::ReadLock { lock: key.clone() }, Reply::Lock(Some(LockSeen { fence: Fence(3), held: true }))),
        (Call::ReadLock { lock: key.clone() }, Reply::Lock(None)),
        (Call::WriteGuarded { register: key.clone(), fence: Fence(3), value }, Reply::Done),
        (
            Call::ReadGuarded { register: key.clone() },
            Reply::Guarded(Some(Guarded { fence: Fence(3), value })),
        ),
        (Call::ReadGuarded { register: key }, Reply::Guarded(None)),
        (arrive.clone(), Reply::Passed),
        (arrive.clone(), Reply::Superseded),
        (arrive, Reply::BarrierFailed { reason: "timed out".into(), missing }),
        (Call::ReadBarrier { job: job.clone(), barrier: barrier.clone() }, Reply::BarrierSeen(Some(seen))),
        (Call::ReadBarrier { job: job.clone(), barrier }, Reply::BarrierSeen(None)),
        (Call::Register { job: job.clone(), task, incarnation }, fenced),
        (Call::Heartbeat { job: job.clone(), task, incarnation }, Reply::Refused(Refusal::Dead)),
        (Call::Leave { job: job.clone(), task, incarnation }, Reply::Done),
        (Call::ReadTasks { job }, Reply::Tasks(tasks)),
        (
            Call::ReadDigest { node: NodeId(1) },
            Reply::Digest { node: NodeId(1), applied_index: LogIndex(5), digest: 1 << 63 },
        ),
    ];
    recorder.timers_restarted(Micros(7));
    for (client, (call, reply)) in (0..).zip(calls.into_iter().chain(nodes)) {
        let pending = recorder.invoke(Micros(10), ClientId(client), call).by_node(NodeId(2));
        pending.again();
        pending.complete(Micros(20), Outcome::Ok(reply));
    }
    recorder.invoke(Micros(10), ClientId(90), read("r")).complete(Micros(20), Outcome::Fail("closed".into()));
    drop(recorder.invoke(Micros(10), ClientId(91), read("r")));
    recorder.fault(Micros(5), "pause", "node 3").heal(Micros(6));
    let _open = recorder.fault(Micros(7), "kill", "node 1");
    recorder.history(Micros(100))
}

#[test]
fn a_history_is_read_back_as_it_was_written() {
    let mut history = everything();
    history.void = Some("the disk was full".into());
    let mut lines = Vec::new();
    history.write(&mut lines).unwrap();
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 2 + 2 + 1 + history.operations.len());
    assert_eq!(History::read(BufReader::new(&lines[..])).unwrap(), history);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    history.save(&path).unwrap();
    assert_eq!(History::load(&path).unwrap(), history);
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let error = History::read(BufReader::new(&b"\n{\"void\":\"x\"}\n{\"operation\":{}}\n"[..])).unwrap_err();
    assert!(error.to_string().contains("line 3 is no record"), "{error:#}");
}

/// The format of files that are kept. It must stay readable.
#[test]
fn the_lines_look_as_they_always_did() {
    let recorder = Recorder::new(header());
    let call = Call::CompareAndSet { key: Key::from("r/1"), expected: Version(0), value: Value(4) };
    let outcome = Outcome::Ok(Reply::Written { version: Some(Version(1)), index: None });
    recorder.invoke(Micros(5), ClientId(2), call).complete(Micros(9), outcome);
    let mut lines = Vec::new();
    recorder.history(Micros(9)).write(&mut lines).unwrap();
    let expected = "{\"header\":{\"scenario\":\"kills\",\"seed\":7}}\n{\"operation\":{\"id\":0,\"client\":2,\
                    \"call\":\
                    {\"compare_and_set\":{\"key\":\"r/1\",\"expected\":0,\"value\":4}},\
                    \"invoked\":5,\"completed\":9,\
                    \"outcome\":{\"ok\":{\"written\":{\"version\":1,\"index\":null}}}}}\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
}

#[test]
fn what_happened_first_has_the_earlier_time_though_the_clock_stands() {
    let recorder = Recorder::new(header());
    for _ in 0..3 {
        recorder
            .invoke(Micros(1_000), ClientId(1), read("r"))
            .complete(Micros(1_000), Outcome::Ok(Reply::Value(None)));
    }
    let history = recorder.history(Micros(1_000));
    let moments: Vec<u64> = history
        .operations
        .iter()
        .flat_map(|operation| [operation.invoked.0, operation.completed.0])
        .collect();
    assert_eq!(moments, [1_000, 1_001, 1_002, 1_003, 1_004, 1_005]);
}

#[test]
fn who_never_hears_again_does_not_know() {
    let recorder = Recorder::new(header());
    let pending = recorder.invoke(Micros(1), ClientId(1), read("r"));
    assert_eq!(recorder.progress(), (1, 0));
    let history = recorder.history(Micros(50));
    assert!(matches!(history.operations[0].outcome, Outcome::Unknown(_)));
    assert_eq!((history.operations[0].completed, history.end()), (Micros(50), Micros(50)));
    pending.complete(Micros(60), Outcome::Fail("closed".into()));
    assert_eq!(recorder.progress(), (1, 1));
    assert_eq!(recorder.history(Micros(70)).operations[0].completed, Micros(60));
}

#[test]
fn the_first_reason_for_a_void_run_is_kept() {
    let recorder = Recorder::new(header());
    assert_eq!(recorder.history(Micros(0)).void, None);
    recorder.void("first");
    recorder.clone().void("second");
    assert_eq!(recorder.history(Micros(0)).void.as_deref(), Some("first"));
}

#[test]
fn many_tasks_share_a_recorder() {
    let recorder = Recorder::new(header());
    std::thread::scope(|scope| {
        for client in 0..4 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                for at in 0..500 {
                    let pending = recorder.invoke(Micros(at), ClientId(client), read("r"));
                    pending.complete(Micros(at), Outcome::Ok(Reply::Value(None)));
                }
            });
        }
    });
    let history = recorder.history(Micros(0));
    assert_eq!(history.operations.len(), 2_000);
    assert!(history.operations.windows(2).all(|pair| pair[0].invoked < pair[1].invoked));
    for client in 0..4 {
        let own: Vec<_> =
            history.operations.iter().filter(|operation| operation.client == ClientId(client)).collect();
        assert!(own.windows(2).all(|pair| pair[0].completed < pair[1].invoked), "one call after the other");
    }
}
