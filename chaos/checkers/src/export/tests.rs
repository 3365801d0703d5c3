//! Small histories in every format, as their checkers read them.

use super::*;
use crate::history::{
    Call, ClientId, Element, Found, Header, Micros, Outcome, Recorder, Refusal, Reply, Sequence, SessionId,
    Stamp, Value, Version,
};

const WRITTEN: Outcome = Outcome::Ok(Reply::Written { version: None, index: None });

fn key(name: &str) -> Key {
    Key::from(name)
}

fn unknown() -> Outcome {
    Outcome::Unknown("no answer".into())
}

fn version(number: u64) -> Outcome {
    Outcome::Ok(Reply::Written { version: Some(Version(number)), index: None })
}

fn found(value: u64, version: Option<u64>) -> Outcome {
    let found = Found { value: Value(value), version: version.map(Version), index: None };
    Outcome::Ok(Reply::Value(Some(found)))
}

/// Calls, each after the one before it: of a client, what, and how it ended.
fn history(calls: Vec<(u32, Call, Outcome)>) -> History {
    let recorder = Recorder::new(Header::default());
    for (place, (client, call, outcome)) in (0..).zip(calls) {
        let pending = recorder.invoke(Micros(place * 10), ClientId(client), call);
        pending.complete(Micros(place * 10 + 5), outcome);
    }
    recorder.history(Micros(1_000))
}

fn write(name: &str, value: u64) -> Call {
    Call::Write { key: key(name), value: Value(value) }
}

fn insert(name: &str, value: u64) -> Call {
    Call::Insert { key: key(name), value: Value(value) }
}

fn compare_and_set(name: &str, expected: u64, value: u64) -> Call {
    Call::CompareAndSet { key: key(name), expected: Version(expected), value: Value(value) }
}

fn read(name: &str) -> Call {
    Call::Read { key: key(name) }
}

/// Every call on a register with every kind of outcome.
fn registers() -> History {
    let mismatch = Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current: Some(Version(1)) }));
    history(vec![
        (1, read("r"), Outcome::Ok(Reply::Value(None))),
        (1, insert("r", 5), version(1)),
        (2, insert("r", 6), Outcome::Ok(Reply::Refused(Refusal::Exists))),
        (2, compare_and_set("r", 7, 7), mismatch),
        (2, compare_and_set("r", 1, 8), unknown()),
        (2, read("r"), unknown()),
        (1, write("r", 9), Outcome::Fail("closed".into())),
        (1, compare_and_set("r", 3, 10), version(4)),
        (2, read("r"), found(10, Some(4))),
    ])
}

/// The lines without what only counts: times and places.
fn events(exported: &Exported) -> Vec<&str> {
    exported.text.lines().map(|line| line.split_once(", :time").unwrap().0).collect()
}

#[test]
fn registers_are_events_of_a_cas_register() {
    let exported = export(&registers(), Format::JepsenEdn, Objects::Registers, Some(&key("r"))).unwrap();
    let expected = [
        "{:type :invoke, :f :read, :value nil, :process 0",
        "{:type :ok, :f :read, :value nil, :process 0",
        "{:type :invoke, :f :cas, :value [nil 5], :process 0",
        "{:type :ok, :f :cas, :value [nil 5], :process 0",
        "{:type :invoke, :f :cas, :value [nil 6], :process 1",
        "{:type :fail, :f :cas, :value [nil 6], :process 1",
        "{:type :invoke, :f :write, :value 7, :process 1",
        "{:type :fail, :f :write, :value 7, :process 1",
        "{:type :invoke, :f :cas, :value [5 8], :process 1",
        "{:type :info, :f :cas, :value [5 8], :process 1",
        // The process of an open call makes no other.
        "{:type :invoke, :f :read, :value nil, :process 2",
        "{:type :fail, :f :read, :value nil, :process 2",
        "{:type :invoke, :f :write, :value 9, :process 0",
        "{:type :fail, :f :write, :value 9, :process 0",
        "{:type :invoke, :f :write, :value 10, :process 0",
        "{:type :ok, :f :write, :value 10, :process 0",
        "{:type :invoke, :f :read, :value nil, :process 3",
        "{:type :ok, :f :read, :value 10, :process 3",
    ];
    assert_eq!(events(&exported), expected);
    assert_eq!(exported.operations, 9);
    // Version 3 was told to nobody. That of the refused call changes nothing.
    let notes = [("compare-and-sets as mere writes: the value is not known", 1)];
    assert_eq!(exported.notes, BTreeMap::from(notes));
    let first = exported.text.lines().nth(1).unwrap();
    assert!(first.ends_with(", :time 5000, :index 1}"), "{first}");
}

