//! Streams of calls to a service that answers what it is told, when it is told to.

mod both_ends;
mod counted;
mod ends;
mod older_clients;
mod rules;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::sync::{Notify, mpsc};
use tonic::Code;
use tonic::codegen::Service as _;
use tonic::service::Routes;
use tripod_proto::metadata;
use tripod_proto::tripod::v1 as wire;

use super::bounds::OPS_GRANTED;
use super::*;
use crate::bytes_held::{Budget, MemoryLimits, OP_BYTES};
use crate::call_context::CallContext;
use crate::caller_address::CallerAddress;
use crate::direct::{Direct, DirectAnswer, DirectRequest, DirectService};
use crate::manner::{Ending, Manner, Manners, Method, MethodKind};
use crate::stop::Stop;
use crate::{note_arrived, unary};

const PATHS: &[&str] =
    &["/a.B/Say", "/a.B/Wait", "/a.B/Hold", "/a.B/Write", "/a.B/Stream", "/a.B/Large", "/a.C/Say", PATH];
const SAY: u32 = 1;
const WAIT: u32 = 2;
const HOLD: u32 = 3;
const WRITE: u32 = 4;
const STREAM: u32 = 5;
const LARGE: u32 = 6;
const NOBODY: u32 = 7;
const NESTED: u32 = 8;
const LARGE_BYTES: usize = 3 << 20;

const MANNERS: &[Manner] = &[Manner {
    service: "a.B",
    kind: MethodKind::OneMessage,
    other: Ending::Repeatable,
    methods: &[Method::new("Write", Ending::Own), Method::new("Stream", Ending::Own).streaming()],
    poll_over: "",
}];

/// `Say` answers at once, `Wait` and `Write` when they are told to, and only the former says that it has arrived; `Hold` never.
#[derive(Default)]
struct Fake {
    begun: Mutex<Vec<String>>,
    dropped: AtomicUsize,
    go: Notify,
    /// Whether what runs is within the hook of the stream's port.
    is_gathering: AtomicBool,
    /// The same when each `Write` went on.
    went_on: Mutex<Vec<bool>>,
}

struct Noted(Arc<Fake>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

struct Service(Arc<Fake>);

impl DirectService for Service {
    fn name(&self) -> &'static str {
        "a.B"
    }

    fn call(&self, request: DirectRequest, _: CallContext) -> DirectAnswer {
        let fake = Arc::clone(&self.0);
        DirectAnswer::Own(Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let stamp =
                request.headers().get(metadata::STAMP).map(|stamp| stamp.to_str().unwrap().to_owned());
            let said = match unary::read::<String, _>(request).await {
                Ok(request) => request.into_body(),
                Err(request) => {
                    let mut body = request.into_body();
                    let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
                    return frame.expect("why").expect_err("it cannot be read").into_http();
                }
            };
            fake.begun.lock().push(said.clone());
            let _noted = Noted(Arc::clone(&fake));
            match method.as_str() {
                "Wait" => {
                    let go = fake.go.notified();
                    note_arrived();
                    go.await;
                }
                "Write" => {
                    fake.go.notified().await;
                    fake.went_on.lock().push(fake.is_gathering.load(Ordering::SeqCst));
                }
                "Hold" => std::future::pending().await,
                "Large" => return unary::answer(Ok(tonic::Response::new("x".repeat(LARGE_BYTES)))),
                _ => {}
            }
            let answer = match stamp {
                Some(stamp) => Ok(format!("{said} {stamp}")),
                None if said == "no" => {
                    Err(Status::with_details(Code::Aborted, "refused ü", b"why"[..].into()))
                }
                None => Ok(said),
            };
            unary::answer(answer.map(tonic::Response::new))
        }))
    }
}

/// What the client sends.
struct Sent(mpsc::UnboundedReceiver<Bytes>);

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

type AnswerFrames = crate::under_way::Answer<crate::holding::Content<AnswerBody>>;

struct Client {
    send: Option<mpsc::UnboundedSender<Bytes>>,
    body: AnswerFrames,
    came: BytesMut,
    /// How the stream ended.
    end: Option<Status>,
    answers: VecDeque<wire::Answer>,
    granted: u32,
    byes: u32,
}

struct Port {
    services: Followed,
    fake: Arc<Fake>,
    calls: ConnectionCalls,
    stop: Stop,
    gathered: Arc<Mutex<Vec<usize>>>,
    /// How many ops of each frame bear a stamp, as the hook was told.
    stamped: Arc<Mutex<Vec<usize>>>,
}

impl Port {
    fn new() -> Self {
        Self::within(MemoryLimits::none())
    }

