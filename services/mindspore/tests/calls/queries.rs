//! What servers are asked that changes nothing.

use bytes::Bytes;
use tripod_mindspore::Unanswered;
use tripod_state::Scope;
use tripod_state::ids::JobId;

use crate::played::Manner;
use crate::support::Cluster;

#[tokio::test(start_paused = true)]
async fn all_servers_are_asked_and_their_answers_are_told_by_rank() {
    let mut cluster = Cluster::of(1, 2).await;
    let asked = async |cluster: &Cluster| cluster.mindspore.query_instance(cluster.scope).await;
    assert!(matches!(asked(&cluster).await, Err(Unanswered::Nobody)));
    let nodes = cluster.start_all(&["s0", "w0", "s1"]).await;
    let answers = asked(&cluster).await.unwrap();
    let answer = |rank: u32| (rank, Bytes::from(format!("{{\"rank\": {rank}, \"command\": 20}}")));
    assert_eq!(answers, [answer(0), answer(1)]);
    let heard: Vec<usize> = nodes.iter().map(|node| node.heard().len()).collect();
    assert_eq!(heard, [1, 0, 1]);

    nodes[2].behave(Manner::Silent);
    let late = asked(&cluster).await.unwrap_err();
    assert!(matches!(late, Unanswered::Late { seconds: 3 }), "{late}");
    cluster.lines.close("10.0.0.1:3");
    let gone = asked(&cluster).await.unwrap_err();
    assert!(matches!(gone, Unanswered::Failed { rank: 1, .. }), "{gone}");
    let nowhere = Scope { job: JobId(99), service: None };
    let unknown = cluster.mindspore.query_instance(nowhere).await.unwrap_err();
    assert!(matches!(unknown, Unanswered::Fault(_)), "{unknown}");
}
