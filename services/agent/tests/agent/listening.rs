//! Where clients find the agent, which job it is for, and how it ends.

use std::time::Duration;

use tonic::{Code, Status};
use tripod_agent::{Agent, AgentConfig, Error, JobSpec, Listen};
use tripod_proto::metadata;
use tripod_proto::xla::coordination as n;

use crate::fake::{Cluster, Node};
use crate::support::{Client, LONG, Served, agent, config, soon, until};

#[tokio::test]
async fn a_second_agent_at_the_same_place_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = Listen::Unix(directory.path().join("agent.sock"));
    let of_place = |place: Listen| AgentConfig {
        listen: vec![place],
        cluster: vec!["127.0.0.1:1".into()],
        ..config(&[])
    };
    for place in [socket, Listen::Tcp("127.0.0.1:0".into())] {
        let first = Agent::open(of_place(place)).await.expect("opened");
        let place = first.places().remove(0);
        let refused = Agent::open(of_place(place.clone())).await.expect_err("in use");
        assert!(matches!(refused, Error::Listen(_)), "{refused:?}");
        let text = refused.to_string();
        assert!(text.starts_with(&format!("cannot listen on --listen {place}: ")), "{text}");
        assert!(text.contains("another agent"), "{text}");
    }
}

/// Whether a call was given back by the last GOAWAY of its connection: gRPC's own clients make it again
/// then, and tell nobody.
fn is_given_back(status: &Status) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(status);
    while let Some(now) = cause {
        if now.downcast_ref::<h2::Error>().is_some_and(|error| error.is_go_away() && error.is_remote()) {
            return true;
        }
        cause = now.source();
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_polls_and_gives_calls_back_and_the_next_agent_takes_the_place() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let place = config(&[]).listen;
    let of_place = || {
        let mut config = AgentConfig { listen: place.clone(), ..config(&[&node]) };
        // Nothing here has to be finished, so nothing takes as long as this.
        config.timing.drain = LONG * 10;
        config
    };
    let served = Served::start(of_place());
    let mut client = served.client().await;
    let mut getter = client.clone();
    let mut poller = client.clone();
    let poll = tokio::spawn(async move { poller.poll_for_error(n::PollForErrorRequest::default()).await });
    let get = tokio::spawn(async move { getter.get_key_value(n::GetKeyValueRequest::default()).await });
    until("both are held", || served.status().held.len() == 2).await;

    soon(served.stop()).await;
    let ended = soon(poll).await.expect("no panic").expect_err("ended");
    assert_eq!((ended.code(), ended.message()), (Code::Cancelled, "agent is restarting"));
    let ended = soon(get).await.expect("no panic").expect_err("ended");
    assert!(is_given_back(&ended), "{ended:?}");

    let next = Served::start(of_place());
    // The same client connects again by itself.
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_a_call_that_must_not_be_made_twice() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let mut config = config(&[&node]);
    config.timing.drain = LONG;
    let served = Served::start(config);
    let (mut client, mut other) = (served.client().await, served.client().await);
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    let get = tokio::spawn(async move { other.get_key_value(n::GetKeyValueRequest::default()).await });
    until("it is held", || served.status().held.len() == 1).await;
    let thaw = node.freeze();
    let insert =
        tokio::spawn(async move { client.insert_key_value(n::InsertKeyValueRequest::default()).await });
    until("it is under way", || served.status().held.len() == 2).await;
    let stopping = tokio::spawn(served.stop());
    // What may be made again was given back, so the time of new calls is over.
    let ended = soon(get).await.expect("no panic").expect_err("ended");
    assert!(is_given_back(&ended), "{ended:?}");
    drop(thaw);
    soon(insert).await.expect("no panic").expect("finished");
    soon(stopping).await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_finished_before_the_stop_is_told_so() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    node.behave(|conduct| conduct.swallow = Some("InsertKeyValue"));
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let insert =
        tokio::spawn(async move { client.insert_key_value(n::InsertKeyValueRequest::default()).await });
    until("it is executed", || cluster.executions("InsertKeyValue") == 1).await;
    soon(served.stop()).await;
    let told = soon(insert).await.expect("no panic").expect_err("no answer");
    assert_eq!(told.code(), Code::Unavailable);
    assert!(told.message().starts_with("outcome unknown: the agent is stopping"), "{}", told.message());
    assert_eq!(told.metadata().get(metadata::OUTAGE), None, "that word is for agents");
}

#[tokio::test(start_paused = true)]
async fn a_missing_job_is_named_with_the_command_that_creates_it() {
    let cluster = Cluster::new();
    let job = cluster.change(|state| state.job.take());
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let refused =
        soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect_err("missing");
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("`tripod job create train --tasks N`"), "{}", refused.message());

    cluster.change(|state| state.job = job);
    until_taken(&client, Code::NotFound).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_job_is_created_if_its_size_is_known() {
    let cluster = Cluster::new();
    cluster.change(|state| state.job = None);
    let node = Node::start(&cluster, 1);
    let spec = JobSpec { tasks: 5, ..JobSpec::default() };
    let served = Served::start(AgentConfig { spec: Some(spec), ..config(&[&node]) });
    let mut client = served.client().await;
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    let job = cluster.look(|state| state.job.clone()).expect("created");
    assert_eq!((job.name.as_str(), job.spec.map(|spec| spec.tasks)), ("train", Some(5)));
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_a_job_of_another_size_does_not_go_on() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let spec = JobSpec { tasks: 9, ..JobSpec::default() };
    let agent = agent(AgentConfig { spec: Some(spec), ..config(&[&node]) });
    let place = agent.places().remove(0);
    let refused = soon(agent.run(std::future::pending())).await.expect_err("another job");
    assert!(matches!(refused, Error::Serve { .. }), "{refused:?}");
    let text = refused.to_string();
    let said = format!("cannot serve {place}: job `train` has 2 tasks, not 9 as --tasks says");
    assert!(text.starts_with(&said), "{text}");
    for command in ["`tripod job show train`", "`tripod job delete train`"] {
        assert!(text.contains(command), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_are_told_of_another_size_that_is_learned_late_and_served_when_the_job_is_right() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let spec = JobSpec { tasks: 9, ..JobSpec::default() };
    let mut config = AgentConfig { spec: Some(spec.clone()), ..config(&[&node]) };
    config.timing.refuse = Duration::ZERO;
    let served = Served::start(config);
    let mut client = served.client().await;
    let insert = n::InsertKeyValueRequest::default;
    let refused = soon(client.insert_key_value(insert())).await.expect_err("another job");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("job `train` has 2 tasks, not 9"), "{}", refused.message());

    cluster.change(|state| state.job.as_mut().expect("a job").spec = Some(spec));
    until_taken(&client, Code::FailedPrecondition).await;
}

/// Waits until a write is taken, which is refused with this code before.
async fn until_taken(client: &Client, before: Code) {
    let taken = || {
        let mut client = client.clone();
        async move {
            match client.insert_key_value(n::InsertKeyValueRequest::default()).await {
                Ok(taken) => Some(taken),
                Err(refused) => {
                    assert_eq!(refused.code(), before);
                    None
                }
            }
        }
    };
    tripod_wait::until_async("a write to be taken", taken).await;
}
