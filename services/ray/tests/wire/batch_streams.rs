//! Batches and orders over streams.

use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status, Streaming};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::tripod::v1::ray_call::Call as Asked;
use tripod_proto::tripod::v1::ray_result::Reply;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayLineRequest, RayLineResponse};

use crate::support::worker::{Call, Worker};
use crate::support::{Cluster, reason, until, with};

const SESSION: [(&str, &str); 1] = [(metadata::RAY_SESSION, "0123456789abcdef0123456789abcdef")];

/// A stream of batches.
struct BatchStream {
    batches: mpsc::UnboundedSender<RayLineRequest>,
    answers: Streaming<RayLineResponse>,
}

impl BatchStream {
    async fn open(cluster: &Cluster, headers: &[(&'static str, &str)]) -> Self {
        let (batches, waiting) = mpsc::unbounded_channel();
        let request = with(UnboundedReceiverStream::new(waiting), headers);
        let answers = cluster.batches().batches(request).await.expect("opened").into_inner();
        Self { batches, answers }
    }

    fn send(&self, seq: u64, calls: Vec<RayCall>) {
        let batch = Some(RayBatchRequest { workerid: None, calls });
        self.batches.send(RayLineRequest { seq, acked: seq.saturating_sub(1), batch }).expect("open");
    }

    async fn answer(&mut self) -> Result<RayLineResponse, Status> {
        Ok(self.answers.message().await?.expect("an answer to each"))
    }
}

fn put(driver: u64) -> Vec<RayCall> {
    let put = pb::PutObjRequest { workerid: driver, hold: true };
    vec![RayCall { call: Some(Asked::Put(put)), ..RayCall::default() }]
}

/// The object of the only result, and whether it is the answer of an earlier attempt.
fn object(answer: &RayLineResponse) -> (u64, bool) {
    let batch = answer.batch.as_ref().expect("a batch");
    let [result] = batch.results.as_slice() else { panic!("{answer:?}") };
    let Some(Reply::Put(put)) = &result.reply else { panic!("{answer:?}") };
    (put.objectid, batch.replayed)
}

#[tokio::test(start_paused = true)]
async fn batches_of_a_stream_are_answered_in_order_and_take_effect_once() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let mut stream = BatchStream::open(&cluster, &SESSION).await;
    stream.send(1, put(driver));
    stream.send(2, put(driver));
    let first = stream.answer().await.expect("answered");
    assert_eq!(object(&first), (0, false));
    assert!(!first.leader.is_empty(), "who leads is told first");
    let second = stream.answer().await.expect("answered");
    assert_eq!((object(&second), second.leader.as_str()), ((1, false), ""), "and then when it changes");
    // Its answer might have been lost with the node: the same again, to another one.
    cluster.fail_over();
    let mut again = BatchStream::open(&cluster, &SESSION).await;
    again.send(2, put(driver));
    assert_eq!(object(&again.answer().await.expect("answered")), (1, true));
    again.send(3, put(driver));
    assert_eq!(object(&again.answer().await.expect("answered")), (2, false));
    assert_eq!(cluster.counts().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_as_a_whole_ends_its_stream_with_the_status() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let refused = async |headers: &[(&'static str, &str)], seq: u64, calls: Vec<RayCall>| {
        let mut stream = BatchStream::open(&cluster, headers).await;
        stream.send(seq, calls);
        stream.send(seq + 1, put(driver));
        stream.answer().await.expect_err("refused")
    };
    let nothing = refused(&SESSION, 1, vec![RayCall::default()]).await;
    assert_eq!((nothing.code(), reason(&nothing)), (Code::InvalidArgument, "invalid"));
    let no_place = refused(&SESSION, 0, put(driver)).await;
    assert_eq!(no_place.code(), Code::InvalidArgument);
    let no_session = refused(&[], 1, put(driver)).await;
    assert_eq!(no_session.code(), Code::InvalidArgument);
    let unknown = refused(&SESSION, 7, put(driver)).await;
    assert_eq!((unknown.code(), reason(&unknown)), (Code::FailedPrecondition, "session-expired"));
    assert!(cluster.counts().await.is_empty(), "nothing behind them was looked at");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_serves_a_stream_has_its_orders_over_it() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let mut worker = Worker::start_lined(&cluster, &store).await;
    let messages = worker.lined.clone().expect("it serves one");
    cluster.idle(worker.id).await;
    cluster.function(worker.id, "f", 0).await;
    cluster.export("one").await;
    assert_eq!(worker.calls.next().await, Call::Function("one".to_owned()));
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(worker.executes().await, "f");
    assert!(messages.load(Ordering::SeqCst) >= 2, "a message for each");
    // Its process is away for a moment: nothing is lost, and the order stays.
    cluster.settled().await;
    worker.die();
    cluster.export("two").await;
    cluster.export("three").await;
    worker.listen();
    assert_eq!(worker.calls.next().await, Call::Function("two".to_owned()));
    assert_eq!(worker.calls.next().await, Call::Function("three".to_owned()));
    let before = messages.load(Ordering::SeqCst);
    cluster.export("four").await;
    assert_eq!(worker.calls.next().await, Call::Function("four".to_owned()));
    until("the stream is used again", || messages.load(Ordering::SeqCst) > before).await;
}

#[tokio::test(start_paused = true)]
async fn orders_go_by_the_store_of_a_worker_that_takes_them_there() {
    let cluster = Cluster::start().await;
    let mut store = cluster.store().await;
    let mut worker = Worker::start_lined(&cluster, &store).await;
    let direct = worker.lined.clone().expect("it serves one");
    cluster.idle(worker.id).await;
    cluster.export("one").await;
    assert_eq!(worker.calls.next().await, Call::Function("one".to_owned()));
    assert_eq!(direct.load(Ordering::SeqCst), 1, "the store passes none on yet");
    cluster.settled().await;
    // It says so later, and ends the stream to itself.
    let passed = worker.follow(&store);
    worker.die();
    worker.listen();
    let mut told = Vec::new();
    let names = ["two", "three", "four", "five", "six", "seven"];
    for name in names {
        cluster.export(name).await;
        told.push(worker.calls.next().await);
        if passed.load(Ordering::SeqCst) > 0 {
            break;
        }
    }
    told.dedup();
    let expected: Vec<_> = names.map(|name| Call::Function(name.to_owned())).into();
    assert_eq!(told, expected[..told.len()], "each of them, in their order");
    assert!(passed.load(Ordering::SeqCst) > 0, "the store is asked when a stream is opened");
    cluster.settled().await;
    let (before, by_store) = (direct.load(Ordering::SeqCst), passed.load(Ordering::SeqCst));
    cluster.export("by the store").await;
    assert_eq!(worker.calls.next().await, Call::Function("by the store".to_owned()));
    assert_eq!(passed.load(Ordering::SeqCst), by_store + 1);
    assert_eq!(direct.load(Ordering::SeqCst), before);
    // A store that is away is not in the way.
    cluster.settled().await;
    store.die();
    cluster.export("without the store").await;
    assert_eq!(worker.calls.next().await, Call::Function("without the store".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_does_not_take_over_a_stream_is_given_again() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let worker = Worker::start_lined(&cluster, &store).await;
    cluster.idle(worker.id).await;
    let mut refusals = 2;
    worker.calls.answer(move |_| {
        refusals -= i32::from(refusals > 0);
        if refusals > 0 { Err(Status::unavailable("not now")) } else { Ok(()) }
    });
    cluster.export("one").await;
    cluster.export("two").await;
    let mut told = Vec::new();
    while told.last() != Some(&Call::Function("two".to_owned())) {
        told.push(worker.calls.next().await);
    }
    told.dedup();
    assert_eq!(told, [Call::Function("one".to_owned()), Call::Function("two".to_owned())]);
}
