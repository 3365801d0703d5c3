//! Heartbeats: in batches, with the cluster's verdict, from the lease, and told later.

use std::time::Duration;

use tonic::codec::CompressionEncoding;
use tonic::{Code, Request};
use tripod_agent::{AgentConfig, Timing};
use tripod_proto::metadata;
use tripod_proto::xla::coordination as n;

use crate::fake::{BeatConduct, Cluster, Node};
use crate::support::{Client, Served, config, soon, until};

/// A task's heartbeat whose client waits for at most `limit`.
fn beat(task: i32, limit: Duration) -> Request<n::HeartbeatRequest> {
    let incarnation = 40 + u64::try_from(task).expect("a task id");
    let message = n::HeartbeatRequest { source_task_id: task, incarnation, ..Default::default() };
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

pub(crate) async fn heartbeat(client: &mut Client, task: i32, limit: Duration) -> Result<u64, tonic::Status> {
    let reply = soon(client.heartbeat(beat(task, limit))).await?;
    Ok(reply.into_inner().service_incarnation)
}

/// The tasks of every batch so far.
pub(crate) fn batches(cluster: &Cluster) -> Vec<Vec<i32>> {
    let of = |beats: &Vec<tripod_proto::tripod::v1::ClientBeat>| {
        let mut tasks: Vec<i32> = beats
            .iter()
            .map(|beat| {
                assert_eq!(beat.path, "/xla.coordination.CoordinationService/Heartbeat");
                let message: n::HeartbeatRequest =
                    prost::Message::decode(beat.message.clone()).expect("a message");
                message.source_task_id
            })
            .collect();
        tasks.sort_unstable();
        tasks
    };
    cluster.look(|state| state.batches.iter().map(|(_, beats)| of(beats)).collect())
}

pub(crate) const LONG: Duration = Duration::from_secs(20);
/// The lease answers after 60 % of this.
const LEASED: Duration = Duration::from_secs(5);
/// For calls that fail.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn beats_of_several_clients_are_told_together_and_answered_with_the_verdict() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let (mut first, mut second) = (served.client().await, served.client().await);
    soon(first.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("the agent is ready");
    let (one, two) = tokio::join!(heartbeat(&mut first, 0, LONG), heartbeat(&mut second, 1, LONG));
    assert_eq!((one.expect("alive"), two.expect("alive")), (7, 7));
    assert_eq!(batches(&cluster), [[0, 1]]);
    let status = served.status();
    assert_eq!((status.beats_told, status.beats_leased, status.clients), (2, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_beat_is_the_same_beat() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut plain = served.client().await;
    let mut packed = served.client().await.send_compressed(CompressionEncoding::Gzip);
    heartbeat(&mut plain, 3, LONG).await.expect("alive");
    heartbeat(&mut packed, 3, LONG).await.expect("alive");
    let messages: Vec<_> = cluster.look(|state| {
        state.batches.iter().flat_map(|(_, beats)| beats.iter().map(|beat| beat.message.clone())).collect()
    });
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], messages[1]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_and_ends_the_lease() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let register = n::RegisterTaskRequest { incarnation: 40, source_task_id: 0 };
    soon(client.register_task(register)).await.expect("registered");
    heartbeat(&mut client, 0, LONG).await.expect("alive");
    node.behave(|conduct| conduct.beats = BeatConduct::Refuse("already in error"));
    let refused = heartbeat(&mut client, 0, LONG).await.expect_err("refused");
    assert_eq!((refused.code(), refused.message()), (Code::Aborted, "already in error"));
    assert_eq!(refused.details(), b"details");
    assert_eq!(batches(&cluster), [[0], [0]]);
    node.kill();
    heartbeat(&mut client, 0, SHORT).await.expect_err("there is no lease any more");
}

#[tokio::test(start_paused = true)]
async fn beats_are_answered_from_the_lease_while_the_cluster_is_away_and_told_later() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    heartbeat(&mut client, 0, LONG).await.expect("alive");
    node.kill();
    let beats = [(); 3].map(|()| {
        let mut client = client.clone();
        tokio::spawn(async move { heartbeat(&mut client, 0, LEASED).await })
    });
    for beat in beats {
        assert_eq!(soon(beat).await.expect("no panic").expect("from the lease"), 7);
    }
    assert_eq!(served.status().beats_leased, 3);
    assert_eq!(batches(&cluster).len(), 1);

    node.revive();
    until("the beat is told", || batches(&cluster).len() == 2).await;
    // What comes after it shows that it was told once only.
    heartbeat(&mut client, 1, LONG).await.expect("alive");
    assert_eq!(batches(&cluster), [[0], [0], [1]]);
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_the_lease_of_the_first_beat() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await.send_compressed(CompressionEncoding::Gzip);
    let register = n::RegisterTaskRequest { incarnation: 40, source_task_id: 0 };
    let registered = soon(client.register_task(register)).await.expect("registered").into_inner();
    node.kill();
    let answered = heartbeat(&mut client, 0, LEASED).await.expect("from the registration");
    assert_eq!(answered, registered.service_incarnation);
    heartbeat(&mut client, 1, SHORT).await.expect_err("nobody has registered as this one");
}

#[tokio::test(start_paused = true)]
async fn a_beat_without_a_verdict_is_told_again() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    node.behave(|conduct| conduct.beats = BeatConduct::Outage(metadata::OUTAGE_NO_LEADER));
    let call = tokio::spawn(async move { heartbeat(&mut client, 0, LONG).await });
    until("it is told again", || batches(&cluster).len() >= 2).await;
    node.behave(|conduct| conduct.beats = BeatConduct::Answer);
    assert_eq!(soon(call).await.expect("no panic").expect("alive"), 7);
}

