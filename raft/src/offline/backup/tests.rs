//! What a file promises is checked; what a plan asks for is made whole, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use tripod_state::ids::{LogIndex, NodeId, ServiceIncarnation, Term, TimeMs};
use tripod_state::restore::Jobs;
use tripod_state::{ApplyContext, Command, Envelope, Scope, State, job, kv, session};

use super::*;
use crate::base::error::StartError;
use crate::base::failure::Failure;
use crate::base::options::{InitialMember, Options, Timing};
use crate::base::types::{LogId, Membership, Peer};
use crate::disk::Work;
use crate::log::LogStore;
use crate::node::storage::Storage;
use crate::snapshot::{self, Form, Header};
use crate::test_support::tree;

const SAVED_INDEX: u64 = 41;
const SERVICE: ServiceIncarnation = ServiceIncarnation(7);

/// A job with some keys, and a session.
fn state(keys: u64) -> State {
    let mut state = State::default();
    let mut index = 0;
    let mut apply = |state: &mut State, command: Command| {
        index += 1;
        let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(index) };
        state.apply(&context, Envelope { stamp: None, command }).reply.unwrap();
    };
    let spec = job::Spec::of_tasks(1);
    apply(&mut state, Command::Job(job::Command::Create { name: "job".into(), spec, service: SERVICE }));
    apply(&mut state, Command::Session(session::Command::Open));
    let scope = Scope { job: state.job_named("job").unwrap(), service: None };
    for key in 0..keys {
        let (key, value) = (format!("key-{key}"), vec![1; 50].into());
        apply(&mut state, Command::Kv(kv::Command::Insert { scope, key, value, overwrite: true }));
    }
    state
}

/// The bytes of a snapshot that a cluster of three wrote.
fn bytes(state: &State) -> Vec<u8> {
    bytes_at(state, SAVED_INDEX, 3)
}

/// The same as of an entry.
fn bytes_at(state: &State, index: u64, term: u64) -> Vec<u8> {
    let leader = openraft::impls::leader_id_adv::LeaderId { term, node_id: 2 };
    let nodes: BTreeMap<u64, Peer> =
        (1..=3).map(|node| (node, Peer { address: format!("old:{node}") })).collect();
    let membership = openraft::Membership::new(vec![nodes.keys().copied().collect()], nodes).unwrap();
    let header = Header {
        cluster_id: "old".into(),
        last_log_id: Some(LogId::new(leader, index)),
        membership: Membership::new(Some(LogId::new(leader, 0)), membership),
        digest: state.digest(),
        form: Form::of(state),
    };
    snapshot::write_to(Vec::new(), &header, state).unwrap()
}

fn file(directory: &TempDir, keys: u64) -> PathBuf {
    let path = directory.path().join("backup.snap");
    fs::write(&path, bytes(&state(keys))).unwrap();
    path
}

fn members(count: u64) -> Vec<InitialMember> {
    (1..=count).map(|node| InitialMember { node: NodeId(node), peer: format!("new:{node}") }).collect()
}

fn plan(directory: &TempDir, node: u64, count: u64) -> Plan {
    Plan {
        file: directory.path().join("backup.snap"),
        node: NodeId(node),
        data: directory.path().join(format!("node-{node}")),
        members: members(count),
        name: "new".into(),
        jobs: Jobs::Ended,
    }
}

#[test]
fn a_whole_file_says_what_it_holds() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, 20);
    let found = verify(&path).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!((found.format, found.cluster_id.as_str(), found.file_bytes), (2, "old", size));
    assert_eq!((found.index, found.term), (LogIndex(SAVED_INDEX), Term(3)));
    assert_eq!(found.voters.len(), 3);
    assert_eq!(found.voters[1], (NodeId(2), "old:2".into()));
    assert_eq!((found.counts.jobs, found.counts.keys, found.counts.sessions), (1, 20, 1));
    assert_eq!(found.digest, state(20).digest());
    assert_eq!(verify(&path).unwrap(), found);
}

#[test]
fn a_flipped_byte_is_refused_wherever_it_is_and_the_place_is_told() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, 200);
    let whole = fs::read(&path).unwrap();
    let last = whole.len() - 1;
    for at in (0..last).step_by(100).chain([last]) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(&path, &flipped).unwrap();
        let Err(Error::Damaged(told)) = verify(&path) else { panic!("byte {at} of {last}") };
        assert!(told.contains("backup.snap"), "{told}");
        // The first twelve bytes are the magic and the version.
        assert!(at < 12 || told.contains("which begins at byte"), "{at}: {told}");
    }
}

#[test]
fn a_file_that_is_cut_or_too_long_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, 200);
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(verify(&path), Err(Error::Damaged(_))), "cut at {length} of {}", whole.len());
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    let Err(Error::Damaged(told)) = verify(&path) else { panic!("one byte more") };
    assert!(told.contains("bytes follow it"), "{told}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(verify(&path), Err(Error::Io(_))));
}

