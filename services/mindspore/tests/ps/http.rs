//! What operators ask, and every refusal: `http.txt` has all of it. `UPDATE_EXPECT=1` writes what is answered now.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tripod_state::ids::{LogIndex, Term};
use tripod_state::mindspore::limits::SWITCH_BODY_BYTES_MAX;
use tripod_state::mindspore::{self, Decision};
use tripod_state::{ApplyContext, Command, Envelope};

use crate::nodes::formed;
use crate::operator::Operator;
use crate::support::Cluster;

/// What was asked and answered, as it is kept.
#[derive(Default)]
struct Transcript(String);

impl Transcript {
    fn part(&mut self, title: &str) {
        writeln!(self.0, "# {title}\n").unwrap();
    }

    async fn get(&mut self, operator: &mut Operator, path: &str) {
        let answer = operator.get(path).await;
        self.note(&format!("GET {path}"), &answer);
    }

    async fn post(&mut self, operator: &mut Operator, path: &str, body: &str) {
        let answer = operator.post(path, body).await;
        self.note(&format!("POST {path} {body}"), &answer);
    }

    fn note(&mut self, asked: &str, (status, body): &(u16, String)) {
        writeln!(self.0, "{}\n----\n{status} {body}\n", asked.trim_end()).unwrap();
    }