#[test]
fn one_register_of_several_is_named() {
    let two = history(vec![(1, write("a \"b\"", 1), WRITTEN), (1, write("c", 2), WRITTEN)]);
    let exported = export(&two, Format::JepsenEdn, Objects::Registers, None).unwrap();
    assert!(events(&exported)[0].contains(r#":value ["a \"b\"" 1]"#), "{exported:?}");
    let one = export(&two, Format::JepsenEdn, Objects::Registers, Some(&key("c"))).unwrap();
    assert_eq!((one.operations, events(&one).len()), (1, 2));
}

#[test]
fn registers_are_transactions_that_read_what_they_depend_on() {
    let exported = export(&registers(), Format::Elle, Objects::Registers, None).unwrap();
    let lines = events(&exported);
    for expected in [
        r#"{:type :ok, :f :txn, :value [[:r "r" nil]], :process 0"#,
        r#"{:type :ok, :f :txn, :value [[:r "r" nil] [:w "r" 5]], :process 0"#,
        r#"{:type :invoke, :f :txn, :value [[:r "r" nil] [:w "r" 8]], :process 1"#,
        r#"{:type :info, :f :txn, :value [[:r "r" nil] [:w "r" 8]], :process 1"#,
        r#"{:type :ok, :f :txn, :value [[:w "r" 10]], :process 0"#,
        r#"{:type :ok, :f :txn, :value [[:r "r" 10]], :process 3"#,
    ] {
        assert!(lines.contains(&expected), "{expected} is not in {lines:#?}");
    }

    let deleted = history(vec![
        (1, write("gone", 1), WRITTEN),
        (1, Call::Delete { key: key("gone") }, Outcome::Ok(Reply::Done)),
        (1, write("stays", 2), WRITTEN),
    ]);
    let exported = export(&deleted, Format::Elle, Objects::Registers, None).unwrap();
    assert!(exported.operations == 1 && !exported.text.contains("gone"), "{exported:?}");
    assert_eq!(exported.notes.values().copied().collect::<Vec<_>>(), [2]);
    let nothing = export(&deleted, Format::Elle, Objects::Registers, Some(&key("gone"))).unwrap_err();
    assert!(nothing.to_string().contains("no call is left"), "{nothing}");
}

#[test]
fn lists_are_transactions_of_elle() {
    let append = |element| Call::Append { list: key("l"), element: Element(element) };
    let both = Outcome::Ok(Reply::Elements(vec![Element(4), Element(6)]));
    let lists = history(vec![
        (1, append(4), Outcome::Ok(Reply::Done)),
        (1, append(5), Outcome::Fail("somebody else was first".into())),
        (1, append(6), unknown()),
        (1, Call::ReadList { list: key("l") }, both),
        (2, write("r", 1), WRITTEN),
    ]);
    let exported = export(&lists, Format::Elle, Format::Elle.usual(), None).unwrap();
    let ends: Vec<&str> = events(&exported).into_iter().skip(1).step_by(2).collect();
    let expected = [
        r#"{:type :ok, :f :txn, :value [[:append "l" 4]], :process 0"#,
        r#"{:type :fail, :f :txn, :value [[:append "l" 5]], :process 0"#,
        r#"{:type :info, :f :txn, :value [[:append "l" 6]], :process 0"#,
        r#"{:type :ok, :f :txn, :value [[:r "l" [4 6]]], :process 1"#,
    ];
    assert_eq!(ends, expected);
}

#[test]
fn increments_with_one_stamp_are_one_and_what_may_count_twice_is_left_out() {
    let increment = |name: &str, by, sequence: Option<u64>| {
        let stamp = sequence.map(|sequence| Stamp { session: SessionId(1), sequence: Sequence(sequence) });
        Call::Increment { counter: key(name), by, stamp }
    };
    let recorder = Recorder::new(Header::default());
    let calls = [
        (1, increment("c", 2, Some(1)), unknown()),
        (1, increment("c", 2, Some(1)), Outcome::Ok(Reply::Count(2))),
        (1, increment("c", 3, Some(2)), unknown()),
        (1, increment("falls", -1, None), Outcome::Ok(Reply::Count(-1))),
        (2, Call::ReadCounter { counter: key("c") }, Outcome::Ok(Reply::Count(5))),
    ];
    for (place, (client, call, outcome)) in (0..).zip(calls) {
        let pending = recorder.invoke(Micros(place * 10), ClientId(client), call);
        pending.complete(Micros(place * 10 + 5), outcome);
    }
    let twice = recorder.invoke(Micros(100), ClientId(3), increment("twice", 1, None));
    twice.again();
    twice.complete(Micros(110), unknown());
    let counters = recorder.history(Micros(200));

    let exported = export(&counters, Format::JepsenEdn, Objects::Counters, Some(&key("c"))).unwrap();
    let expected = [
        "{:type :invoke, :f :add, :value 2, :process 0",
        "{:type :ok, :f :add, :value 2, :process 0",
        "{:type :invoke, :f :add, :value 3, :process 0",
        "{:type :info, :f :add, :value 3, :process 0",
        "{:type :invoke, :f :read, :value nil, :process 1",
        "{:type :ok, :f :read, :value 5, :process 1",
    ];
    assert_eq!(events(&exported), expected);

    let all = export(&counters, Format::JepsenEdn, Objects::Counters, None).unwrap();
    assert_eq!(all.notes.len(), 2, "{all:?}");
    assert!(!all.text.contains("falls") && !all.text.contains("twice"), "{all:?}");
    // Who counts in both directions is told of both.
    let all = export(&counters, Format::Porcupine, Objects::Counters, None).unwrap();
    assert!(all.text.contains("falls") && !all.text.contains("twice"), "{all:?}");
}

#[test]
fn operations_for_porcupine_have_its_fields_and_all_that_is_known() {
    let exported = export(&registers(), Format::Porcupine, Format::Porcupine.usual(), None).unwrap();
    let lines: Vec<&str> = exported.text.lines().collect();
    assert_eq!((lines.len(), exported.operations), (7, 7));
    let first = r#"{"Call":0,"ClientId":0,"Input":{"key":"r","op":"read"},"Output":{"outcome":"ok","value":null},"Return":5}"#;
    assert_eq!(lines[0], first);
    assert!(lines[2].contains(r#""Output":{"outcome":"exists"}"#), "{}", lines[2]);
    assert!(lines[3].contains(r#""Output":{"outcome":"mismatch","version":1}"#), "{}", lines[3]);
    // Behind the last moment of the history.
    assert!(lines[4].contains(r#""Output":{"outcome":"unknown"},"Return":86"#), "{}", lines[4]);
    assert_eq!(exported.notes, BTreeMap::from([("without effect, and telling nothing", 2)]));
}

#[test]
fn what_a_format_cannot_say_and_what_is_not_there_is_refused() {
    let registers = registers();
    let error = |format, objects, name: Option<&str>| {
        export(&registers, format, objects, name.map(key).as_ref()).unwrap_err().to_string()
    };
    assert!(error(Format::Elle, Objects::Lists, None).contains("no calls on lists"));
    let lists = error(Format::JepsenEdn, Objects::Registers, Some("x"));
    assert_eq!(lists, "no call is on x; of 1 registers the first are r");

    let counter = history(vec![(1, Call::ReadCounter { counter: key("c") }, Outcome::Ok(Reply::Count(0)))]);
    let refused = export(&counter, Format::Elle, Objects::Counters, None).unwrap_err();
    assert!(refused.to_string().contains("Elle has no model of counters"), "{refused}");
    let list =
        history(vec![(1, Call::ReadList { list: key("l") }, Outcome::Ok(Reply::Elements(Vec::new())))]);
    let refused = export(&list, Format::JepsenEdn, Objects::Lists, None).unwrap_err();
    assert!(refused.to_string().contains("Knossos has no model of lists"), "{refused}");
}
