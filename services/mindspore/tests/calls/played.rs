//! Nodes as they hear their scheduler: they note what they are told, and say it back.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinSet;
use tripod_lines::Lines;
use tripod_mindspore::wire::Frame as _;
use tripod_mindspore::wire::ps::{Format, Frame};
use tripod_proto::mindspore::ps_core::{
    EventRespMessage, NodeCommand, ScaleInMessage, ScaleOutMessage, SendMetadataMessage,
};

/// What a node does with what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It says it back, but for what it is told of the others when it leaves.
    Answers,
    /// It reads, and says nothing.
    Silent,
    /// It ends the connection instead.
    HangsUp,
    /// It says something else first, and what it was asked twice.
    Babbles,
    /// It says this instead.
    Says(&'static [u8]),
}

/// One node.
pub(crate) struct Played {
    heard: Arc<Mutex<Vec<String>>>,
    manner: Arc<Mutex<Manner>>,
    /// Its program, which ends with this.
    _program: JoinSet<()>,
}

impl Played {
    /// One that listens there.
    pub(crate) fn at(place: &str, lines: &Lines) -> Self {
        let (heard, manner) = (Arc::default(), Arc::new(Mutex::new(Manner::Answers)));
        let mut arrivals = lines.listen(place);
        let mut program = JoinSet::new();
        let (noted, does) = (Arc::clone(&heard), Arc::clone(&manner));
        program.spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(line) = arrivals.next().await {
                connections.spawn(converse(line, Arc::clone(&noted), Arc::clone(&does)));
            }
        });
        Self { heard, manner, _program: program }
    }

    /// What it was told since it was asked last.
    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock())
    }

    pub(crate) fn heard_so_far(&self) -> usize {
        self.heard.lock().len()
    }

    pub(crate) fn behave(&self, manner: Manner) {
        *self.manner.lock() = manner;
    }
}

async fn converse(mut line: DuplexStream, heard: Arc<Mutex<Vec<String>>>, manner: Arc<Mutex<Manner>>) {
    let mut buffer = BytesMut::new();
    let mut leaves = false;
    loop {
        while let Some(frame) = Frame::take(&mut buffer).unwrap() {
            heard.lock().push(words(&frame));
            let command = NodeCommand::try_from(frame.meta.cmd).unwrap();
            if command == NodeCommand::ScaleIn {
                leaves = ScaleInMessage::decode(&frame.payload[..]).unwrap().is_node_scale_in;
            }
            let manner = *manner.lock();
            let says_nothing = leaves && command == NodeCommand::SendMetadata || manner == Manner::Silent;
            if manner == Manner::HangsUp {
                return;
            }
            if let Manner::Says(bytes) = manner {
                // A connection that is ended takes no more of it.
                let _ = line.write_all(bytes).await;
                continue;
            }
            if says_nothing {
                continue;
            }
            let mut said = vec![answer(&frame)];
            if manner == Manner::Babbles {
                let mut other = answer(&frame);
                other.meta.request_id += 1_000;
                said = vec![other, answer(&frame), answer(&frame)];
            }
            for frame in said {
                if line.write_all(&frame.encode()).await.is_err() {
                    return;
                }
            }
        }
        if line.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// The same back; a server's program answers with something of its own.
fn answer(frame: &Frame) -> Frame {
    let payload = match frame.meta.user_cmd {
        0 => frame.payload.clone(),
        command => Bytes::from(format!("{{\"rank\": {}, \"command\": {command}}}", frame.meta.rank_id)),
    };
    Frame { format: Format::Raw, meta: frame.meta.clone(), payload }
}

/// What a node is told, for people.
fn words(frame: &Frame) -> String {
    fn read<M: Message + Default>(frame: &Frame) -> M {
        M::decode(&frame.payload[..]).unwrap()
    }
    match NodeCommand::try_from(frame.meta.cmd).unwrap() {
        NodeCommand::SendMetadata => {
            let told: SendMetadataMessage = read(frame);
            let rank = i32::try_from(told.rank_id).unwrap_or(-1);
            let nodes: Vec<&str> = told.servers_meta.iter().map(|node| node.node_id.as_str()).collect();
            let state = told.cluster_state().as_str_name();
            let of = format!("{}+{}", told.worker_num, told.server_num);
            format!("metadata {state} rank={rank} {of}: {}", nodes.join(" "))
        }
        NodeCommand::ScaleOut => {
            let told: ScaleOutMessage = read(frame);
            format!("scale-out {}+{}", told.worker_num, told.server_num)
        }
        NodeCommand::ScaleIn => {
            let told: ScaleInMessage = read(frame);
            let leaves = if told.is_node_scale_in { " leave" } else { "" };
            format!("scale-in {}+{}{leaves}", told.worker_num, told.server_num)
        }
        NodeCommand::SendEvent => format!("event {}", read::<EventRespMessage>(frame).event),
        NodeCommand::SendData => {
            let body = String::from_utf8(frame.payload.to_vec()).unwrap();
            format!("data {} rank={} {body}", frame.meta.user_cmd, frame.meta.rank_id)
        }
        command => {
            assert!(frame.payload.is_empty(), "{command:?}");
            command.as_str_name().to_lowercase()
        }
    }
}
