//! The messages between nodes as builds of each feature level wrote them. `golden/` is never edited: see
//! docs/decisions/018-feature-levels.md. What our own encoding has in their `bytes` is frozen in the crate that
//! encodes it.

use std::fmt::{Debug, Write as _};
use std::path::Path;

use bytes::Bytes;
use prost::Message;
use tripod_proto::tripod::peer::v1::heartbeat_set_verdict::Word;
use tripod_proto::tripod::peer::v1::{
    Blob, Heartbeat, HeartbeatBatch, HeartbeatSet, HeartbeatSetVerdict, HeartbeatVerdict, HeartbeatVerdicts,
    LevelAnswer, LevelQuestion, LogEnd, ProposeNewerResponse, ProposeRequest, ProposeResponse,
    ReadIndexRequest, ReadIndexResponse, SnapshotChunk, SnapshotHeld, SnapshotOffer, SuspectRequest,
    SuspectResponse,
};

/// What to do about a difference.
const ADVICE: &str = "a message has changed for nodes that know no more than this level. Take the change back, or \
    make it a part of a new feature level: gate it, and add a sample and a file of that level \
    (TRIPOD_FREEZE=1 writes it). Never edit a file that is there";

/// A message, its bytes, and what they are read as.
struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    shown: String,
    read: fn(&[u8]) -> String,
}

fn sample<T: Message + Default + Debug>(name: &'static str, message: &T) -> Sample {
    let read = |bytes: &[u8]| format!("{:?}", T::decode(bytes).expect("a golden message is read"));
    Sample { name, bytes: message.encode_to_vec(), shown: format!("{message:?}"), read }
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn level_1() -> Vec<Sample> {
    let beat =
        Heartbeat { job: 300, service: Some(7), task: -1, incarnation: u64::MAX, ..Default::default() };
    let verdict = HeartbeatVerdict { service: Some(7), applied_index: 300, suspect_ms: Some(1) };
    let (meta, seal, data) = (bytes("meta"), bytes("seal"), bytes("data"));
    let chunk = SnapshotChunk {
        meta: meta.clone(),
        offset: 1 << 33,
        data: data.clone(),
        crc32c: 5,
        seal: seal.clone(),
    };
    vec![
        sample("blob", &Blob { data: data.clone() }),
        sample("snapshot chunk", &chunk),
        sample("snapshot offer", &SnapshotOffer { meta, seal }),
        sample("snapshot held", &SnapshotHeld { bytes: 1 << 33 }),
        sample("propose", &ProposeRequest { commands: vec![data.clone(), bytes("")], ..Default::default() }),
        sample("propose answer", &ProposeResponse { replies: vec![data, bytes("")], takes_newer: false }),
        sample("read index", &ReadIndexRequest {}),
        sample("read index answer", &ReadIndexResponse { index: 300 }),
        sample("heartbeats", &batch(vec![beat, Heartbeat::default()])),
        sample(
            "heartbeat verdicts",
            &HeartbeatVerdicts {
                verdicts: vec![verdict, HeartbeatVerdict::default()],
                ..HeartbeatVerdicts::default()
            },
        ),
    ]
}

fn batch(beats: Vec<Heartbeat>) -> HeartbeatBatch {
    HeartbeatBatch { beats, ..HeartbeatBatch::default() }
}

fn check(name: &str, samples: &[Sample]) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let mut today = String::new();
    for sample in samples {
        let hex = sample.bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        writeln!(today, "{}: {hex}", sample.name).expect("writing to memory");
    }
    if std::env::var_os("TRIPOD_FREEZE").is_some() && !place.exists() {
        std::fs::create_dir_all(place.parent().expect("it has a folder")).expect("made");
        std::fs::write(&place, &today).expect("written");
    }
    let golden = std::fs::read_to_string(&place).expect("the golden file is there");
    for (sample, line) in samples.iter().zip(golden.lines()) {
        let hex =
            line.strip_prefix(&format!("{}: ", sample.name)).unwrap_or_else(|| panic!("{line}: {ADVICE}"));
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        assert_eq!((sample.read)(&bytes), sample.shown, "{}: {ADVICE}", sample.name);
    }
    assert_eq!(golden, today, "{ADVICE}");
}