#[test]
fn a_file_from_whose_end_nobody_can_count_on_is_refused() {
    let directory = TempDir::new().unwrap();
    let plan = plan(&directory, 1, 1);
    for (index, term) in [(u64::MAX, 3), (SAVED_INDEX, u64::MAX), (u64::MAX - 1_000, u64::MAX)] {
        fs::write(&plan.file, bytes_at(&state(1), index, term)).unwrap();
        let Err(Error::Damaged(told)) = restore(&plan) else { panic!("entry {index} of term {term}") };
        assert!(told.contains("T5101") && told.contains("which no log reaches"), "{told}");
        assert!(!plan.data.exists());
    }
}

fn try_open(plan: &Plan, restored: &Restored) -> Result<Storage, StartError> {
    let options = Options {
        node: plan.node,
        cluster_id: restored.cluster_id.clone(),
        data: plan.data.clone(),
        peer_listen: String::new(),
        initial: plan.members.clone(),
        timing: Timing::default(),
        snapshot_every_entries: 1,
        keep_entries: 1,
        state: crate::base::options::StateLimits::default(),
    };
    Storage::open(Work::Threads, &options, Failure::new(), tripod_state::level::NEWEST)
}

fn open(plan: &Plan, restored: &Restored) -> Storage {
    try_open(plan, restored).unwrap()
}

fn is_empty(log: &LogStore) -> bool {
    !log.is_pristine() && log.purged().is_some()
}

#[test]
fn every_node_of_the_new_cluster_begins_with_the_same() {
    let directory = TempDir::new().unwrap();
    file(&directory, 20);
    let mut seen = Vec::new();
    for node in 1..=3 {
        let plan = plan(&directory, node, 3);
        let restored = restore(&plan).unwrap();
        assert_eq!((restored.index, restored.term), (LogIndex(1_000_000_000_000), Term(4)));
        assert_eq!(restored.contents.cluster_id, "old");
        let storage = open(&plan, &restored);
        let (header, state) = storage.snapshots.current().unwrap().snapshot.read().unwrap();
        assert_eq!(header.cluster_id, restored.cluster_id);
        assert_eq!(storage.log.purged(), header.last_log_id);
        assert!(is_empty(&storage.log) && RestoredNote::in_directory(&plan.data).is_set());
        assert_eq!(header.membership.voter_ids().collect::<Vec<_>>(), [1, 2, 3]);
        let job = state.jobs().pop().unwrap();
        assert_eq!(job.keys, 20);
        assert_ne!(job.service, SERVICE);
        storage.log.close();
        seen.push((restored, header, state.digest()));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
    assert!(seen[0].0.cluster_id.starts_with("new-"));
}

#[test]
fn whatever_differs_makes_another_cluster() {
    let directory = TempDir::new().unwrap();
    file(&directory, 20);
    let mut ids = Vec::new();
    let mut note = |plan: &Plan| {
        ids.push(restore(plan).unwrap().cluster_id);
        fs::remove_dir_all(&plan.data).unwrap();
    };
    let first = plan(&directory, 1, 3);
    note(&first);
    note(&Plan { name: "other".into(), ..first.clone() });
    note(&Plan { members: members(1), ..first.clone() });
    note(&Plan { jobs: Jobs::Kept, ..first.clone() });
    file(&directory, 21);
    note(&first);
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 5, "{ids:?}");
}

#[test]
fn kept_jobs_keep_their_service() {
    let directory = TempDir::new().unwrap();
    file(&directory, 3);
    let plan = Plan { jobs: Jobs::Kept, ..plan(&directory, 1, 1) };
    let restored = restore(&plan).unwrap();
    let storage = open(&plan, &restored);
    let (_, state) = storage.snapshots.current().unwrap().snapshot.read().unwrap();
    assert_eq!(state.jobs()[0].service, SERVICE);
    storage.log.close();
}

#[test]
fn a_used_directory_is_refused_and_left_as_it_is() {
    let directory = TempDir::new().unwrap();
    file(&directory, 3);
    let plan = plan(&directory, 1, 1);
    fs::create_dir(&plan.data).unwrap();
    fs::write(plan.data.join("precious"), b"mine").unwrap();
    let before = tree(directory.path());
    let Err(Error::Used(told)) = restore(&plan) else { panic!("not refused") };
    assert!(told.starts_with("T5201 restore-used: ") && told.contains("mv "), "{told}");
    assert_eq!(tree(directory.path()), before);

    // An empty one is as good as none.
    fs::remove_file(plan.data.join("precious")).unwrap();
    let restored = restore(&plan).unwrap();
    let before = tree(directory.path());
    assert!(matches!(restore(&plan), Err(Error::Used(_))), "what was restored is used, too");
    assert_eq!(tree(directory.path()), before);
    open(&plan, &restored).log.close();
}

