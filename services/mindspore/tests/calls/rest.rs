//! What operators ask over HTTP, and servers answer.

use tokio::task::JoinSet;
use tripod_gateway::{FrontEnds, JobBinding};
use tripod_mindspore::PORT;
use tripod_port::{Listener, serve};

use crate::operator::Operator;
use crate::played::Manner;
use crate::support::Cluster;

const PLACE: &str = "node:8400";

/// An operator at the port of the cluster's job, which is served as long as the tasks are there.
fn operator(cluster: &Cluster) -> (Operator, JoinSet<()>) {
    let front_ends = FrontEnds::of(vec![Box::new(cluster.mindspore.clone())]);
    let served = front_ends.served(PORT, &JobBinding::Fixed(cluster.scope.job));
    let listener = Listener::within(cluster.lines.listen(PLACE));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { serve(listener, served, std::future::pending()).await.unwrap() });
    (Operator::on(cluster.lines.dial(PLACE).unwrap()), tasks)
}

#[tokio::test(start_paused = true)]
async fn what_servers_say_to_a_switch_and_to_a_question_is_told_to_the_operator_by_rank() {
    let mut cluster = Cluster::of(1, 2).await;
    let _nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    let (mut operator, _served) = operator(&cluster);
    let said = |message: &str, command: u32| {
        let of = |rank: u32| format!(r#""{rank}":{{"command":{command},"rank":{rank}}}"#);
        format!(r#"{{"message":"{message}","result":{{{},{}}}}}"#, of(0), of(1))
    };
    for (path, body, message, command) in [
        ("/newInstance", "{}", "Start update flPlan successful.", 19),
        ("/enableFLS", "", "start enabling FL-Server successful.", 21),
        ("/disableFLS", "", "start disabling FL-Server successful.", 22),
        ("/queryInstance", "", "Query Instance successful.", 20),
    ] {
        assert_eq!(operator.post(path, body).await, (200, said(message, command)), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_said_to_have() {
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    let (mut operator, _served) = operator(&cluster);
    nodes[2].behave(Manner::Silent);
    for (path, why) in [
        ("/newInstance", "The new instance is timeout."),
        ("/enableFLS", "The enable FLS is timeout."),
        ("/disableFLS", "The disable FLS is timeout."),
        ("/queryInstance", "The query instance is timeout."),
    ] {
        let told = operator.post(path, "{}").await;
        assert_eq!(told, (400, format!(r#"{{"error_message":"{why}"}}"#)), "{path}");
    }
    cluster.lines.close("10.0.0.1:3");
    let (status, why) = operator.get("/queryInstance").await;
    assert!(status == 400 && why.contains("T6404 node-untold"), "{why}");
}
