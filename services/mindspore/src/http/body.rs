//! A request's body, as JSON.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use serde_json::Value;
use tripod_port::{Account, Charge};
use tripod_proto::code::Code;
use tripod_state::mindspore::limits::SWITCH_BODY_BYTES_MAX;

use super::refused::Refused;

/// Bytes of a body: the parameters of federated learning, or the ids of all servers.
const BODY_BYTES_MAX: usize = SWITCH_BODY_BYTES_MAX;
/// From a request's head until the last byte of its body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A body, counted for as long as this lives.
pub(super) struct Read {
    bytes: Bytes,
    _held: Charge,
}

impl Read {
    /// All of a body.
    pub(super) async fn all(body: Incoming, account: &Account) -> Result<Self, Refused> {
        let late = || {
            let (code, seconds) = (Code::LeftUnfinished, BODY_TIME.as_secs());
            let text = format!("{code}: the rest of a request did not come within {seconds} s");
            Refused { status: StatusCode::REQUEST_TIMEOUT, text, code }
        };
        tokio::time::timeout(BODY_TIME, Self::whole(body, account)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn whole(mut body: Incoming, account: &Account) -> Result<Self, Refused> {
        let mut bytes = BytesMut::new();
        let mut held = account.call(0).map_err(short)?;
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|error| Refused::ours(&format!("the body did not come: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > BODY_BYTES_MAX {
                let text = format!("a body may have {BODY_BYTES_MAX} bytes, and this one has more");
                return Err(Refused::ours(&text));
            }
            held.set((bytes.len() + data.len()) as u64).map_err(short)?;
            bytes.extend_from_slice(&data);
        }
        Ok(Self { bytes: bytes.freeze(), _held: held })
    }

    /// What it says.
    pub(super) fn json(&self) -> Result<Value, Refused> {
        if self.bytes.is_empty() {
            return Err(Refused::upstream("The post message size is invalid."));
        }
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Refused::upstream(format!("Illegal JSON format:{error}")))
    }
}

fn short(short: tripod_port::Short) -> Refused {
    Refused { status: StatusCode::SERVICE_UNAVAILABLE, text: short.to_string(), code: short.code() }
}

/// How many nodes to add.
pub(super) fn count(said: &Value, key: &str) -> Result<u32, Refused> {
    let value = of_key(said, key)?;
    if value.as_i64().is_some_and(|count| count < 0) {
        return Err(Refused::upstream("The value should not be less than 0."));
    }
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| Refused::ours(&format!("the value of `{key}` is no number of nodes")))
}

/// Which nodes are to leave.
pub(super) fn node_ids(said: &Value) -> Result<Vec<String>, Refused> {
    const KEY: &str = "node_ids";
    let list = of_key(said, KEY)?.as_array();
    let ids = list
        .and_then(|list| list.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>());
    match ids {
        Some(ids) if ids.is_empty() => Err(Refused::upstream("The node ids should not be empty.")),
        Some(ids) => Ok(ids),
        None => Err(Refused::ours(&format!("the value of `{KEY}` is no list of texts"))),
    }
}

fn of_key<'a>(said: &'a Value, key: &str) -> Result<&'a Value, Refused> {
    said.get(key).ok_or_else(|| Refused::upstream(format!("The json is not contain the key:{key}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_count_and_no_list_is_refused_in_upstreams_words_or_in_ours() {
        assert_eq!(count(&json!({"server_num": 2}), "server_num"), Ok(2));
        assert_eq!(node_ids(&json!({"node_ids": ["a", "b"]})), Ok(vec!["a".to_owned(), "b".to_owned()]));
        let words = |refused: Result<u32, Refused>| refused.unwrap_err().text;
        for (said, text) in [
            (json!({}), "The json is not contain the key:server_num"),
            (json!([1]), "The json is not contain the key:server_num"),
            (json!({"server_num": -1}), "The value should not be less than 0."),
            (
                json!({"server_num": 1.5}),
                "T6403 message-refused: the value of `server_num` is no number of nodes",
            ),
            (
                json!({"server_num": 1_u64 << 40}),
                "T6403 message-refused: the value of `server_num` is no number of nodes",
            ),
        ] {
            assert_eq!(words(count(&said, "server_num")), text);
        }
        for (said, text) in [
            (json!({"node_ids": []}), "The node ids should not be empty."),
            (json!({"node_ids": "a"}), "T6403 message-refused: the value of `node_ids` is no list of texts"),
            (
                json!({"node_ids": ["a", 1]}),
                "T6403 message-refused: the value of `node_ids` is no list of texts",
            ),
        ] {
            assert_eq!(node_ids(&said).unwrap_err().text, text);
        }
    }
}
