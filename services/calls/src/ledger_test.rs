use super::*;

const PUT: &str = "/tripod.v1.Kv/Put";

struct Waiting {
    tag: Tag,
    outcome: oneshot::Receiver<Outcome>,
}

fn ledger() -> Ledger {
    Ledger::new(wire::Hello { session: "7".to_owned(), ..wire::Hello::default() })
}

/// One to which the node has granted as much as it does.
fn granted(grant: u32) -> Ledger {
    let mut ledger = ledger();
    frame(&mut ledger);
    received(&mut ledger, wire::Frame { grant, ..wire::Frame::default() });
    ledger
}

fn try_call(ledger: &mut Ledger, path: &str, bytes: usize) -> Result<Waiting, Lost> {
    let (waiter, outcome) = oneshot::channel();
    let message = Bytes::from(vec![7; bytes]);
    let tag = ledger.enter(path, message, &CallOptions::default(), waiter)?;
    Ok(Waiting { tag, outcome })
}

fn call(ledger: &mut Ledger) -> Waiting {
    try_call(ledger, PUT, 10).unwrap()
}

fn calls(ledger: &mut Ledger, count: usize) -> Vec<Waiting> {
    (0..count).map(|_| call(ledger)).collect()
}

fn frame(ledger: &mut Ledger) -> wire::Frame {
    match ledger.next() {
        Next::Frame(frame) => frame,
        other => panic!("no frame: {other:?}"),
    }
}

fn tags(frame: &wire::Frame) -> Vec<u32> {
    frame.ops.iter().map(|op| op.tag).collect()
}

fn tell(ended: Ended) {
    for (waiter, outcome) in ended {
        _ = waiter.send(outcome);
    }
}

fn received(ledger: &mut Ledger, frame: wire::Frame) {
    let mut ended = Ended::new();
    ledger.receive(frame, &mut ended).unwrap();
    tell(ended);
}

fn answers(tags: &[u32], arrived: bool) -> wire::Frame {
    let answer = |tag: &u32| wire::Answer { tag: *tag, arrived, ..wire::Answer::default() };
    wire::Frame { answers: tags.iter().map(answer).collect(), ..wire::Frame::default() }
}

fn lost(waiting: &mut Waiting) -> Lost {
    waiting.outcome.try_recv().unwrap().unwrap_err()
}

#[test]
fn the_first_frame_has_the_hello_and_calls_go_when_they_are_granted() {
    let mut ledger = ledger();
    try_call(&mut ledger, PUT, 3).unwrap();
    try_call(&mut ledger, "/tripod.v1.Kv/Get", 4).unwrap();
    let first = frame(&mut ledger);
    assert_eq!((first.hello.unwrap().session.as_str(), first.ops.len()), ("7", 0));
    assert_eq!(first.paths, [PUT, "/tripod.v1.Kv/Get"]);
    assert_eq!(ledger.next(), Next::Nothing);
    received(&mut ledger, wire::Frame { grant: 9, ..wire::Frame::default() });
    try_call(&mut ledger, PUT, 5).unwrap();
    try_call(&mut ledger, "/a.B/C", 6).unwrap();
    let second = frame(&mut ledger);
    assert_eq!((second.hello, &second.paths[..]), (None, &["/a.B/C".to_owned()][..]));
    let seen: Vec<_> = second.ops.iter().map(|op| (op.tag, op.path, op.message.len())).collect();
    assert_eq!(seen, [(1, 1, 3), (2, 2, 4), (3, 1, 5), (4, 3, 6)]);
}

#[test]
fn a_call_for_which_a_node_would_end_the_stream_is_not_sent() {
    let mut ledger = ledger();
    for path in ["", "a.B/C", "/a b"] {
        let refused = try_call(&mut ledger, path, 1).map(|_| ()).unwrap_err();
        assert_eq!(refused, Lost::NotSent(Reason::NoPath), "{path:?}");
    }
    let sequenced = |ledger: &mut Ledger, stamp: Option<&'static str>| {
        let mut options = CallOptions { sequence: 1, ..CallOptions::default() };
        options.metadata.extend(
            stamp.map(|stamp| (http::HeaderName::from_static(STAMP), http::HeaderValue::from_static(stamp))),
        );
        let (waiter, _outcome) = oneshot::channel();
        ledger.enter(PUT, Bytes::new(), &options, waiter).map(|_| ())
    };
    assert_eq!(sequenced(&mut ledger, None), Ok(()));
    let refused = Err(Lost::NotSent(Reason::Sequence));
    assert_eq!(sequenced(&mut ledger, Some("7.1.1")), refused);
    assert_eq!(sequenced(&mut Ledger::new(wire::Hello::default()), None), refused);
}

#[test]
fn calls_gather_while_two_frames_wait_and_go_together_when_one_has_come_back() {
    let mut ledger = granted(1000);
    calls(&mut ledger, 1);
    assert_eq!(tags(&frame(&mut ledger)), [1]);
    calls(&mut ledger, 2);
    assert_eq!(tags(&frame(&mut ledger)), [2, 3]);
    calls(&mut ledger, 3);
    assert_eq!(ledger.next(), Next::Nothing);
    received(&mut ledger, answers(&[2], false));
    assert_eq!(tags(&frame(&mut ledger)), [4, 5, 6], "the second has been gone past");
    calls(&mut ledger, 1);
    assert_eq!(ledger.next(), Next::Nothing);
    received(&mut ledger, answers(&[3], false));
    assert_eq!(tags(&frame(&mut ledger)), [7]);
}

