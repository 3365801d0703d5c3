//! Transfers that stall, break, go on, or bring something wrong.

mod peers;
mod sick_disk;

use std::time::Duration;

use futures::StreamExt;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use tripod_proto::tripod::peer::v1::{SnapshotChunk, SnapshotOffer};
use tripod_state::ids::{LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::{ApplyContext, Command, Envelope, Scope, State, job, kv};

use super::send::Outgoing;
use super::*;
use crate::base::codec;
use crate::base::types::Membership;
use crate::snapshot::{Form, Header, Snapshot, SnapshotStore};

const CLUSTER: &str = "test";

fn store(directory: &TempDir, name: &str) -> SnapshotStore {
    SnapshotStore::open_directory(&directory.path().join(name)).unwrap()
}

/// A state of `mebibytes` keys with values of one MiB each.
fn state(mebibytes: u64) -> State {
    let mut state = State::default();
    let mut apply = |index, command| {
        let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(index) };
        let outcome = state.apply(&context, Envelope { stamp: None, command });
        assert!(outcome.reply.is_ok(), "{:?}", outcome.reply);
        state.job_named("job").unwrap()
    };
    let spec = job::Spec::of_tasks(1);
    let create = job::Command::Create { name: "job".into(), spec, service: ServiceIncarnation(7) };
    let job = apply(1, Command::Job(create));
    for key in 0..mebibytes {
        let value = vec![u8::try_from(key).unwrap(); 1 << 20].into();
        let scope = Scope { job, service: None };
        let insert = kv::Command::Insert { scope, key: format!("key-{key}"), value, overwrite: true };
        apply(key + 2, Command::Kv(insert));
    }
    state
}

fn log_id(index: u64) -> LogId {
    let leader = openraft::impls::leader_id_adv::LeaderId { term: 1, node_id: 1 };
    LogId::new(leader, index)
}

fn snapshot_of(store: &SnapshotStore, state: &State, index: u64) -> Snapshot {
    let header = Header {
        cluster_id: CLUSTER.into(),
        last_log_id: Some(log_id(index)),
        membership: Membership::default(),
        digest: state.digest(),
        form: Form::of(state),
    };
    store.write(&header, state).unwrap()
}

/// A leader with a snapshot of about `mebibytes`, in a directory of its own.
struct Leader {
    file: Outgoing,
    _directory: TempDir,
}

/// Whatever is offered is taken.
fn anybody(_: &Offer) -> Result<(), Status> {
    Ok(())
}

impl Leader {
    async fn new(mebibytes: u64, index: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let store = store(&directory, "sender");
        let snapshot = snapshot_of(&store, &state(mebibytes), index);
        let file = Outgoing::open(&store, snapshot, Vote::new_committed(1, 1)).await.unwrap();
        Self { file, _directory: directory }
    }

    /// What it puts on the wire, offer included.
    async fn chunks(&self, from_bytes: u64) -> Vec<SnapshotChunk> {
        let (sender, taken) = mpsc::channel(CHUNKS_AHEAD);
        let taken = ReceiverStream::new(taken).collect();
        let (sent, chunks) = tokio::join!(self.file.push(from_bytes, sender), taken);
        sent.unwrap();
        chunks
    }

    fn question(&self) -> SnapshotOffer {
        SnapshotOffer { meta: codec::encode(&self.file.offer).into(), seal: self.file.seal.clone() }
    }
}

async fn take(chunks: Vec<Result<SnapshotChunk, Status>>, into: &SnapshotStore) -> Result<Received, Status> {
    receive(&mut futures::stream::iter(chunks), into, CLUSTER, anybody).await
}

fn whole(chunks: Vec<SnapshotChunk>) -> Vec<Result<SnapshotChunk, Status>> {
    chunks.into_iter().map(Ok).collect()
}

/// The first `count` chunks, and then the connection breaks.
fn cut(chunks: Vec<SnapshotChunk>, count: usize) -> Vec<Result<SnapshotChunk, Status>> {
    let broken = Err(Status::unavailable("the line broke"));
    chunks.into_iter().take(count).map(Ok).chain([broken]).collect()
}

fn refusal(received: Result<Received, Status>) -> Status {
    received.err().expect("a transfer that is not complete")
}

fn files(directory: &TempDir, name: &str) -> usize {
    std::fs::read_dir(directory.path().join(name)).unwrap().count()
}

