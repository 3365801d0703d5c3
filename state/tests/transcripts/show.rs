//! The state machine's words in a shape that is pleasant to read.

use std::fmt::Debug;

use tripod_state::{Answer, Reply};

/// The newtypes whose names would only hide the number or text inside.
const TRANSPARENT: [&str; 33] = [
    "NodeId",
    "LogIndex",
    "JobId",
    "JobSlot",
    "TaskId",
    "Incarnation",
    "ServiceIncarnation",
    "BarrierCounter",
    "TaskVersion",
    "CallId",
    "SessionId",
    "Sequence",
    "TimeMs",
    "DurationMs",
    "JobName",
    "BarrierName",
    "Key",
    "Term",
    "Box",
    "ObjectId",
    "OperationId",
    "WorkerId",
    "StoreId",
    "ExportId",
    "OrderId",
    "Attempt",
    "Member",
    "NodeName",
    "MetadataName",
    "Name",
    "GraphNo",
    "MutableNo",
    "Place",
];

pub(crate) fn reply(reply: &Reply) -> String {
    match reply {
        Ok(Answer::Waiting(_)) => "waits".to_owned(),
        Ok(Answer::Job(job)) => format!("ok job {}, slot {}", job.name, plain(&job.slot)),
        Ok(answer) => format!("ok {}", plain(answer)),
        Err(fault) => format!("refused {}", plain(fault)),
    }
}

/// The debug form without the names of newtypes.
pub(crate) fn plain(value: &impl Debug) -> String {
    let mut text = format!("{value:?}");
    let mut from = 0;
    while let Some(open) = text[from..].find('(').map(|at| at + from) {
        let name = text[..open].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("").len();
        let close = text[open..].find(')').map(|at| at + open);
        match close {
            Some(close) if TRANSPARENT.contains(&&text[open - name..open]) => {
                text.remove(close);
                text.replace_range(open - name..=open, "");
                from = open - name;
            }
            _ => from = open + 1,
        }
    }
    text
}
