//! The feature level of clusters whose nodes run builds of one level and of two.

use std::time::Duration;

use tripod_raft::{Handle, LevelError, LevelRequest, Levels, MemberLevel, Options, ProposeError};
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::level::{FIRST, NEWEST, Refusal};
use tripod_state::{Command, Envelope, Fault, Scope, State, job, ray, session};
use tripod_wait::{until, until_async, within};

use crate::common::{Cluster, Ground, create_job, each_seed, propose, write};

/// How long the leader of a new cluster may wait for a node that does not say what it supports.
const SILENT_LIMIT: Duration = Duration::from_millis(2_500);

/// A cluster of three, each of which is started as a build that supports levels up to the one given.
async fn start(level_max: FeatureLevel) -> Cluster {
    start_with(level_max, |_| {}).await
}

async fn start_with(level_max: FeatureLevel, change: impl Fn(&mut Options)) -> Cluster {
    let mut cluster = Cluster::prepared(Ground::simulated(), 3, change);
    for node in 1..=3 {
        cluster.start_as(node, level_max).await.unwrap();
    }
    cluster
}

/// Stops a node and starts it as another build.
async fn restart_as(cluster: &mut Cluster, node: u64, level_max: FeatureLevel) {
    cluster.stop_node(node).await;
    cluster.start_as(node, level_max).await.unwrap();
    cluster.leader().await;
}

fn note(text: &str) -> Command {
    Command::Job(job::Command::Note { name: "job".into(), note: text.into() })
}

fn level(cluster: &Cluster, node: u64) -> FeatureLevel {
    cluster.node(node).read(State::level)
}

async fn level_everywhere(cluster: &Cluster, wanted: FeatureLevel) {
    until(format_args!("level {wanted} on all nodes"), || {
        cluster.running().into_iter().all(|node| level(cluster, node) == wanted).then_some(())
    })
    .await;
}

/// Proposes a command that is to be refused, and tells how.
async fn refused(node: &Handle, command: &Command) -> String {
    until_async("a leader that refuses", || async {
        match node.propose(Envelope { stamp: None, command: command.clone() }).await {
            Err(ProposeError::Level(text)) => Some(text),
            Err(ProposeError::NoLeader(_)) => None,
            other => panic!("{other:?}"),
        }
    })
    .await
}

/// Asks whoever leads.
async fn ask(cluster: &Cluster, request: &LevelRequest) -> Result<Levels, LevelError> {
    until_async("an answer of whoever leads", || async {
        let leader = cluster.leader().await;
        match cluster.node(leader).levels(request.clone()).await {
            Err(LevelError::NotLeader { .. } | LevelError::Unavailable(_) | LevelError::Unknown(_)) => None,
            answer => Some(answer),
        }
    })
    .await
}

fn pin(level: u32) -> LevelRequest {
    LevelRequest::Pin { level: FeatureLevel(level), by: "test".into() }
}

/// Waits until a node says so of itself.
async fn until_it_is(cluster: &Cluster, node: u64, what: &str, is_so: impl Fn(&MemberLevel) -> bool) {
    until_async(format_args!("node {node} that is {what}"), || async {
        let levels = cluster.node(node).levels(LevelRequest::Show).await.unwrap();
        levels.members.iter().any(|one| one.node == NodeId(node) && is_so(one)).then_some(())
    })
    .await;
}

/// Waits until a build of the first level can be started on the data of a node.
async fn back_to_the_first(cluster: &Cluster, node: u64) {
    until_it_is(cluster, node, "ready to go back", |one| one.back_to == Some(FIRST)).await;
}

/// Waits until a node's disk says which level it needs.
async fn marked(cluster: &Cluster, node: u64, level: FeatureLevel) {
    until(format_args!("a disk of node {node} that says what it needs"), || {
        (cluster.disk(node).marked() == level).then_some(())
    })
    .await;
}

/// What is done at the first level in a new cluster could be done to others: sessions can be guessed then.
#[test]
fn the_first_command_of_a_new_cluster_is_applied_at_the_newest_level() {
    each_seed(0..10, async || {
        let cluster = start(NEWEST).await;
        let open = Command::Session(session::Command::Open);
        let attempts = [1, 2, 3].map(|node| propose(cluster.node(node), &open));
        for applied in futures::future::join_all(attempts).await {
            assert_eq!(applied.reply, Err(Fault::SessionExpired), "it was opened at an earlier level");
        }
        assert_eq!(level(&cluster, cluster.leader().await), NEWEST);
    });
}

#[test]
fn a_new_cluster_serves_without_the_node_that_does_not_say_what_it_supports() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::prepared(Ground::simulated(), 3, |_| {});
        for node in [1, 2] {
            cluster.start_as(node, NEWEST).await.unwrap();
        }
        let leader = cluster.leader().await;
        let job = tokio::time::timeout(SILENT_LIMIT, create_job(cluster.node(leader))).await;
        job.expect("it is made without node 3");
        assert_eq!(level(&cluster, leader), FIRST);
        cluster.start_as(3, NEWEST).await.unwrap();
        level_everywhere(&cluster, NEWEST).await;
    });
}