#[test]
fn messages_of_level_1_stay_as_they_are() {
    check("level1.txt", &level_1());
}

#[test]
fn messages_of_level_2_stay_as_they_are() {
    let answer = LevelAnswer { min: 1, max: 2, pinned: 1, back_to: 2, build: "0.1.0".to_owned(), level: 300 };
    check("level2.txt", &[sample("level", &LevelQuestion {}), sample("level answer", &answer)]);
}

/// What heartbeats say besides, which an earlier build passes over; and what is told until the first one, which only a
/// cluster at this level is told.
#[test]
fn messages_of_level_6_stay_as_they_are() {
    let beat = Heartbeat { job: 300, interval_ms: Some(50_000), ..Default::default() };
    let present = Heartbeat { job: 300, connection: Some(7), ..Default::default() };
    let gone = Heartbeat { gone: true, ..present };
    check("level6.txt", &[sample("heartbeats", &batch(vec![beat, present, gone]))]);
}

/// Sets of heartbeats and the words on them, which an earlier build passes over.
#[test]
fn messages_of_sets_of_heartbeats_stay_as_they_are() {
    let beat = Heartbeat { job: 300, interval_ms: Some(50_000), ..Default::default() };
    let of = |beats, made| HeartbeatSet {
        session: bytes("sixteen of bytes"),
        digest: u64::MAX,
        count: 300,
        beats,
        made: bytes(made),
    };
    let sets =
        HeartbeatBatch { sets: vec![of(vec![beat], ""), of(Vec::new(), "\u{1}")], ..Default::default() };
    let word = |word: Word, service| HeartbeatSetVerdict { word: word.into(), service };
    let sets_verdicts = HeartbeatVerdicts {
        sets: vec![
            word(Word::Unknown, None),
            word(Word::Kept, Some(7)),
            word(Word::Same, None),
            word(Word::Differs, None),
        ],
        ..Default::default()
    };
    check("sets.txt", &[sample("sets", &sets), sample("words", &sets_verdicts)]);
}

/// What a follower and the leader say besides of commands that need more than level 1. A build that does not know it
/// passes over it.
#[test]
fn messages_of_batches_of_every_level_stay_as_they_are() {
    let data = bytes("data");
    check(
        "batches.txt",
        &[
            sample(
                "propose",
                &ProposeRequest { commands: vec![data.clone()], needs_max: Some(300), ..Default::default() },
            ),
            sample("propose answer", &ProposeResponse { replies: vec![data.clone()], takes_newer: true }),
            sample("propose newer answer", &ProposeNewerResponse { data, takes_newer: true }),
        ],
    );
}

/// In which order batches follow upon each other. A build that does not know it passes over it.
#[test]
fn messages_of_batches_in_their_order_stay_as_they_are() {
    let request = ProposeRequest {
        commands: vec![bytes("data")],
        needs_max: Some(300),
        batch_number: 301,
        oldest: 299,
    };
    check("batches_in_order.txt", &[sample("propose", &request)]);
}

/// What voters ask each other about a leader whose process seems to have ended. A build that does not know it does not
/// answer, and so does not agree.
#[test]
fn messages_of_suspicion_stay_as_they_are() {
    let answer = SuspectResponse { agrees: true, end: Some(LogEnd { term: 300, node: 2, index: 1 << 33 }) };
    check(
        "suspicion.txt",
        &[
            sample("suspect", &SuspectRequest { node: 1, leader: 3, term: 300 }),
            sample("suspect answer", &answer),
            sample("suspect answer, no", &SuspectResponse { agrees: false, end: None }),
        ],
    );
}

#[test]
fn a_build_that_knows_no_batches_of_every_level_reads_the_answer_to_a_newer_command() {
    let answer = ProposeNewerResponse { data: bytes("data"), takes_newer: true };
    let read =
        Blob::decode(answer.encode_to_vec().as_slice()).expect("a field that is not known is passed over");
    assert_eq!(read, Blob { data: bytes("data") });
}