    fn check(self) {
        let said = format!("{}\n", self.0.trim_end());
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ps/http.txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(file, said).unwrap();
        } else {
            let written = std::fs::read_to_string(&file).unwrap();
            assert_eq!(said, written, "UPDATE_EXPECT=1 writes what is answered now");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operators_are_answered_as_by_upstream_and_refusals_have_its_words() {
    let mut said = Transcript::default();
    said.part("nobody has registered");
    let empty = Cluster::of(1, 2).await;
    let mut operator = Operator::on(empty.dial());
    for path in ["/state", "/nodes", "/", "/scaleoutRollback", "/enableFLS", "/queryInstance"] {
        said.get(&mut operator, path).await;
    }
    said.post(&mut operator, "/newInstance", "{}").await;
    said.post(&mut operator, "/scaleout", r#"{"worker_num": 0, "server_num": 1}"#).await;

    let (cluster, mut worker, _servers) = formed(&["srv-0", "srv-1"]).await;
    let mut operator = Operator::on(cluster.dial());
    said.part("a cluster of one worker and two servers");
    for path in ["/state", "/nodes", "/scaleoutRollback"] {
        said.get(&mut operator, path).await;
    }
    said.part("what is no request to scale");
    for body in [
        "",
        "{",
        "{}",
        r#"{"worker_num": 0}"#,
        r#"{"worker_num": 1, "server_num": 1}"#,
        r#"{"worker_num": 0, "server_num": -1}"#,
        r#"{"worker_num": 0, "server_num": "1"}"#,
        r#"{"worker_num": 0, "server_num": 0}"#,
        r#"{"worker_num": 0, "server_num": 4294967295}"#,
    ] {
        said.post(&mut operator, "/scaleout", body).await;
    }
    for body in [
        r#"{"node_ids": []}"#,
        r#"{"node_ids": "srv-1"}"#,
        r#"{"ids": ["srv-1"]}"#,
        r#"{"node_ids": ["nobody"]}"#,
        r#"{"node_ids": ["wrk"]}"#,
        r#"{"node_ids": ["srv-0"]}"#,
    ] {
        said.post(&mut operator, "/scalein", body).await;
    }
    said.part("servers that do not answer");
    said.post(&mut operator, "/newInstance", r#"{"b": 1, "a": [0.5]}"#).await;
    said.get(&mut operator, "/state").await;
    said.get(&mut operator, "/disableFLS").await;
    let (_, _, body) = cluster.backend.state().cluster_switch(cluster.scope.job).unwrap();
    assert_eq!(body, r#"{"a":[0.5],"b":1}"#, "as upstream sends it on");
    cluster.tell().await;
    said.part("one server leaves");
    said.post(&mut operator, "/scalein", r#"{"node_ids": ["srv-1"]}"#).await;
    said.get(&mut operator, "/state").await;
    said.get(&mut operator, "/nodes").await;
    said.post(&mut operator, "/scalein", r#"{"node_ids": ["srv-1"]}"#).await;
    assert_eq!(worker.state().await, "CLUSTER_SCALE_IN");
    said.check();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_or_does_not_come_is_refused() {
    let cluster = Cluster::of(1, 1).await;
    let mut operator = Operator::on(cluster.dial());
    let (status, text) = operator.post("/newInstance", &"1".repeat(SWITCH_BODY_BYTES_MAX + 1)).await;
    assert!(status == 400 && text.contains("T6403 message-refused: a body may have 1048576 bytes"), "{text}");
    let mut slow = Operator::on(cluster.dial());
    slow.send(b"POST /newInstance HTTP/1.1\r\nhost: node\r\ncontent-length: 10\r\n\r\n{").await;
    let (status, text) = slow.hear().await.unwrap();
    assert!(status == 408 && text.contains("T2210"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_ends_its_connection_and_a_head_must_come_in_time() {
    let cluster = Cluster::of(1, 1).await;
    let mut slow = Operator::on(cluster.dial());
    slow.send(b"GET /state HTTP/1.1\r\n").await;
    let late = tokio::time::timeout(Duration::from_secs(11), slow.hear()).await.expect("within its time");
    assert!(late.is_none_or(|(status, _)| status == 408));
    let mut idle = Operator::on(cluster.dial());
    assert_eq!(idle.get("/state").await.0, 200);
    let ended = tokio::time::timeout(Duration::from_secs(11), idle.hear()).await;
    assert_eq!(ended.expect("within its time"), None, "between two requests likewise");
    let mut wrong = Operator::on(cluster.dial());
    wrong.send(b"GET \x01\x02\r\n\r\n").await;
    assert!(wrong.hear().await.is_none_or(|(status, _)| status == 400));
    let mut long = Operator::on(cluster.dial());
    long.send(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64 << 10)).as_bytes()).await;
    assert!(long.hear().await.is_none_or(|(status, _)| status == 414 || status == 431));
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_asks_while_nobody_leads_is_held_and_then_said_to_be_unavailable() {
    let (cluster, _worker, _servers) = formed(&["srv-0"]).await;
    let mut operator = Operator::on(cluster.dial());
    cluster.backend.depose();
    let (status, text) = operator.post("/scaleout", r#"{"worker_num": 0, "server_num": 1}"#).await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("no leader"), "{text}");
    cluster.backend.elect();
    assert_eq!(operator.get("/state").await.0, 200, "the connection is there still");
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_was_made_is_not_said_to_be_unavailable_because_nobody_leads_when_it_is_over() {
    let (cluster, _worker, _servers) = formed(&["srv-0"]).await;
    let mut operator = Operator::on(cluster.dial());
    let asked = tokio::spawn(async move { operator.post("/newInstance", "{}").await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut state = cluster.backend.state();
    let (switch, ..) = state.cluster_switch(cluster.scope.job).expect("it is made");
    let decision = Decision::ClusterSwitchEnded { switch };
    let command = Command::Mindspore(mindspore::Command::Lead { scope: cluster.scope, decision });
    let context = ApplyContext { index: LogIndex(1), term: Term(1), now_ms: state.now_ms() };
    state.apply(&context, Envelope { stamp: None, command }).reply.expect("nothing is against it");
    // Before anybody else looks: the end of it is seen when nobody leads any more.
    cluster.backend.depose();
    cluster.backend.replace(state);
    let (status, text) = asked.await.expect("no panic");
    assert_eq!((status, text.as_str()), (400, r#"{"error_message":"The new instance is timeout."}"#));
}