#[test]
fn an_arrival_that_is_recorded_holds_up_nobody_and_is_still_answered() {
    let mut ledger = granted(1000);
    let mut barriers = Vec::new();
    for _ in 0..2 {
        barriers.push(call(&mut ledger));
        frame(&mut ledger);
    }
    call(&mut ledger);
    assert_eq!(ledger.next(), Next::Nothing);
    received(&mut ledger, answers(&[1, 2], true));
    assert_eq!(tags(&frame(&mut ledger)), [3]);
    assert!(barriers[0].outcome.try_recv().is_err());
    received(&mut ledger, answers(&[1, 2], false));
    assert!(barriers[0].outcome.try_recv().unwrap().is_ok());
}

#[test]
fn a_frame_has_so_many_ops_and_bytes_and_no_more() {
    let mut ledger = granted(1000);
    calls(&mut ledger, FRAME_OPS_MAX + 1);
    assert_eq!(frame(&mut ledger).ops.len(), FRAME_OPS_MAX);
    assert_eq!(frame(&mut ledger).ops.len(), 1);
    let mut ledger = granted(1000);
    for _ in 0..5 {
        try_call(&mut ledger, PUT, OP_MESSAGE_BYTES_MAX).unwrap();
    }
    assert_eq!(frame(&mut ledger).ops.len(), 3, "four and what is said of them are a little more");
    assert_eq!(frame(&mut ledger).ops.len(), 2);
    let refused = try_call(&mut ledger, PUT, OP_MESSAGE_BYTES_MAX + 1).map(|_| ()).unwrap_err();
    assert_eq!(refused, Lost::NotSent(Reason::TooLong));
}

#[test]
fn no_more_is_sent_than_was_granted() {
    let mut ledger = granted(0);
    calls(&mut ledger, 6);
    // A node that grants nothing is sent nothing.
    assert_eq!((ledger.next(), ledger.has_granted()), (Next::Nothing, false));
    received(&mut ledger, wire::Frame { grant: 2, ..wire::Frame::default() });
    assert_eq!((tags(&frame(&mut ledger)), ledger.has_granted()), (vec![1, 2], true));
    assert_eq!(ledger.next(), Next::Nothing);
    received(&mut ledger, wire::Frame { grant: 1, ..answers(&[1, 2], false) });
    assert_eq!(tags(&frame(&mut ledger)), [3]);
    received(&mut ledger, wire::Frame { grant: u32::MAX, ..wire::Frame::default() });
    received(&mut ledger, wire::Frame { grant: u32::MAX, ..wire::Frame::default() });
    assert_eq!(tags(&frame(&mut ledger)), [4, 5, 6]);
}

#[test]
fn what_is_given_up_is_not_sent_or_the_node_is_told() {
    let mut ledger = granted(1000);
    let sent = call(&mut ledger);
    frame(&mut ledger);
    let unsent = calls(&mut ledger, 3);
    ledger.give_up(unsent[1].tag);
    ledger.give_up(sent.tag);
    ledger.give_up(sent.tag);
    let next = frame(&mut ledger);
    assert_eq!((tags(&next), next.ops[0].path), (vec![1, 2, 4], 0));
    // The answer was on the way.
    received(&mut ledger, answers(&[1, 2, 4], false));
    assert_eq!(ledger.calls, 0);
    assert!(ledger.pending.is_empty());
    assert_eq!(ledger.frames.count(), 0);
}

#[test]
fn who_gives_up_makes_room_for_the_next_frame() {
    let mut ledger = granted(1000);
    let slow = [0, 1].map(|_| {
        let slow = call(&mut ledger);
        frame(&mut ledger);
        slow
    });
    call(&mut ledger);
    assert_eq!(ledger.next(), Next::Nothing);
    ledger.give_up(slow[0].tag);
    assert_eq!(tags(&frame(&mut ledger)), [1, 3]);
}

#[test]
fn a_tag_is_used_again_only_when_its_op_was_answered() {
    let mut ledger = granted(1000);
    calls(&mut ledger, 2);
    frame(&mut ledger);
    ledger.next_tag = u32::MAX;
    received(&mut ledger, answers(&[1], false));
    calls(&mut ledger, 3);
    assert_eq!(tags(&frame(&mut ledger)), [u32::MAX, 1, 3]);
}

#[test]
fn when_the_node_says_goodbye_what_was_sent_is_waited_for_and_the_rest_was_not_sent() {
    let mut ledger = granted(1);
    let mut waiting = calls(&mut ledger, 2);
    frame(&mut ledger);
    received(&mut ledger, wire::Frame { bye: Some(wire::Bye {}), ..wire::Frame::default() });
    assert!(ledger.is_leaving() && ledger.has_goodbye());
    assert_eq!(lost(&mut waiting[1]), Lost::NotSent(Reason::Leaving));
    let refused = try_call(&mut ledger, PUT, 1).map(|_| ()).unwrap_err();
    assert_eq!(refused, Lost::NotSent(Reason::Leaving));
    received(&mut ledger, answers(&[1], false));
    assert!(waiting[0].outcome.try_recv().unwrap().is_ok());
}

