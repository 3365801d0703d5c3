//! Connection A of a node of the parameter server, behind an agent whose node loses an answer.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tripod_mindspore_wire::ps::{Format, Parts};
use tripod_proto::mindspore::ps_core::MessageMeta;

use super::Setting;
use super::client::next;
use super::nodes::Script;
use crate::support::lines;

/// A request with a field in its meta that no release of today has.
fn asked(command: i32, request_id: u64, payload: &'static [u8]) -> Parts {
    let meta = MessageMeta { cmd: command, request_id, ..MessageMeta::default() };
    // Field 15, a number.
    let meta = [&meta.encode_to_vec()[..], &[0x78, 1]].concat();
    Parts { format: Format::Protobuf, meta: meta.into(), payload: Bytes::from_static(payload) }
}

/// Answers with the meta of the request, and the payload that came; but not the frame of this number.
fn played(lost: usize) -> Arc<Mutex<Vec<Parts>>> {
    let came = Arc::<Mutex<Vec<Parts>>>::default();
    let (seen, mut arrivals) = (Arc::clone(&came), lines().listen("node-1:8400"));
    tokio::spawn(async move {
        while let Some(mut agent) = arrivals.next().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut buffer = BytesMut::new();
                while let Some(parts) = next::<Parts>(&mut agent, &mut buffer).await {
                    let number = seen.lock().len();
                    seen.lock().push(parts.clone());
                    if number == lost {
                        return;
                    }
                    agent.write_all(&parts.encode()).await.expect("the agent listens");
                }
            });
        }
    });
    came
}

#[tokio::test(start_paused = true)]
async fn a_node_hears_each_answer_once_and_the_cluster_each_stamp() {
    for lost in 0..4 {
        let setting = Setting::new(Script::default()).await;
        setting.nodes.close_port(1);
        let came = played(lost);
        let mut node = setting.connect();
        let script =
            [asked(1, 0, b"register"), asked(2, 1, b"beat"), asked(12, 2, b"event"), asked(5, 3, b"finish")];
        for request in &script {
            node.send(&request.encode()).await;
            let answer = node.hear::<Parts>().await.expect("an answer");
            assert_eq!(answer.payload, request.payload);
            assert!(answer.meta.starts_with(&request.meta), "all that the client said is passed on");
        }
        let came = came.lock().clone();
        assert_eq!(came.len(), script.len() + 1, "one is sent twice");
        assert_eq!(came[lost], came[lost + 1]);
        let is_stamped = |parts: &Parts| parts.mark().expect("agents mark their frames").stamp.is_some();
        let stamped: Vec<_> = came.iter().map(is_stamped).collect();
        let mut expected = vec![true, false, true, true];
        expected.insert(lost, expected[lost]);
        assert_eq!(stamped, expected);
        setting.end().await;
    }
}
