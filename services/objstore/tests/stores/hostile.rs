//! Processes and peers that misbehave: the store answers or disconnects, and goes on.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use prost::Message as _;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tonic::Code;
use tripod_objstore::ObjectId;
use tripod_proto::ray::ObjChunk;
use tripod_proto::tripod::v1::local_reply::Told;
use tripod_proto::tripod::v1::local_request::Ask;
use tripod_proto::tripod::v1::{
    LocalAbort, LocalCancel, LocalCreate, LocalGet, LocalHello, LocalPut, LocalRelease, LocalReply,
    LocalRequest, LocalSeal,
};

use crate::peer::{Then, peer};
use crate::support::{Scene, Started, get};

/// A connection without a library. It blocks, so it is used in threads for that.
struct Raw {
    stream: UnixStream,
    read: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Raw {
    fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("connected");
        stream.set_read_timeout(Some(tripod_wait::deadline())).expect("set");
        Self { stream, read: Vec::new(), descriptors: Vec::new() }
    }

    fn greeted(socket: &Path) -> Self {
        let mut raw = Self::open(socket);
        let reply = raw.ask(1, Ask::Hello(LocalHello { version: 1, workerid: None }));
        assert!(matches!(reply.told, Some(Told::Welcome(_))));
        raw
    }

    /// Whether it could be sent: the store may have disconnected, or not read.
    fn send(&mut self, bytes: &[u8]) -> bool {
        use std::io::Write as _;
        self.stream.write_all(bytes).is_ok()
    }

    fn tell(&mut self, tag: u64, ask: Ask) -> bool {
        self.send(&framed(&LocalRequest { tag, ask: Some(ask) }.encode_to_vec()))
    }

    fn ask(&mut self, tag: u64, ask: Ask) -> LocalReply {
        self.tell(tag, ask);
        self.reply().expect("an answer")
    }

    /// The next reply; `None` after the end.
    fn reply(&mut self) -> Option<LocalReply> {
        loop {
            if let Some(head) = self.read.first_chunk::<4>() {
                let end = 4 + usize::try_from(u32::from_le_bytes(*head)).expect("64 bits");
                if self.read.len() >= end {
                    let frame: Vec<u8> = self.read.drain(..end).collect();
                    return Some(LocalReply::decode(&frame[4..]).expect("a reply"));
                }
            }
            let mut chunk = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let received =
                recvmsg(&self.stream, &mut [IoSliceMut::new(&mut chunk)], &mut control, RecvFlags::empty());
            let Ok(received) = received else { return None };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(passed) = message {
                    self.descriptors.extend(passed);
                }
            }
            if received.bytes == 0 {
                return None;
            }
            self.read.extend_from_slice(&chunk[..received.bytes]);
        }
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(message.len()).expect("short").to_le_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

fn code(reply: &LocalReply) -> Code {
    Code::from_i32(reply.code)
}

/// Runs what blocks, beside the store.
async fn beside<T: Send + 'static>(store: &Started, work: impl FnOnce(&Path) -> T + Send + 'static) -> T {
    let socket = store.store.socket().to_owned();
    tokio::task::spawn_blocking(move || work(&socket)).await.expect("no assertion failed")
}

async fn still_works(store: &Started) {
    let object = 1_000_000 + rand::random::<u32>();
    store.put(object.into(), 70_000).await;
    store.expect(object.into(), 70_000).await;
}

#[tokio::test]
async fn frames_that_are_none_end_the_connection_and_nothing_else() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    let ends = |bytes: Vec<u8>| {
        move |socket: &Path| {
            let mut raw = Raw::greeted(socket);
            raw.send(&bytes);
            raw.reply()
        }
    };
    for bytes in [u32::MAX.to_le_bytes().to_vec(), 70_000_u32.to_le_bytes().to_vec(), framed(&[0xff; 20])] {
        assert_eq!(beside(&store, ends(bytes)).await, None);
    }
    beside(&store, |socket| {
        let mut raw = Raw::greeted(socket);
        raw.send(&framed(&LocalRequest { tag: 1, ask: None }.encode_to_vec())[..3]);
        // It goes away in the middle of a frame.
    })
    .await;
    still_works(&store).await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_answered() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    beside(&store, |socket| {
        let mut raw = Raw::open(socket);
        assert_eq!(
            code(&raw.ask(5, Ask::Get(LocalGet { objectid: 1, timeout_ms: 0 }))),
            Code::InvalidArgument
        );
        assert_eq!(
            code(&raw.ask(6, Ask::Hello(LocalHello { version: 9, workerid: None }))),
            Code::InvalidArgument
        );
        raw.ask(7, Ask::Hello(LocalHello { version: 1, workerid: None }));
        raw.send(&framed(&LocalRequest { tag: 8, ask: None }.encode_to_vec()));
        let nothing = raw.reply().expect("an answer");
        assert_eq!((nothing.tag, code(&nothing)), (8, Code::InvalidArgument));
        raw.send(&framed(&[]));
        let empty = raw.reply().expect("an answer");
        assert_eq!((empty.tag, code(&empty)), (0, Code::InvalidArgument));
        assert_eq!(
            code(&raw.ask(9, Ask::Seal(LocalSeal { objectid: 1, ..LocalSeal::default() }))),
            Code::NotFound
        );
        assert_eq!(code(&raw.ask(10, Ask::Abort(LocalAbort { objectid: 1 }))), Code::NotFound);
        assert_eq!(code(&raw.ask(11, Ask::Release(LocalRelease { objectid: 1 }))), Code::NotFound);
        assert_eq!(code(&raw.ask(12, Ask::Cancel(LocalCancel { get_tag: 77 }))), Code::Ok);
        let large = LocalPut { objectid: 1, data: vec![0; (64 << 10) + 1].into(), ..LocalPut::default() };
        assert_eq!(code(&raw.ask(13, Ask::Put(large))), Code::InvalidArgument);
    })
    .await;
    still_works(&store).await;
}