#[test]
fn the_level_rises_when_the_last_node_supports_it_and_a_command_waits_for_that() {
    each_seed(0..5, async || {
        let mut cluster = start(FIRST).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        for node in [1, 2] {
            restart_as(&mut cluster, node, NEWEST).await;
            write(cluster.node(node), scope, &format!("key-{node}"), b"value").await;
            // Whoever leads, of whichever build, nothing that node 3 could not read gets into the log.
            let told = refused(cluster.node(node), &note("mine")).await;
            assert!(told.starts_with("T4401 level-low: "), "{told}");
            assert!(told.contains("level 2") && told.contains("at 1"), "{told}");
        }
        let levels = cluster.node(1).levels(LevelRequest::Show).await.unwrap();
        assert_eq!(levels.level, FIRST);
        let supported: Vec<_> = levels.members.iter().map(|one| one.supports.unwrap().1.0).collect();
        assert_eq!(supported, [NEWEST.0, NEWEST.0, 1]);
        restart_as(&mut cluster, 3, NEWEST).await;
        level_everywhere(&cluster, NEWEST).await;
        let follower = cluster.follower().await;
        propose(cluster.node(follower), &note("mine")).await.reply.unwrap();
        for node in 1..=3 {
            marked(&cluster, node, NEWEST).await;
        }
        cluster.stop().await;
    });
}

#[test]
fn a_build_of_the_level_before_is_told_and_stops() {
    each_seed(0..5, async || {
        let mut cluster = start(NEWEST).await;
        let leader = cluster.leader().await;
        create_job(cluster.node(leader)).await;
        level_everywhere(&cluster, NEWEST).await;
        let follower = cluster.follower().await;
        marked(&cluster, follower, NEWEST).await;
        cluster.stop_node(follower).await;
        let refusal = cluster.start_as(follower, FIRST).await.unwrap_err().to_string();
        assert!(refusal.starts_with("T4102 identity-format: "), "{refusal}");

        // With nothing that could warn it: it has lost its data.
        cluster.disk(follower).wipe();
        cluster.start_as(follower, FIRST).await.unwrap();
        let told = within("word that the build is too old", async {
            let node = cluster.node(follower);
            tokio::select! { told = node.removed() => told, told = node.failed() => told }
        });
        let told = told.await;
        assert!(told.starts_with("T4402 level-old: ") || told.starts_with("T3114 apply-unknown: "), "{told}");
        let (newest, first) = (format!("level {NEWEST}"), format!("level {FIRST}"));
        assert!(told.contains("supports") && told.contains(&newest) || told.contains(&first), "{told}");
        cluster.stop().await;
    });
}

#[test]
fn a_pinned_cluster_goes_back_node_by_node_and_the_pin_outlives_that() {
    each_seed(0..5, async || {
        let mut cluster = start(NEWEST).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        level_everywhere(&cluster, NEWEST).await;
        propose(cluster.node(leader), &note("mine")).await.reply.unwrap();
        let held = ask(&cluster, &pin(1)).await.unwrap_err();
        let LevelError::Refused(Refusal::Notes { count: 1, .. }) = held else { panic!("{held:?}") };
        propose(cluster.node(leader), &note("")).await.reply.unwrap();
        ask(&cluster, &pin(1)).await.unwrap();
        level_everywhere(&cluster, FIRST).await;
        // The leader tells why, once it has asked: it may be new.
        until_async("a refusal that tells why", || async {
            refused(cluster.node(leader), &note("mine")).await.contains("pinned at 1").then_some(())
        })
        .await;

        for node in 1..=3 {
            back_to_the_first(&cluster, node).await;
            assert_eq!(cluster.disk(node).marked(), FIRST, "the disk says so, too");
            restart_as(&mut cluster, node, FIRST).await;
            write(cluster.node(node), scope, &format!("key-{node}"), b"value").await;
        }
        for node in 1..=3 {
            restart_as(&mut cluster, node, NEWEST).await;
        }
        let levels = ask(&cluster, &LevelRequest::Show).await.unwrap();
        assert!(levels.members.iter().all(|one| one.pinned == Some(FIRST)), "{levels:?}");
        assert!(refused(cluster.node(1), &note("mine")).await.starts_with("T4401 level-low: "));
        ask(&cluster, &LevelRequest::Unpin { by: "test".into() }).await.unwrap();
        level_everywhere(&cluster, NEWEST).await;
        let leader = cluster.leader().await;
        propose(cluster.node(leader), &note("mine")).await.reply.unwrap();
        cluster.stop().await;
    });
}

async fn holds_the_pin(cluster: &Cluster, node: u64) {
    until_it_is(cluster, node, "pinned", |one| one.pinned == Some(FIRST)).await;
}

