//! Heartbeats that are told in a word, as ones of a set that the cluster keeps.

use std::sync::Arc;
use std::time::Duration;

use crate::beats::{LONG, batches, heartbeat};
use crate::fake::{BeatConduct, Cluster, Node};
use crate::support::{Client, Served, soon};

/// Two clients beat until the cluster hears of both in a word.
async fn until_in_a_word(cluster: &Arc<Cluster>, first: &mut Client, second: &mut Client) {
    let told = || cluster.look(|state| state.words.iter().filter(|made| **made == 2).count());
    let before = told();
    soon(async {
        while told() == before {
            both(first, second).await;
        }
    })
    .await;
}

async fn both(first: &mut Client, second: &mut Client) {
    let (one, two) = tokio::join!(heartbeat(first, 0, LONG), heartbeat(second, 1, LONG));
    assert_eq!((one.expect("alive"), two.expect("alive")), (7, 7));
}

fn words(cluster: &Cluster) -> Vec<u32> {
    cluster.look(|state| state.words.clone())
}

fn with_sets(cluster: &Arc<Cluster>, number: usize) -> Node {
    let node = Node::start(cluster, number);
    node.behave(|conduct| conduct.has_sets = true);
    node
}

#[tokio::test(start_paused = true)]
async fn beats_that_are_as_before_are_told_in_a_word_and_of_those_that_were_made_only() {
    let cluster = Cluster::new();
    let node = with_sets(&cluster, 1);
    let served = Served::of(&[&node]);
    let (mut first, mut second) = (served.client().await, served.client().await);
    until_in_a_word(&cluster, &mut first, &mut second).await;
    let (by_themselves, in_words) = (batches(&cluster), words(&cluster).len());
    assert_eq!(heartbeat(&mut second, 1, LONG).await.expect("alive"), 7);
    assert_eq!(words(&cluster)[in_words..], [1], "one was made");
    assert_eq!(batches(&cluster), by_themselves);
    let status = served.status();
    assert_eq!(u64::from(words(&cluster).iter().sum::<u32>()), status.beats_in_words);
    assert_eq!(status.beats_leased, 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_does_not_keep_the_set_is_told_all_at_once() {
    let cluster = Cluster::new();
    let node = with_sets(&cluster, 1);
    let served = Served::of(&[&node]);
    let (mut first, mut second) = (served.client().await, served.client().await);
    until_in_a_word(&cluster, &mut first, &mut second).await;
    let (by_themselves, in_words) = (batches(&cluster).len(), words(&cluster).len());
    cluster.change(|state| state.sets.clear());
    both(&mut first, &mut second).await;
    let told: usize = batches(&cluster)[by_themselves..].iter().map(Vec::len).sum();
    assert_eq!(told + words(&cluster)[in_words..].iter().sum::<u32>() as usize, 2, "each is told once");
    assert!(told > 0);
    assert_eq!(served.status().beats_leased, 0, "nobody waited for another interval");
    until_in_a_word(&cluster, &mut first, &mut second).await;
}

#[tokio::test(start_paused = true)]
async fn an_older_node_is_told_all_and_a_newer_one_in_a_word_again() {
    let cluster = Cluster::new();
    let (mut newer, older) = (with_sets(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&newer, &older]);
    let (mut first, mut second) = (served.client().await, served.client().await);
    until_in_a_word(&cluster, &mut first, &mut second).await;
    newer.kill();
    let (by_themselves, in_words) = (batches(&cluster).len(), words(&cluster).len());
    for _ in 0..3 {
        both(&mut first, &mut second).await;
    }
    let told: usize = batches(&cluster)[by_themselves..].iter().map(Vec::len).sum();
    assert_eq!((told, words(&cluster).len()), (6, in_words));
    older.behave(|conduct| conduct.has_sets = true);
    // What came to nothing is not offered again for a minute.
    tokio::time::sleep(Duration::from_secs(61)).await;
    until_in_a_word(&cluster, &mut first, &mut second).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_refused_is_in_no_set_any_more() {
    let cluster = Cluster::new();
    let node = with_sets(&cluster, 1);
    let served = Served::of(&[&node]);
    let (mut first, mut second) = (served.client().await, served.client().await);
    until_in_a_word(&cluster, &mut first, &mut second).await;
    node.behave(|conduct| conduct.beats = BeatConduct::Refuse("in error"));
    cluster.change(|state| state.sets.clear());
    heartbeat(&mut first, 0, LONG).await.expect_err("refused");
    node.behave(|conduct| conduct.beats = BeatConduct::Answer);
    heartbeat(&mut second, 1, LONG).await.expect("alive");
    let of_one = cluster.until(|state| state.sets.values().any(|(_, count)| *count == 1));
    soon(of_one).await;
    heartbeat(&mut first, 0, LONG).await.expect("alive again");
    assert_eq!(batches(&cluster).last(), Some(&vec![0]), "it is told by itself");
}