#[tokio::test]
async fn a_get_is_cancelled_by_its_tag_and_a_tag_in_use_is_refused() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    beside(&store, |socket| {
        let mut raw = Raw::greeted(socket);
        raw.tell(5, Ask::Get(LocalGet { objectid: 1, timeout_ms: 0 }));
        let again = raw.ask(5, Ask::Get(LocalGet { objectid: 2, timeout_ms: 0 }));
        assert_eq!((again.tag, code(&again)), (5, Code::InvalidArgument));
        let cancelled = raw.ask(6, Ask::Cancel(LocalCancel { get_tag: 5 }));
        assert_eq!((cancelled.tag, code(&cancelled)), (5, Code::Cancelled));
        let done = raw.reply().expect("an answer");
        assert_eq!((done.tag, code(&done)), (6, Code::Ok));
        raw.tell(5, Ask::Get(LocalGet { objectid: 2, timeout_ms: 0 }));
        raw.tell(7, Ask::Put(LocalPut { objectid: 2, data: vec![1].into(), ..LocalPut::default() }));
        let mut tags = [raw.reply().expect("an answer").tag, raw.reply().expect("an answer").tag];
        tags.sort_unstable();
        assert_eq!(tags, [5, 7]);
    })
    .await;
}

#[tokio::test]
async fn an_object_cannot_be_sealed_while_it_can_be_written_through_a_mapping() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    beside(&store, |socket| {
        let mut raw = Raw::greeted(socket);
        let created = raw.ask(2, Ask::Create(LocalCreate { objectid: 1, size_bytes: 100_000 }));
        assert_eq!(code(&created), Code::Ok);
        let file = std::fs::File::from(raw.descriptors.remove(0));
        // Another process, since mapping needs what this one may not do.
        let mut mapping = mapping_process(&file);
        let seal = || Ask::Seal(LocalSeal { objectid: 1, ..LocalSeal::default() });
        let refused = raw.ask(3, seal());
        assert_eq!(code(&refused), Code::FailedPrecondition, "{refused:?}");
        assert!(refused.text.contains("mapping"), "{refused:?}");
        mapping.end();
        assert_eq!(code(&raw.ask(4, seal())), Code::Ok);
    })
    .await;
    let got = store.local.get(ObjectId(1), None).await.expect("here");
    assert_eq!(got.size_bytes(), 100_000);
}

/// The system says that a mapping is left also while it holds pages itself, which whoever wrote them cannot know.
#[tokio::test]
async fn an_object_is_sealed_when_a_mapping_that_was_left_for_a_moment_is_gone() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    beside(&store, |socket| {
        let mut raw = Raw::greeted(socket);
        let created = raw.ask(2, Ask::Create(LocalCreate { objectid: 1, size_bytes: 100_000 }));
        assert_eq!(code(&created), Code::Ok);
        let file = std::fs::File::from(raw.descriptors.remove(0));
        let mut mapping = mapping_process(&file);
        raw.tell(3, Ask::Seal(LocalSeal { objectid: 1, ..LocalSeal::default() }));
        let put = LocalPut { objectid: 2, data: vec![1].into(), ..LocalPut::default() };
        assert_eq!(raw.ask(4, Ask::Put(put)).tag, 4, "what comes behind it does not wait for it");
        mapping.end();
        let sealed = raw.reply().expect("an answer");
        assert_eq!((sealed.tag, code(&sealed)), (3, Code::Ok), "{sealed:?}");
    })
    .await;
    let got = store.local.get(ObjectId(1), None).await.expect("here");
    assert_eq!(got.size_bytes(), 100_000);
}

/// A process that has a file mapped; it ends with the test, however that ends.
struct Mapper(std::process::Child);

impl Mapper {
    fn end(&mut self) {
        // It may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        self.end();
    }
}

/// A process that has mapped the file for writing, when this returns.
fn mapping_process(file: &std::fs::File) -> Mapper {
    use std::io::BufRead as _;
    use std::process::{Command, Stdio};
    let script =
        "import mmap, sys, time\nm = mmap.mmap(0, 100000)\nprint('mapped', flush=True)\ntime.sleep(600)";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::from(file.try_clone().expect("cloned")))
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    std::io::BufReader::new(out).read_line(&mut line).expect("read");
    let child = Mapper(child);
    assert_eq!(line, "mapped\n");
    child
}

