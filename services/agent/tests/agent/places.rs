//! Where clients find the agent, which job it is for, and how it ends.

use tonic::Code;
use tripod_agent::{Agent, AgentConfig, Error, JobSpec, Listen};
use tripod_proto::xla::coordination as n;

use crate::fake::{Cluster, Node};
use crate::support::{Served, config, soon, until};

#[tokio::test]
async fn a_second_agent_at_the_same_place_is_refused() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let socket = Listen::Unix(directory.path().join("agent.sock"));
    for place in [socket, Listen::Tcp("127.0.0.1:0".into())] {
        let served = Served::start(AgentConfig { listen: vec![place], ..config(&[&node]) }).await;
        let again = AgentConfig { listen: vec![served.place.clone()], ..config(&[&node]) };
        let refused = Agent::open(again).await.expect_err("in use");
        assert!(matches!(refused, Error::Listen(_)), "{refused:?}");
        let text = refused.to_string();
        assert!(text.starts_with(&format!("cannot listen on --listen {}: ", served.place)), "{text}");
        assert!(text.contains("another agent"), "{text}");
    }
}

#[tokio::test]
async fn a_stop_ends_polls_and_the_next_agent_takes_the_place() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let place = Listen::Unix(directory.path().join("agent.sock"));
    let of_place = || AgentConfig { listen: vec![place.clone()], ..config(&[&node]) };
    let served = Served::start(of_place()).await;
    let mut client = served.client().await;
    let mut getter = client.clone();
    let mut poller = client.clone();
    let poll = tokio::spawn(async move { poller.poll_for_error(n::PollForErrorRequest::default()).await });
    let get = tokio::spawn(async move { getter.get_key_value(n::GetKeyValueRequest::default()).await });
    until("both are held", || served.status().held.len() == 2).await;

    served.stop().await;
    let ended = soon(poll).await.expect("no panic").expect_err("ended");
    assert_eq!((ended.code(), ended.message()), (Code::Cancelled, "agent is restarting"));
    let ended = soon(get).await.expect("no panic").expect_err("ended");
    assert_eq!(ended.code(), Code::Unavailable);

    let next = Served::start(of_place()).await;
    // The same client connects again by itself.
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    next.stop().await;
}

#[tokio::test]
async fn calls_under_way_may_end_after_a_stop() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let mut config = config(&[&node]);
    config.timing.drain = crate::support::DEADLINE;
    let served = Served::start(config).await;
    let mut client = served.client().await;
    let mut poller = client.clone();
    let barrier = tokio::spawn(async move { client.barrier(n::BarrierRequest::default()).await });
    let poll = tokio::spawn(async move { poller.poll_for_error(n::PollForErrorRequest::default()).await });
    until("both are held", || served.status().held.len() == 2).await;
    let stopping = tokio::spawn(served.stop());
    soon(poll).await.expect("no panic").expect_err("polls end at once");
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
    soon(stopping).await.expect("no panic");
}

#[tokio::test]
async fn a_missing_job_is_named_with_the_command_that_creates_it() {
    let cluster = Cluster::new();
    let job = cluster.change(|state| state.job.take());
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]).await;
    let mut client = served.client().await;
    let refused =
        soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect_err("missing");
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("`tripod job create train --tasks N`"), "{}", refused.message());

    cluster.change(|state| state.job = job);
    loop {
        match soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await {
            Ok(_) => break,
            Err(refused) => assert_eq!(refused.code(), Code::NotFound),
        }
    }
}

#[tokio::test]
async fn a_missing_job_is_created_if_its_size_is_known() {
    let cluster = Cluster::new();
    cluster.change(|state| state.job = None);
    let node = Node::start(&cluster, 1);
    let spec = JobSpec { tasks: 5, ..JobSpec::default() };
    let served = Served::start(AgentConfig { spec: Some(spec), ..config(&[&node]) }).await;
    let mut client = served.client().await;
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    let job = cluster.look(|state| state.job.clone()).expect("created");
    assert_eq!((job.name.as_str(), job.spec.map(|spec| spec.tasks)), ("train", Some(5)));
}