#[tokio::test(start_paused = true)]
async fn the_lease_ends_with_the_longest_outage() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    let timing = Timing { max_outage: Duration::from_secs(8), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&node]) });
    let mut client = served.client().await;
    heartbeat(&mut client, 0, LONG).await.expect("alive");
    node.kill();
    heartbeat(&mut client, 0, LEASED).await.expect("from the lease");
    until("the longest outage is over", || {
        served.status().outage.is_some_and(|outage| outage >= timing.max_outage)
    })
    .await;
    let refused = heartbeat(&mut client, 0, LONG).await.expect_err("given up");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("no node of the cluster could serve"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn a_beat_whose_verdict_never_comes_is_told_again() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let timing = Timing { answer_limit: Duration::from_secs(1), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&node]) });
    let mut client = served.client().await;
    heartbeat(&mut client, 0, LONG).await.expect("alive");
    node.behave(|conduct| conduct.beats = BeatConduct::Silence);
    heartbeat(&mut client, 0, LEASED).await.expect("from the lease");
    until("there is an outage", || served.status().outage.is_some()).await;
    node.behave(|conduct| conduct.beats = BeatConduct::Answer);
    until("the beat is told", || batches(&cluster).len() == 2).await;
    until("the outage is over", || served.status().outage.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn n1_the_cluster_hears_of_a_client_until_its_first_heartbeat_and_how_long_it_waits_for_an_answer() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let register = n::RegisterTaskRequest { incarnation: 40, source_task_id: 0 };
    soon(client.register_task(register)).await.expect("registered");
    let told = || cluster.look(|state| state.presences.clone());
    until("it is told again and again", || told().len() == 3).await;
    heartbeat(&mut client, 0, LONG).await.expect("alive");
    let deadlines: Vec<u64> = cluster.look(|state| {
        state.batches.iter().flat_map(|(_, beats)| beats.iter().map(|beat| beat.deadline_ms)).collect()
    });
    assert_eq!(deadlines, [20_000]);
    until("the cluster has heard enough", || told().len() == 4).await;
    drop(client);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(told().iter().all(|presence| !presence.gone) && told().len() == 4, "{:?}", told());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_before_its_first_heartbeat_is_told_of_at_once() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let register = n::RegisterTaskRequest { incarnation: 40, source_task_id: 0 };
    soon(client.register_task(register)).await.expect("registered");
    let told = || cluster.look(|state| state.presences.clone());
    until("it is told of", || told().len() == 1).await;
    let begun = tokio::time::Instant::now();
    drop(client);
    until("its end is told", || told().len() == 2).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let [here, gone] = told()[..] else { panic!("{:?}", told()) };
    assert!(!here.gone && gone.gone && here.connection == gone.connection);
}