#[tokio::test]
async fn what_is_got_cannot_be_changed_by_whoever_got_it() {
    use std::os::unix::fs::FileExt as _;
    let scene = Scene::new().await;
    let store = scene.store().await;
    store.put(1, 100_000).await;
    beside(&store, |socket| {
        let mut raw = Raw::greeted(socket);
        assert_eq!(code(&raw.ask(2, Ask::Get(LocalGet { objectid: 1, timeout_ms: 0 }))), Code::Ok);
        let file = std::fs::File::from(raw.descriptors.remove(0));
        assert!(
            file.write_all_at(&[0], 0).is_err() && file.set_len(1).is_err() && file.set_len(1 << 20).is_err()
        );
        assert_eq!(code(&raw.ask(3, Ask::Release(LocalRelease { objectid: 1 }))), Code::Ok);
        assert_eq!(code(&raw.ask(4, Ask::Release(LocalRelease { objectid: 1 }))), Code::NotFound);
    })
    .await;
    store.expect(1, 100_000).await;
}

#[tokio::test]
async fn a_process_that_does_not_read_is_not_read_from_and_hinders_nobody() {
    let scene = Scene::new().await;
    let store = scene.store().await;
    store.put(1, 60_000).await;
    let socket = store.store.socket().to_owned();
    let deaf = tokio::task::spawn_blocking(move || {
        let mut raw = Raw::greeted(&socket);
        raw.stream.set_write_timeout(Some(Duration::from_millis(200))).expect("set");
        let asked =
            (0..200_000).take_while(|tag| raw.tell(*tag, Ask::Get(LocalGet { objectid: 1, timeout_ms: 0 })));
        assert!(asked.count() < 200_000, "everything is read from it though it reads nothing");
        raw
    });
    still_works(&store).await;
    let mut raw = deaf.await.expect("no assertion failed");
    assert_eq!(code(&raw.reply().expect("an answer")), Code::Ok);
    still_works(&store).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_of_a_process_or_a_peer_end_the_store(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..20),
        loose in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let scene = Scene::new().await;
            let mut store = scene.store().await;
            let sent = frames.clone();
            beside(&store, move |socket| {
                let mut raw = Raw::greeted(socket);
                for frame in &sent {
                    raw.send(&framed(frame));
                }
                raw.send(&loose);
            })
            .await;
            for frame in &frames {
                peers_bytes(&mut store, frame).await;
            }
            store.put(9_000_000, 10).await;
            store.expect(9_000_000, 10).await;
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_chunks_of_another_store_end_this_one_or_make_an_object_of_other_bytes(
        chunks in proptest::collection::vec(
            (0_u64..20, 0_u64..2, proptest::collection::vec(any::<u8>(), 0..12), any::<bool>(), proptest::option::of(any::<u32>())),
            0..5,
        ),
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let scene = Scene::new().await;
            let mut store = scene.store().await;
            let chunks: Vec<ObjChunk> = chunks
                .into_iter()
                .map(|(total_size, metadata_offset, data, checked, before_crc32c)| ObjChunk {
                    total_size,
                    metadata_offset,
                    data_crc32c: checked.then(|| crc32c::crc32c(&data)),
                    data: data.into(),
                    before_crc32c,
                })
                .collect();
            let sent = chunks.clone();
            let strange = peer(move |request| match request.offset {
                0 => Ok((sent.clone(), Then::Ends)),
                _ => Err(tonic::Status::not_found("it has no rest")),
            })
            .await;
            store.fetch(5, &strange.address).await;
            crate::support::until("it is asked", || (!strange.asked().is_empty()).then_some(())).await;
            // What it sent was an object, or another store is asked.
            let honest = scene.store().await;
            honest.put(5, 70_000).await;
            store.fetch(5, honest.store.address()).await;
            let got = get(&store.local, 5).await.expect("it comes").bytes().expect("mapped");
            let all: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.to_vec()).collect();
            let from_strange = got == all && chunks.iter().all(|chunk| chunk.total_size == all.len() as u64);
            assert!(from_strange || got == crate::support::pattern(5, 70_000), "{chunks:?}");
        });
    }
}

/// The bytes as each message that a peer can send, if they are one.
async fn peers_bytes(store: &mut Started, bytes: &[u8]) {
    use tripod_proto::ray::{
        DeallocateObjectRequest, NotifyAliasRequest, StartDeliveryRequest, StreamObjToRequest,
    };
    // Whatever is answered, it is an answer.
    if let Ok(message) = StartDeliveryRequest::decode(bytes) {
        _ = store.client.start_delivery(message).await;
    }
    if let Ok(message) = StreamObjToRequest::decode(bytes) {
        _ = store.client.stream_obj_to(message).await;
    }
    if let Ok(message) = NotifyAliasRequest::decode(bytes) {
        _ = store.client.notify_alias(message).await;
    }
    if let Ok(message) = DeallocateObjectRequest::decode(bytes) {
        _ = store.client.deallocate_object(message).await;
    }
}
