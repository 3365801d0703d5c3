//! A service that begins another life.

use std::fmt::Debug;

use tonic::{Code, Status};
use tripod_coordination::MISMATCH_KEY;
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

use crate::client::{Agent, Cluster, Config, spec};
use crate::support::payloads::payload;
use crate::support::{LONG, SERVICE};

/// The job is deleted and another one of its name takes its place: what a restart of the service is here, where
/// a job's service never begins another life.
async fn replace(cluster: &Cluster) {
    let (name, spec) = ("job".to_owned(), spec(9));
    let service = ServiceIncarnation(SERVICE + 1);
    for command in [job::Command::Delete { name: name.clone() }, job::Command::Create { name, spec, service }]
    {
        let reply = cluster.served.gateway.submit(Command::Job(command)).await.expect("in memory");
        reply.expect("it works");
    }
}

/// The call was refused as one to another life of the service, and the agent knows what that means.
fn check<T: Debug>(what: &str, agent: &Agent, outcome: Result<T, Status>) {
    let told = agent.error().unwrap_or_else(|| panic!("{what}: the error callback did not run"));
    for status in [outcome.expect_err(what), told] {
        assert_eq!(status.code(), Code::Internal, "{what}: {status:?}");
        let text = format!("wrong service incarnation: requested {SERVICE}, currently {}", SERVICE + 1);
        assert_eq!(status.message(), text, "{what}");
        assert!(payload(&status, MISMATCH_KEY).is_some(), "{what}: {status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn service_incarnation_mismatch() {
    let mut cluster = Cluster::start(spec(9)).await;
    cluster.config = Config { polls: false, ..cluster.config };
    let agents: [Agent; 9] = cluster.connected().await;
    for agent in &agents {
        agent.insert(&format!("known/{}", agent.task()), "").await.expect("the service is the one it knows");
    }
    replace(&cluster).await;

    let [get, try_get, insert, delete, increment, directory, barrier, alive, watch] = agents;
    check("get", &get, get.get("key").await);
    check("try_get", &try_get, try_get.try_get("key").await);
    check("insert", &insert, insert.insert("key", "value").await);
    check("delete", &delete, delete.delete("key").await);
    check("increment", &increment, increment.increment("key", 1).await);
    check("directory", &directory, directory.directory("key").await);
    check("barrier", &barrier, barrier.wait_at_barrier("barrier", LONG, &[]).await);
    check("alive", &alive, alive.alive(&[0]).await);
    check("watch", &watch, watch.watch_tasks().await);
}