/// The others go one after the other; the pin does not go with them.
#[test]
fn a_node_that_was_given_a_snapshot_holds_the_pin_as_those_who_saw_it_in_the_log() {
    each_seed(0..5, async || {
        let mut cluster = start_with(NEWEST, |options| {
            options.snapshot_every_entries = 30;
            options.keep_entries = 5;
        })
        .await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        level_everywhere(&cluster, NEWEST).await;
        ask(&cluster, &pin(1)).await.unwrap();
        for number in 0..100 {
            write(cluster.node(leader), scope, &format!("key-{number}"), b"value").await;
        }
        for wiped in 1..=3 {
            cluster.stop_node(wiped).await;
            cluster.disk(wiped).wipe();
            cluster.start_as(wiped, NEWEST).await.unwrap();
            cluster.leader().await;
            holds_the_pin(&cluster, wiped).await;
        }
        assert_eq!(level(&cluster, 1), FIRST);
        // Also after a start that finds nothing but the snapshot that it was given.
        restart_as(&mut cluster, 2, NEWEST).await;
        holds_the_pin(&cluster, 2).await;
        ask(&cluster, &LevelRequest::Unpin { by: "test".into() }).await.unwrap();
        level_everywhere(&cluster, NEWEST).await;
        cluster.stop().await;
    });
}

/// The level before that of schedulers.
const SECOND: FeatureLevel = FeatureLevel(2);

fn register_store(scope: Scope) -> Command {
    let request = ray::Request::RegisterStore { address: "10.0.0.1:7750".into() };
    Command::Ray(ray::Command::Ask { scope, origin: ray::Origin::default(), request })
}

/// Level 2 goes on as it was until the last node supports level 3, and can be had again once no scheduler is left.
#[test]
fn a_cluster_of_level_2_gets_schedulers_with_its_last_node_and_goes_back_without_them() {
    each_seed(0..5, async || {
        let mut cluster = start(SECOND).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        level_everywhere(&cluster, SECOND).await;
        propose(cluster.node(leader), &note("mine")).await.reply.unwrap();
        for node in [1, 2] {
            restart_as(&mut cluster, node, NEWEST).await;
            write(cluster.node(node), scope, &format!("key-{node}"), b"value").await;
            propose(cluster.node(node), &note(&format!("of {node}"))).await.reply.unwrap();
            let told = refused(cluster.node(node), &register_store(scope)).await;
            assert!(told.starts_with("T4401 level-low: ray/register-store "), "{told}");
            assert!(told.contains("level 3") && told.contains("at 2"), "{told}");
        }
        restart_as(&mut cluster, 3, NEWEST).await;
        level_everywhere(&cluster, NEWEST).await;
        let follower = cluster.follower().await;
        propose(cluster.node(follower), &register_store(scope)).await.reply.unwrap();

        // A build of level 2 is told, by its own directory.
        marked(&cluster, follower, NEWEST).await;
        cluster.stop_node(follower).await;
        let refusal = cluster.start_as(follower, SECOND).await.unwrap_err().to_string();
        assert!(refusal.starts_with("T4403 level-data: "), "{refusal}");
        cluster.start_as(follower, NEWEST).await.unwrap();

        let held = ask(&cluster, &pin(2)).await.unwrap_err();
        let LevelError::Refused(Refusal::Schedulers { count: 1, .. }) = held else { panic!("{held:?}") };
        let leader = cluster.leader().await;
        let delete = Command::Job(job::Command::Delete { name: "job".into() });
        propose(cluster.node(leader), &delete).await.reply.unwrap();
        let scope = create_job(cluster.node(leader)).await;
        ask(&cluster, &pin(2)).await.unwrap();
        level_everywhere(&cluster, SECOND).await;
        for node in 1..=3 {
            until_it_is(&cluster, node, "ready to go back", |one| one.back_to == Some(SECOND)).await;
            restart_as(&mut cluster, node, SECOND).await;
            write(cluster.node(node), scope, &format!("key-{node}"), b"value").await;
        }
        assert!(refused(cluster.node(1), &register_store(scope)).await.starts_with("T4401 level-low: "));
        let leader = cluster.leader().await;
        propose(cluster.node(leader), &note("mine")).await.reply.unwrap();
        cluster.stop().await;
    });
}

/// The node that is away might come back as any build.
#[test]
fn the_level_stays_while_a_member_does_not_say_what_it_supports() {
    each_seed(0..5, async || {
        let mut cluster = start(FIRST).await;
        cluster.leader().await;
        for node in [1, 2] {
            restart_as(&mut cluster, node, NEWEST).await;
        }
        cluster.stop_node(3).await;
        let leader = cluster.leader().await;
        create_job(cluster.node(leader)).await;
        let told = refused(cluster.node(leader), &note("mine")).await;
        assert!(told.contains("at 1"), "{told}");
        let refusal = ask(&cluster, &pin(1)).await.unwrap_err();
        assert!(matches!(&refusal, LevelError::Unsupported(why) if why.contains("node 3")), "{refusal:?}");
        cluster.start_as(3, NEWEST).await.unwrap();
        level_everywhere(&cluster, NEWEST).await;
        cluster.stop().await;
    });
}