/// Waits until so many files are left: what nobody needs goes soon, but not in whoever lets go of it.
async fn left(directory: &TempDir, name: &str, count: usize) {
    let deadline = std::time::Instant::now() + tripod_wait::deadline();
    while files(directory, name) != count {
        assert!(std::time::Instant::now() < deadline, "{} files are left", files(directory, name));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_came_before_a_cut_is_not_sent_again() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    assert_eq!(held(&leader.question(), &snapshots, anybody).await.unwrap(), 0);

    let broken = refusal(take(cut(leader.chunks(0).await, 3), &snapshots).await);
    assert_eq!(broken.code(), Code::Unavailable);
    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, 2 * CHUNK_BYTES as u64, "two chunks behind the offer");

    let rest = leader.chunks(here).await;
    let sent: usize = rest.iter().map(|chunk| chunk.data.len()).sum();
    assert_eq!(sent as u64, leader.file.offer.bytes - here);
    let received = take(whole(rest), &snapshots).await.unwrap();
    let (header, state) = received.snapshot.snapshot.read().unwrap();
    assert_eq!(header.last_log_id, Some(log_id(9)));
    assert_eq!(state, self::state(3));
    drop(received);
    // Nobody installed it.
    left(&directory, "receiver", 0).await;
}

#[tokio::test]
async fn a_complete_file_is_verified_again_when_its_sender_went_away_meanwhile() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(1, 9).await;
    let chunks = leader.chunks(0).await;
    let count = chunks.len();
    refusal(take(cut(chunks, count), &snapshots).await);
    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, leader.file.offer.bytes);
    let rest = leader.chunks(here).await;
    assert_eq!(rest.len(), 1, "the offer alone");
    assert!(take(whole(rest), &snapshots).await.is_ok());
}

#[tokio::test]
async fn another_snapshot_discards_what_was_left_of_the_first() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let (first, second) = (Leader::new(3, 9).await, Leader::new(3, 10).await);
    assert_eq!(first.file.offer.bytes, second.file.offer.bytes, "only the seal and the entry differ");
    refusal(take(cut(first.chunks(0).await, 3), &snapshots).await);
    assert_eq!(held(&second.question(), &snapshots, anybody).await.unwrap(), 0);
    let beyond = refusal(take(whole(second.chunks(CHUNK_BYTES as u64).await), &snapshots).await);
    assert_eq!(beyond.code(), Code::Aborted, "{beyond}");
    assert!(take(whole(second.chunks(0).await), &snapshots).await.is_ok());
    assert_eq!(held(&first.question(), &snapshots, anybody).await.unwrap(), 0);
    left(&directory, "receiver", 0).await;
}

#[tokio::test]
async fn a_file_of_the_same_entries_and_length_with_other_content_is_another_one() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    refusal(take(cut(leader.chunks(0).await, 3), &snapshots).await);
    let mut other = leader.question();
    let mut seal = other.seal.to_vec();
    *seal.last_mut().unwrap() ^= 1;
    other.seal = seal.into();
    assert_eq!(held(&other, &snapshots, anybody).await.unwrap(), 0);
}

#[tokio::test]
async fn what_was_kept_and_is_damaged_is_found_and_sent_again_from_the_beginning() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    refusal(take(cut(leader.chunks(0).await, 3), &snapshots).await);
    let kept = std::fs::read_dir(directory.path().join("receiver")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&kept).unwrap();
    bytes[CHUNK_BYTES] ^= 1;
    std::fs::write(&kept, bytes).unwrap();

    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    let refused = refusal(take(whole(leader.chunks(here).await), &snapshots).await);
    assert_eq!(refused.code(), Code::DataLoss, "{refused}");
    assert_eq!(files(&directory, "receiver"), 0);
    assert_eq!(held(&leader.question(), &snapshots, anybody).await.unwrap(), 0);
    assert!(take(whole(leader.chunks(0).await), &snapshots).await.is_ok());
}

#[tokio::test]
async fn a_damaged_chunk_is_refused_and_those_before_it_stay() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    let mut chunks = leader.chunks(0).await;
    chunks[2].crc32c ^= 1;
    assert_eq!(refusal(take(whole(chunks), &snapshots).await).code(), Code::DataLoss);
    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, CHUNK_BYTES as u64);
    assert!(take(whole(leader.chunks(here).await), &snapshots).await.is_ok());
}

#[tokio::test]
async fn a_snapshot_that_is_not_newer_is_not_sent() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    refusal(take(cut(leader.chunks(0).await, 3), &snapshots).await);
    assert_eq!(files(&directory, "receiver"), 1);
    snapshot_of(&snapshots, &state(1), 9);
    // What the snapshot has made useless goes.
    left(&directory, "receiver", 1).await;

    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, leader.file.offer.bytes);
    let received = take(whole(leader.chunks(here).await), &snapshots).await.unwrap();
    assert!(received.part.is_none());
    assert_eq!(received.snapshot.meta.last_log_id, Some(log_id(9)));
    drop(received);
    assert!(snapshots.current().unwrap().snapshot.verify().is_ok());
}