    fn within(limits: MemoryLimits) -> Self {
        let (stop, stopping) = Stop::new();
        let fake = Arc::<Fake>::default();
        let gathered = Arc::<Mutex<Vec<usize>>>::default();
        let stamped = Arc::<Mutex<Vec<usize>>>::default();
        let (noted, told, begun) = (Arc::clone(&gathered), Arc::clone(&stamped), Arc::clone(&fake));
        let gather = Gather::new(move |stamped, begin| {
            told.lock().push(stamped);
            let before = begun.begun.lock().len();
            begun.is_gathering.store(true, Ordering::SeqCst);
            begin();
            begun.is_gathering.store(false, Ordering::SeqCst);
            noted.lock().push(begun.begun.lock().len() - before);
        });
        let direct = vec![Direct::of(Service(Arc::clone(&fake)))];
        let services = Followed::new(Routes::default(), direct, Manners::of(&[MANNERS]), &stopping);
        let account = Budget::new(limits).account();
        let calls = ConnectionCalls::from(CallerAddress::default(), account);
        Self { services: services.gathering(gather), fake, calls, stop, gathered, stamped }
    }

    /// A stream that nothing was sent on.
    async fn silent(&self) -> Client {
        let (send, sent) = mpsc::unbounded_channel();
        let mut request = Request::post(format!("http://a.b:1{PATH}")).body(Body::new(Sent(sent))).unwrap();
        request.extensions_mut().insert(self.calls.clone());
        let response = self.services.clone().call(request).await.expect("there is no error");
        let end = Status::from_header_map(response.headers());
        Client {
            send: Some(send),
            body: response.into_body(),
            came: BytesMut::new(),
            end,
            answers: VecDeque::new(),
            granted: 0,
            byes: 0,
        }
    }

    /// A stream with a hello and all paths.
    async fn open(&self) -> Client {
        let mut client = self.silent().await;
        let hello = wire::Hello { session: "7".to_owned(), ..Default::default() };
        let paths = PATHS.iter().map(|path| (*path).to_owned()).collect();
        client.send(&wire::Frame { hello: Some(hello), paths, ..Default::default() });
        client.hear().await;
        assert_eq!(client.granted, OPS_GRANTED);
        client
    }
}

impl Client {
    fn send(&self, frame: &wire::Frame) {
        self.send_bytes(&frame.encode_to_vec());
    }

    /// A message that need be no frame.
    fn send_bytes(&self, message: &[u8]) {
        let mut bytes = BytesMut::new();
        bytes.put_u8(0);
        bytes.put_u32(message.len().try_into().unwrap());
        bytes.put_slice(message);
        // Whether anybody hears it is seen by what comes.
        let _ = self.send.as_ref().expect("it has not ended").send(bytes.freeze());
    }

    fn ops(&self, ops: Vec<wire::Op>) {
        self.send(&wire::Frame { ops, ..Default::default() });
    }

    /// Takes one frame, or the end.
    async fn hear(&mut self) {
        loop {
            let length =
                self.came.get(1..5).map(|length| u32::from_be_bytes(length.try_into().unwrap()) as usize);
            if let Some(length) = length
                && self.came.len() >= 5 + length
            {
                let frame = wire::Frame::decode(&self.came.split_to(5 + length)[5..]).expect("a frame");
                self.granted += frame.grant;
                self.byes += u32::from(frame.bye.is_some());
                self.answers.extend(frame.answers);
                return;
            }
            let body = &mut self.body;
            match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.came.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().expect("they are trailers");
                        self.end = Status::from_header_map(&trailers);
                        return;
                    }
                },
                other => panic!("{other:?}"),
            }
        }
    }

    async fn answer(&mut self) -> wire::Answer {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return answer;
            }
            assert!(self.end.is_none(), "{:?}", self.end);
            self.hear().await;
        }
    }

    async fn end(mut self) -> (Code, String) {
        while self.end.is_none() {
            self.hear().await;
        }
        let end = self.end.expect("it has ended");
        (end.code(), end.message().to_owned())
    }
}

fn op(tag: u32, path: u32, said: &str) -> wire::Op {
    wire::Op { tag, path, message: said.to_owned().encode_to_vec().into(), ..Default::default() }
}

fn text(answer: &wire::Answer) -> String {
    String::decode(answer.message.clone()).expect("a text")
}

/// Lets the stream's task do all that it can do now.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn each_op_is_answered_by_its_tag_with_all_that_its_call_would_be_told() {
    let port = Port::new();
    let mut client = port.open().await;
    let stamped = wire::Op { sequence: 3, acknowledged_below: 2, ..op(9, SAY, "c") };
    client.ops(vec![op(7, SAY, "a"), op(8, SAY, "no"), stamped, op(10, NOBODY, "d")]);
    let answer = client.answer().await;
    assert_eq!((answer.tag, answer.code, text(&answer), answer.arrived), (7, 0, "a".to_owned(), false));
    assert!(answer.metadata.is_empty());
    let answer = client.answer().await;
    assert_eq!((answer.tag, answer.code, answer.text.as_str()), (8, Code::Aborted as i32, "refused ü"));
    assert_eq!((&answer.details[..], answer.message.len()), (&b"why"[..], 0));
    assert_eq!(text(&client.answer().await), "c 7.3.2");
    let answer = client.answer().await;
    assert_eq!((answer.tag, answer.code), (10, Code::Unimplemented as i32), "as the router says");
    assert_eq!(client.granted, OPS_GRANTED + 4);
    client.send = None;
    assert_eq!(client.end().await, (Code::Ok, String::new()));
}

