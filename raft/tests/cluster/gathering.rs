//! Commands that begin together.

use std::future::poll_fn;
use std::task::Poll;

use tripod_raft::{Applied, BoxFuture, Handle, ProposeError, gathered};
use tripod_state::{Envelope, Scope};
use tripod_wait::within;

use crate::common::{Cluster, create_job, each_seed, put, write};

/// More than go in one message.
const COMMANDS: usize = 600;

type Proposed = BoxFuture<'static, Result<Applied, ProposeError>>;

fn proposals(node: &Handle, scope: Scope, first: usize) -> Vec<Proposed> {
    (first..first + COMMANDS).map(|number| proposal(node, scope, number, b"x")).collect()
}

fn proposal(node: &Handle, scope: Scope, number: usize, value: &[u8]) -> Proposed {
    let command = put(scope, &format!("key-{number}"), value);
    let (node, envelope) = (node.clone(), Envelope { stamp: None, command });
    Box::pin(async move { node.propose(envelope).await })
}

/// Begins them all in one scope, of which it is known that there are at least so many.
async fn begin(proposals: &mut [Proposed], known: usize) {
    poll_fn(|context| {
        gathered(known, &mut || {
            for proposal in proposals.iter_mut() {
                assert!(proposal.as_mut().poll(context).is_pending(), "a quorum takes a while");
            }
        });
        Poll::Ready(())
    })
    .await;
}

#[test]
fn commands_that_begin_together_are_appended_in_their_order_and_scopes_in_theirs() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let node = cluster.node(leader);
        let scope = create_job(node).await;
        for known in [0, COMMANDS] {
            let (mut first, mut second) = (proposals(node, scope, 0), proposals(node, scope, COMMANDS));
            begin(&mut first, known).await;
            begin(&mut second, 0).await;
            let all = first.into_iter().chain(second);
            let outcomes = within("all outcomes", futures::future::join_all(all)).await;
            let indexes: Vec<u64> = outcomes.into_iter().map(|outcome| outcome.unwrap().index.0).collect();
            assert!(indexes.is_sorted(), "{indexes:?}");
        }
        cluster.stop().await;
    });
}

#[test]
fn a_follower_passes_on_the_first_of_what_begins_together_first() {
    each_seed(0..5, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let follower = cluster.running().into_iter().find(|node| *node != leader).unwrap();
        let mut all = proposals(cluster.node(follower), scope, 0);
        begin(&mut all, 0).await;
        let outcomes = within("all outcomes", futures::future::join_all(all)).await;
        let mut indexes = outcomes.into_iter().map(|outcome| outcome.unwrap().index.0);
        let first = indexes.next().unwrap();
        assert!(indexes.all(|index| index > first), "it goes at once, and is the first");
        cluster.stop().await;
    });
}

/// More than goes in one message, with long values before short ones: the message with the latter is here first.
#[test]
fn what_a_follower_passes_on_enters_the_log_in_its_order_although_messages_overtake_each_other() {
    each_seed(0..3, async || {
        let cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let follower = cluster.running().into_iter().find(|node| *node != leader).unwrap();
        let node = cluster.node(follower);
        // Connected.
        write(node, scope, "first", b"x").await;
        let (long, short) = (vec![7; 200 << 10], [7; 10]);
        let value = |number| if number < 21 { &long[..] } else { &short[..] };
        let mut all: Vec<Proposed> =
            (0..100).map(|number| proposal(node, scope, number, value(number))).collect();
        begin(&mut all, 0).await;
        let outcomes = within("all outcomes", futures::future::join_all(all)).await;
        let indexes: Vec<u64> = outcomes.into_iter().map(|outcome| outcome.unwrap().index.0).collect();
        assert!(indexes.is_sorted(), "{indexes:?}");
        cluster.stop().await;
    });
}