#[tokio::test]
async fn the_next_sender_takes_the_turn_and_an_older_leader_does_not() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let mut leader = Leader::new(3, 9).await;
    leader.file.offer.vote = Vote::new_committed(3, 1);
    let (line, arriving) = mpsc::channel(16);
    for chunk in leader.chunks(0).await.into_iter().take(3) {
        line.send(Ok(chunk)).await.unwrap();
    }
    // The connection stays open, and nothing comes any more.
    let receiver = snapshots.clone();
    let first = tokio::spawn(async move {
        refusal(receive(&mut ReceiverStream::new(arriving), &receiver, CLUSTER, anybody).await)
    });
    while line.capacity() < line.max_capacity() {
        tokio::task::yield_now().await;
    }
    let mut older = leader.question();
    older.meta =
        codec::encode(&Offer { vote: Vote::new_committed(2, 2), ..leader.file.offer.clone() }).into();
    let refused = held(&older, &snapshots, anybody).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted, "{refused}");
    assert!(!first.is_finished());

    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(first.await.unwrap().code(), Code::Aborted);
    assert!(here >= CHUNK_BYTES as u64, "{here}");
    assert!(take(whole(leader.chunks(here).await), &snapshots).await.is_ok());
}

#[tokio::test]
async fn a_sender_that_tells_no_seal_begins_at_the_beginning() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(3, 9).await;
    let mut chunks = leader.chunks(0).await;
    chunks[0].seal = Bytes::new();
    refusal(take(cut(chunks.clone(), 3), &snapshots).await);
    assert_eq!(held(&leader.question(), &snapshots, anybody).await.unwrap(), 0);
    assert!(take(whole(chunks), &snapshots).await.is_ok());
    left(&directory, "receiver", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_stalls_in_the_middle_is_given_up_and_the_next_one_goes_on() {
    let directory = TempDir::new().unwrap();
    let snapshots = store(&directory, "receiver");
    let leader = Leader::new(1, 9).await;
    let chunks = leader.chunks(0).await;
    let (line, arriving) = mpsc::channel(CHUNKS_AHEAD);
    let mut arriving = ReceiverStream::new(arriving);
    let began = Instant::now();
    let stalling = async {
        // The offer, then half of a chunk's worth, and then nothing; the connection stays open.
        let mut half = chunks[1].clone();
        half.data = half.data.slice(..half.data.len() / 2);
        half.crc32c = crc32c::crc32c(&half.data);
        line.send(Ok(chunks[0].clone())).await.unwrap();
        tokio::time::sleep(CHUNK_IDLE - Duration::from_secs(1)).await;
        line.send(Ok(half)).await.unwrap();
        tokio::time::sleep(CHUNK_IDLE / 2).await;
        assert_eq!(files(&directory, "receiver"), 1, "the transfer is under way");
    };
    let (refused, ()) = tokio::join!(receive(&mut arriving, &snapshots, CLUSTER, anybody), stalling);
    let refused = refusal(refused);
    assert_eq!(refused.code(), Code::DeadlineExceeded);
    assert!(refused.message().contains("no chunk of the snapshot came in time"), "{refused}");
    assert!(began.elapsed() >= 2 * CHUNK_IDLE - Duration::from_secs(1), "slow is not idle");
    assert!(began.elapsed() < 3 * CHUNK_IDLE);

    let here = held(&leader.question(), &snapshots, anybody).await.unwrap();
    assert_eq!(here, CHUNK_BYTES as u64 / 2);
    let received = take(whole(leader.chunks(here).await), &snapshots).await.unwrap();
    assert_eq!(received.snapshot.meta.last_log_id, Some(log_id(9)));
    assert_eq!(files(&directory, "receiver"), 1);
    drop(received);
    left(&directory, "receiver", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_stops_taking_chunks_is_given_up_after_the_idle_deadline() {
    let leader = Leader::new(4, 9).await;
    let (chunks, mut taken) = mpsc::channel(1);
    let sending = tokio::spawn(async move { leader.file.push(0, chunks).await });
    // Slow is not idle: each chunk may take nearly the whole deadline.
    let began = Instant::now();
    for _ in 0..2 {
        tokio::time::sleep(CHUNK_IDLE - Duration::from_secs(1)).await;
        taken.recv().await.unwrap();
    }
    let refused = sending.await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::DeadlineExceeded);
    assert!(began.elapsed() >= 2 * (CHUNK_IDLE - Duration::from_secs(1)) + CHUNK_IDLE);
    assert!(began.elapsed() < 4 * CHUNK_IDLE);
}