#[tokio::test]
async fn ops_begin_in_their_order_and_those_of_a_frame_together() {
    let port = Port::new();
    let mut client = port.open().await;
    let said: Vec<String> = (0..400).map(|number: u32| number.to_string()).collect();
    let ops: Vec<_> = (1..).zip(&said).map(|(tag, said)| op(tag, WRITE, said)).collect();
    client.ops(ops[..250].to_vec());
    client.ops(ops[250..].to_vec());
    settle().await;
    assert_eq!(*port.fake.begun.lock(), said);
    assert_eq!(*port.gathered.lock(), [0, 250, 150], "the first frame had no ops");
    port.fake.go.notify_waiters();
    let mut heard = Vec::new();
    for _ in 0..400 {
        heard.push(text(&client.answer().await));
    }
    assert_eq!(heard, said);
}

#[tokio::test]
async fn it_is_told_how_many_ops_of_a_frame_bear_a_stamp() {
    let port = Port::new();
    let mut client = port.open().await;
    let stamp = wire::Metadata { key: metadata::STAMP.to_owned(), value: "8.1.1".to_owned() };
    let by_itself = wire::Op { metadata: vec![stamp], ..op(2, SAY, "b") };
    let by_the_hello = wire::Op { sequence: 1, ..op(3, SAY, "c") };
    let cancel = wire::Op { tag: 9, ..Default::default() };
    client.ops(vec![op(1, SAY, "a"), by_itself, by_the_hello, cancel]);
    for _ in 0..3 {
        client.answer().await;
    }
    assert_eq!(port.stamped.lock()[..2], [0, 2], "the first frame had no ops");
}

/// What they propose must not overtake what was gathered as they began.
#[tokio::test]
async fn ops_go_on_together_as_they_began() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, WRITE, "a"), op(2, WRITE, "b")]);
    settle().await;
    port.fake.go.notify_waiters();
    let answers = [client.answer().await, client.answer().await];
    assert_eq!(answers.each_ref().map(text), ["a", "b"]);
    assert_eq!(*port.fake.went_on.lock(), [true, true]);
}

#[tokio::test]
async fn an_op_that_has_arrived_gives_its_grant_back_once() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, WAIT, "a"), op(2, WRITE, "b")]);
    let arrived = client.answer().await;
    assert!(arrived.arrived && arrived.tag == 1 && arrived.message.is_empty());
    settle().await;
    assert_eq!(client.granted, OPS_GRANTED + 1, "the other one has not said so");
    port.fake.go.notify_waiters();
    let answers = [client.answer().await, client.answer().await];
    assert_eq!(answers.each_ref().map(text), ["a", "b"]);
    assert_eq!(client.granted, OPS_GRANTED + 2);
}

#[tokio::test]
async fn many_more_ops_than_are_granted_may_wait_when_they_have_arrived() {
    let port = Port::new();
    let mut client = port.open().await;
    let mut next = 1;
    for _ in 0..12 {
        client.ops((next..next + 256).map(|tag| op(tag, WAIT, "w")).collect());
        next += 256;
        for _ in 0..256 {
            assert!(client.answer().await.arrived);
        }
    }
    assert_eq!(port.fake.begun.lock().len(), 3_072);
    let a_waiting_op = port.calls.account().held() / 3_072;
    assert!((OP_BYTES..OP_BYTES + 512).contains(&a_waiting_op), "{a_waiting_op}");
}

#[tokio::test]
async fn an_op_that_is_given_up_is_dropped_and_not_answered_and_its_grant_comes_back() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, HOLD, "a"), op(2, WAIT, "b")]);
    assert!(client.answer().await.arrived);
    let cancel = |tag| wire::Op { tag, ..Default::default() };
    client.ops(vec![cancel(1), cancel(2), cancel(3)]);
    client.hear().await;
    assert_eq!(port.fake.dropped.load(Ordering::SeqCst), 2);
    assert_eq!(client.granted, OPS_GRANTED + 2, "each once");
    client.ops(vec![op(1, SAY, "again")]);
    assert_eq!(text(&client.answer().await), "again");
    assert!(client.answers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_ops_patience_ends_it_as_it_would_end_its_call() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![wire::Op { patience_ms: 50, ..op(1, HOLD, "a") }]);
    let answer = client.answer().await;
    assert_eq!((answer.code, answer.text.as_str()), (Code::Cancelled as i32, "Timeout expired"));
}

#[tokio::test]
async fn a_large_answer_comes_whole_and_beside_small_ones() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, LARGE, "a"), op(2, SAY, "b")]);
    assert_eq!(text(&client.answer().await).len(), LARGE_BYTES);
    assert_eq!(text(&client.answer().await), "b");
}