#[test]
fn what_an_interrupted_restoration_left_is_named() {
    let directory = TempDir::new().unwrap();
    file(&directory, 3);
    let plan = plan(&directory, 1, 1);
    fs::create_dir(directory.path().join("node-1.restoring")).unwrap();
    let Err(Error::Used(told)) = restore(&plan) else { panic!("not refused") };
    assert!(told.contains("rm -r ") && told.contains("node-1.restoring"), "{told}");
    assert!(!plan.data.exists());
}

#[test]
fn nothing_is_made_of_a_damaged_file_or_a_plan_that_contradicts_itself() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, 3);
    let good = plan(&directory, 1, 3);
    let twice = [members(3), members(1)].concat();
    let wrong = [
        Plan { name: String::new(), ..good.clone() },
        Plan { name: "A b".into(), ..good.clone() },
        Plan { node: NodeId(4), ..good.clone() },
        Plan { members: twice, ..good.clone() },
    ];
    for plan in wrong {
        let Err(Error::Plan(told)) = restore(&plan) else { panic!("{plan:?}") };
        assert!(told.starts_with("T5202 restore-plan: "), "{told}");
    }
    let mut flipped = fs::read(&path).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&path, flipped).unwrap();
    assert!(matches!(restore(&good), Err(Error::Damaged(_))));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the file alone");
}

/// A node without its snapshot must not take itself for a new one.
#[test]
fn a_restored_directory_without_its_snapshot_is_refused() {
    let directory = TempDir::new().unwrap();
    file(&directory, 3);
    let plan = plan(&directory, 1, 1);
    let restored = restore(&plan).unwrap();
    for snapshot in fs::read_dir(plan.data.join("snapshots")).unwrap() {
        fs::remove_file(snapshot.unwrap().path()).unwrap();
    }
    let refused = try_open(&plan, &restored).map(|_| ());
    assert!(refused.unwrap_err().to_string().starts_with("T3105 snapshot-damaged"));
}

/// A sealed content that was changed in the middle: everything is there, and cannot be read beyond some byte.
struct Broken {
    content: std::io::Cursor<Vec<u8>>,
    at: u64,
}

impl std::io::Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.at.saturating_sub(self.content.position());
        let most = buffer.len().min(usize::try_from(left).unwrap());
        if most == 0 && !buffer.is_empty() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "the seal is broken"));
        }
        self.content.read(&mut buffer[..most])
    }
}

impl std::io::Seek for Broken {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.content.seek(to)
    }
}

#[test]
fn a_content_that_was_opened_is_what_the_file_is() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, 200);
    let content = || Box::new(std::io::Cursor::new(bytes(&state(200))));
    let of_file = verify(&path).unwrap();
    assert_eq!(verify_content(&path, content(), Pace::unlimited()).unwrap(), of_file);

    let plan = plan(&directory, 1, 3);
    let restored = restore(&plan).unwrap();
    fs::remove_dir_all(&plan.data).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(restore_content(&plan, content()).unwrap(), restored, "the file is not looked at");
    open(&plan, &restored).log.close();
}

#[test]
fn a_content_whose_seal_is_broken_is_damaged_and_no_trouble_of_the_disk() {
    let directory = TempDir::new().unwrap();
    let plan = plan(&directory, 1, 1);
    let whole = bytes(&state(200));
    for at in [0, 10, whole.len() as u64 / 2] {
        let broken = || Box::new(Broken { content: std::io::Cursor::new(whole.clone()), at });
        let Err(Error::Damaged(told)) = verify_content(&plan.file, broken(), Pace::unlimited()) else {
            panic!("broken at {at}")
        };
        assert!(told.starts_with("T5101 backup-damaged: ") && told.contains("the seal is broken"), "{told}");
        assert!(matches!(restore_content(&plan, broken()), Err(Error::Damaged(_))));
        assert!(!plan.data.exists());
    }
}

/// A content that is never to be asked for what is behind its end.
struct Strict(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Strict {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl std::io::Seek for Strict {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        let length = self.0.get_ref().len() as u64;
        assert!(!matches!(to, std::io::SeekFrom::Start(at) if at >= length), "{to:?} of {length}");
        self.0.seek(to)
    }
}

#[test]
fn behind_the_end_of_an_opened_content_is_nothing_as_of_a_file() {
    let content = Strict(std::io::Cursor::new(vec![7; 10]));
    let opened = ReadOnlyFile::of(Box::new(content), Pace::unlimited()).unwrap();
    let mut buffer = [0; 8];
    for (offset, expected) in [(0, 8), (8, 2), (10, 0), (11, 0), (u64::MAX, 0), (3, 7)] {
        assert_eq!(opened.read_at(offset, &mut buffer).unwrap(), expected, "from {offset}");
    }
    assert_eq!(opened.size().unwrap(), 10);
}