#[test]
fn a_transport_that_sends_no_more_is_no_goodbye_of_the_node() {
    let mut ledger = granted(1);
    let mut waiting = calls(&mut ledger, 2);
    frame(&mut ledger);
    let mut ended = Ended::new();
    ledger.leave(&mut ended);
    tell(ended);
    assert!(ledger.is_leaving() && !ledger.has_goodbye());
    assert_eq!(lost(&mut waiting[1]), Lost::NotSent(Reason::Leaving));
    // The way back may last for longer, and the goodbye be on it.
    received(&mut ledger, wire::Frame { bye: Some(wire::Bye {}), ..answers(&[1], false) });
    assert!(ledger.has_goodbye());
    assert!(waiting[0].outcome.try_recv().unwrap().is_ok());
}

#[test]
fn the_end_tells_what_may_have_been_executed_from_what_was_not_sent() {
    let mut ledger = granted(2);
    let mut waiting = calls(&mut ledger, 3);
    frame(&mut ledger);
    received(&mut ledger, answers(&[2], true));
    let mut ended = Ended::new();
    ledger.over(Reason::Over, &mut ended);
    ledger.over(Reason::Closed, &mut ended);
    tell(ended);
    let ends: Vec<Lost> = waiting.iter_mut().map(lost).collect();
    let unknown = Lost::Unknown(Reason::Over);
    assert_eq!(ends, [unknown.clone(), unknown, Lost::NotSent(Reason::Over)]);
    assert_eq!(ledger.next(), Next::Over);
    let refused = try_call(&mut ledger, PUT, 1).map(|_| ()).unwrap_err();
    assert_eq!(refused, Lost::NotSent(Reason::Over));
}

#[test]
fn what_no_node_sends_is_noticed() {
    let metadata = vec![wire::Metadata { key: "a b".to_owned(), value: String::new() }];
    let no_metadata = wire::Answer { tag: 1, metadata, ..wire::Answer::default() };
    let cases = [
        // Nothing, something that was not sent yet, and something that nobody called.
        answers(&[0], false),
        answers(&[2], true),
        answers(&[9], false),
        wire::Frame { answers: vec![no_metadata], ..wire::Frame::default() },
        wire::Frame { paths: vec![PUT.to_owned()], ..wire::Frame::default() },
        wire::Frame { ops: vec![wire::Op::default()], ..wire::Frame::default() },
        wire::Frame { hello: Some(wire::Hello::default()), ..wire::Frame::default() },
        answers(&[1, 1], false),
    ];
    for case in cases {
        let mut ledger = granted(1);
        let _waiting = calls(&mut ledger, 2);
        frame(&mut ledger);
        let told = ledger.receive(case.clone(), &mut Ended::new());
        assert!(matches!(told, Err(Reason::Breach(_))), "{case:?}");
    }
}

#[test]
fn calls_bytes_and_paths_have_an_end() {
    let mut ledger = granted(0);
    let long = QUEUED_BYTES_MAX / OP_MESSAGE_BYTES_MAX;
    let waiting: Vec<_> =
        (0..long - 1).map(|_| try_call(&mut ledger, PUT, OP_MESSAGE_BYTES_MAX).unwrap()).collect();
    let refused = |ledger: &mut Ledger, path: &str, bytes| {
        let Lost::NotSent(reason) = try_call(ledger, path, bytes).map(|_| ()).unwrap_err() else {
            panic!("it was not sent")
        };
        reason
    };
    assert_eq!(refused(&mut ledger, PUT, OP_MESSAGE_BYTES_MAX), Reason::Full);
    for waiting in &waiting {
        ledger.give_up(waiting.tag);
    }
    assert_eq!((ledger.queued_bytes, ledger.queue.len(), ledger.pending.len()), (0, 0, 0));
    for number in 1..PATHS_MAX {
        try_call(&mut ledger, &format!("/a.B/{number}"), 1).unwrap();
    }
    assert_eq!(refused(&mut ledger, "/a.B/C", 1), Reason::Paths);
    calls(&mut ledger, CALLS_MAX + 1 - PATHS_MAX);
    assert_eq!(refused(&mut ledger, PUT, 1), Reason::Full);
}

#[test]
fn calls_that_were_given_up_are_forgotten_in_the_end() {
    let mut ledger = granted(u32::MAX);
    for _ in 0..GIVEN_UP_MAX + 2 {
        let waiting = call(&mut ledger);
        frame(&mut ledger);
        ledger.give_up(waiting.tag);
        frame(&mut ledger);
    }
    assert_eq!(ledger.pending.len(), GIVEN_UP_MAX);
    assert!(ledger.receive(answers(&[1], false), &mut Ended::new()).is_err());
    received(&mut ledger, answers(&[3], false));
}
