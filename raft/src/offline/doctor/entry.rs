//! An entry of the log as one line of JSON.

use openraft::EntryPayload;
use serde::Serialize;
use serde_json::{Value, json};
use tripod_state::Envelope;

use crate::base::codec;
use crate::base::types::Entry;

/// One entry. Serialised as it is: the names are a schema that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntryRow {
    pub index: u64,
    pub term: u64,
    /// The leader that appended it.
    pub leader: u64,
    /// `blank`, `membership` or `command`.
    pub kind: &'static str,
    /// The leader's stamp, in milliseconds since the epoch; commands only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// What it says. Bytes are text where they are UTF-8, and hexadecimal after `0x` where not.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub content: Value,
}

impl EntryRow {
    pub(super) fn of(entry: &Entry) -> Self {
        let (kind, time_ms, content) = match &entry.payload {
            EntryPayload::Blank => ("blank", None, Value::Null),
            EntryPayload::Membership(membership) => {
                let voters: Vec<Vec<u64>> = membership
                    .get_joint_config()
                    .iter()
                    .map(|config| config.iter().copied().collect())
                    .collect();
                let nodes = membership.nodes().map(|(node, peer)| (node.to_string(), json!(peer.address)));
                let nodes: serde_json::Map<String, Value> = nodes.collect();
                ("membership", None, json!({ "voters": voters, "nodes": nodes }))
            }
            EntryPayload::Normal(command) => ("command", Some(command.now_ms), content(&command.payload)),
        };
        let leader = entry.log_id.leader_id;
        Self { index: entry.log_id.index, term: leader.term, leader: leader.node_id, kind, time_ms, content }
    }
}

fn content(payload: &[u8]) -> Value {
    let decoded = codec::decode::<Envelope>(payload).map_err(|error| error.to_string());
    let shown =
        decoded.and_then(|envelope| serde_json::to_value(envelope).map_err(|error| error.to_string()));
    match shown {
        Ok(value) => readable(value),
        Err(problem) => json!({ "unreadable": problem }),
    }
}

/// JSON has no bytes: they came as lists of numbers.
fn readable(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let value = match bytes(&name, &value) {
                    Some(bytes) => Value::String(text(&bytes)),
                    None => readable(value),
                };
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(readable).collect()),
        other => other,
    }
}

fn bytes(name: &str, value: &Value) -> Option<Vec<u8>> {
    let items = value.as_array().filter(|_| name == "value")?;
    items.iter().map(|item| item.as_u64().and_then(|item| u8::try_from(item).ok())).collect()
}

fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(
        |_| bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        ToOwned::to_owned,
    )
}
