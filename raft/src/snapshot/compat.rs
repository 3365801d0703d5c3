//! A snapshot that a released format wrote. The file is never edited: backups are read for ever.

use std::fs;

use tempfile::TempDir;
use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId, ServiceIncarnation, Term, TimeMs};
use tripod_state::{ApplyContext, Command, Envelope, Scope, job, kv, member, session};

use super::*;
use crate::base::types::{LogId, Membership};
use crate::offline::backup::{Pace, ReadOnlyFile};

const V2: &[u8] = include_bytes!("compat/v2.snap");

/// A little of everything that a small cluster has.
fn state() -> State {
    let mut state = State::default();
    let scope = Scope { job: tripod_state::ids::JobId(1), service: None };
    let insert = |key: &str, value: &'static [u8]| {
        let (key, value) = (key.to_owned(), Bytes::from_static(value));
        Command::Kv(kv::Command::Insert { scope, key, value, overwrite: true })
    };
    let addresses = member::Addresses {
        client: "10.0.0.1:7700".into(),
        http: "10.0.0.1:7900".into(),
        job_host: "10.0.0.1".into(),
        job_port_first: 8000,
        job_port_count: 100,
    };
    let spec = job::Spec::of_tasks(2);
    let commands = [
        Command::Job(job::Command::Create { name: "job".into(), spec, service: ServiceIncarnation(7) }),
        Command::Session(session::Command::Open),
        Command::Member(member::Command::Announce { node: NodeId(1), addresses }),
        insert("a", b"1"),
        insert("b/c", b"two"),
        insert("a", b"3"),
    ];
    for (index, command) in (1..).zip(commands) {
        let context = ApplyContext { index: LogIndex(index), term: Term(2), now_ms: TimeMs(1_000 + index) };
        state.apply(&context, Envelope { stamp: None, command }).reply.unwrap();
    }
    state
}

fn header(state: &State) -> Header {
    let leader = openraft::impls::leader_id_adv::LeaderId { term: 2, node_id: 1 };
    Header {
        cluster_id: "golden".into(),
        last_log_id: Some(LogId::new(leader, 6)),
        membership: Membership::default(),
        digest: state.digest(),
        form: Form::of(state),
    }
}

#[test]
fn a_snapshot_of_version_2_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("v2.snap");
    fs::write(&path, V2).unwrap();
    let (found, back) = examine(ReadOnlyFile::open(&path, Pace::unlimited()).unwrap(), &mut |_| {}).unwrap();
    assert_eq!((found, back), (header(&state()), state()));
}

/// A change of the format must be meant: it needs a new version, and the old one stays readable.
#[test]
fn version_2_is_written() {
    let written = write_to(Vec::new(), &header(&state()), &state()).unwrap();
    if let Ok(target) = std::env::var("TRIPOD_WRITE_GOLDEN") {
        fs::write(target, &written).unwrap();
    }
    assert!(written == V2, "a snapshot is written differently");
}
