//! What an agent says with a frame of a node, and the one answer that it always has.

use bytes::BytesMut;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::ps::{Format, Frame, Parts};
use tripod_mindspore::wire::{Mark, Stamp, Word};
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand, RegisterMessage};

use crate::support::Cluster;

const LOOK: Mark = Mark { stamp: None };
/// Of a session that nobody has opened.
const STRANGE: Mark = Mark { stamp: Some(Stamp { session: 7, sequence: 1, acknowledged_below: 1 }) };

/// The answer to a marked frame.
async fn ask(agent: &mut DuplexStream, command: i32, payload: Vec<u8>, mark: Mark) -> Parts {
    let meta = MessageMeta { cmd: command, request_id: 1, rank_id: u32::MAX, ..Default::default() };
    let parts =
        Parts { format: Format::Protobuf, meta: meta.encode_to_vec().into(), payload: payload.into() };
    agent.write_all(&parts.marked(mark).unwrap().encode()).await.unwrap();
    let mut buffer = BytesMut::new();
    loop {
        if let Some(answer) = Parts::take(&mut buffer).unwrap() {
            return answer;
        }
        assert_ne!(agent.read_buf(&mut buffer).await.unwrap(), 0, "a marked frame has an answer");
    }
}

fn registration() -> Vec<u8> {
    let (node_id, ip) = ("wrk-0".into(), "10.0.0.1".into());
    RegisterMessage { node_id, ip, port: 4000, role: 1, ..Default::default() }.encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_answered_as_its_node_and_told_where_there_is_no_answer() {
    let cluster = Cluster::of(1, 1).await;
    let mut agent = cluster.dial();
    let strange = ask(&mut agent, NodeCommand::Register.into(), registration(), STRANGE).await;
    assert_eq!(strange.word(), Some(Word::SessionGone));
    assert!(cluster.node("wrk-0").is_none(), "it was not executed");

    let registered = ask(&mut agent, NodeCommand::Register.into(), registration(), LOOK).await;
    assert_eq!((registered.word(), registered.mark()), (None, None), "a mark is not said back");
    let Frame { meta, .. } = registered.try_into().unwrap();
    assert_eq!((meta.cmd, meta.request_id), (NodeCommand::Register.into(), 1));
    assert!(cluster.node("wrk-0").is_some());

    let refused = ask(&mut agent, NodeCommand::Finish.into(), b"nobody".to_vec(), LOOK).await;
    assert_eq!(refused.word(), Some(Word::Silent), "a node hears nothing of a report that is refused");
    let unreadable = ask(&mut agent, NodeCommand::SendEvent.into(), vec![0xff, 0xff], LOOK).await;
    assert_eq!(unreadable.word(), Some(Word::Refused));
    assert_eq!(ask(&mut agent, 99, Vec::new(), LOOK).await.word(), Some(Word::Refused));
}
