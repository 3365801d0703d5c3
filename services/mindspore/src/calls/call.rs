//! What a node is told, as bytes.

use bytes::Bytes;
use prost::Message;
use tripod_proto::mindspore::ps_core::{
    EventRespMessage, MessageMeta, NodeCommand, NodeRole, ScaleInMessage, ScaleOutMessage,
};
use tripod_state::mindspore::cluster::{Scaling, Switch};

use crate::wire::ps::{self, Format};

/// One request, without the number that it has on its connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(super) command: NodeCommand,
    /// What a server's program is asked, and the rank that it has.
    query: Option<(Query, u32)>,
    /// The payload: what many nodes are told alike, and what only this one is.
    pub(super) shared: Bytes,
    pub(super) own: Bytes,
    /// A node that leaves says nothing to what it is told of the others.
    pub(crate) is_answered: bool,
}

/// What the program of a server is asked, or told; the numbers of federated learning's own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Query {
    NewInstance = 19,
    /// What it runs at.
    Instance = 20,
    EnableFls = 21,
    DisableFls = 22,
}

impl From<Switch> for Query {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::NewInstance => Self::NewInstance,
            Switch::EnableFls => Self::EnableFls,
            Switch::DisableFls => Self::DisableFls,
        }
    }
}

impl Call {
    fn of(command: NodeCommand, message: &impl Message) -> Self {
        Self {
            command,
            query: None,
            shared: Bytes::new(),
            own: message.encode_to_vec().into(),
            is_answered: true,
        }
    }

    /// Who belongs to the cluster: `shared` is the same for all, and comes first.
    pub(super) fn metadata(shared: Bytes, own: &impl Message, is_answered: bool) -> Self {
        Self { shared, is_answered, ..Self::of(NodeCommand::SendMetadata, own) }
    }

    /// That the cluster scales, and how many it will have.
    pub(super) fn scale(scaling: Scaling, (workers, servers): (u32, u32), leaving: bool) -> Self {
        let (worker_num, server_num) = (workers, servers);
        match scaling {
            Scaling::Out => Self::of(NodeCommand::ScaleOut, &ScaleOutMessage { worker_num, server_num }),
            Scaling::In => {
                let message = ScaleInMessage { worker_num, server_num, is_node_scale_in: leaving };
                Self::of(NodeCommand::ScaleIn, &message)
            }
        }
    }

    /// That all are done.
    pub(super) fn scale_done(scaling: Scaling) -> Self {
        let command = match scaling {
            Scaling::Out => NodeCommand::ScaleOutDone,
            Scaling::In => NodeCommand::ScaleInDone,
        };
        Self::of(command, &())
    }

    pub(super) fn event(event: u32) -> Self {
        Self::of(NodeCommand::SendEvent, &EventRespMessage { event })
    }

    /// That all have finished.
    pub(super) fn finish() -> Self {
        Self::of(NodeCommand::Finish, &())
    }

    /// Something for the program of the server of that rank.
    pub(crate) fn query(query: Query, rank: u32, body: Bytes) -> Self {
        Self { query: Some((query, rank)), shared: body, ..Self::of(NodeCommand::SendData, &()) }
    }

    /// What stands before the payload.
    pub(super) fn front(&self, request_id: u64) -> Bytes {
        let mut meta = MessageMeta { cmd: self.command.into(), request_id, ..MessageMeta::default() };
        let mut format = Format::Protobuf;
        if let Some((query, rank)) = self.query {
            format = Format::Raw;
            meta.role = NodeRole::Server.into();
            meta.rank_id = rank;
            meta.user_cmd = query as i32;
        }
        ps::front(format, &meta, self.shared.len() + self.own.len()).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(call: &Call, request_id: u64) -> Vec<u8> {
        [&call.front(request_id)[..], &call.shared, &call.own].concat()
    }

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// As they were on the wire between schedulers and real nodes.
    #[test]
    fn what_a_node_is_told_is_byte_for_byte_what_schedulers_say() {
        for (call, request_id, told) in [
            (Call::event(7), 3, "01000000040000000600000000000000080c10030807"),
            (Call::scale(Scaling::Out, (1, 2), false), 2, "010000000400000008000000000000000808100208011002"),
            (Call::scale(Scaling::In, (1, 1), false), 3, "010000000400000008000000000000000809100308011001"),
            (Call::scale_done(Scaling::Out), 2, "01000000040000000400000000000000080a1002"),
            (Call::finish(), 3, "0100000004000000040000000000000008051003"),
        ] {
            assert_eq!(bytes(&call, request_id), hex(told), "{call:?}");
        }
    }

    #[test]
    fn what_a_servers_program_is_told_has_its_number_and_the_servers_rank() {
        let call = Call::query(Switch::NewInstance.into(), 3, Bytes::from_static(b"{}"));
        let meta = [8, 3, 16, 5, 32, 3, 40, 19];
        let header = [&[0, 0, 0, 0, 8, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0][..], &meta, b"{}"].concat();
        assert_eq!(bytes(&call, 5), header);
    }
}
