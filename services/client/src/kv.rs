//! Keys and values of one job.

use bytes::Bytes;
use tripod_calls::Way;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::kv_client::KvClient;

/// Values of tens of megabytes are legal; the server sets the bound.
const MESSAGE_BYTES_MAX: usize = 80 << 20;

/// The keys of a job.
#[derive(Debug, Clone)]
pub struct Kv {
    client: Client,
    job: String,
}

/// A key and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub value: Bytes,
    /// How often the key was written since it was created, from 1.
    pub version: u64,
    /// The log index of the last write.
    pub modified_index: u64,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// There are more keys after the last one.
    pub more: bool,
}

/// An acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub version: u64,
    /// Where the write stands in the log.
    pub index: u64,
}

/// When a put may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// Only if the key does not exist.
    CreateOnly,
    /// Only if the key has this version; 0: only if it does not exist.
    Version(u64),
}

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every write acknowledged before the read began.
    Linearizable,
    /// The asked node's memory, possibly old; works without a leader.
    Local,
}

impl Consistency {
    fn to_wire(self) -> i32 {
        match self {
            Self::Linearizable => wire::Consistency::Linearizable.into(),
            Self::Local => wire::Consistency::Local.into(),
        }
    }
}

impl Kv {
    pub(crate) fn new(client: Client, job: &str) -> Self {
        Self { client, job: job.to_owned() }
    }

    /// Writes a key, once however often the network makes us send it.
    ///
    /// # Errors
    /// [`Error::Refused`] when the condition does not hold or a limit is exceeded, else as any call.
    pub async fn put(&self, key: &str, value: Bytes, condition: Condition) -> Result<Written, Error> {
        let request = wire::PutRequest {
            job: self.job.clone(),
            key: key.to_owned(),
            value,
            create_only: condition == Condition::CreateOnly,
            expected_version: match condition {
                Condition::Version(version) => Some(version),
                Condition::Always | Condition::CreateOnly => None,
            },
            stamp: None,
        };
        let put = |way: Way, stamp: wire::Stamp| {
            let request = wire::PutRequest { stamp: Some(stamp), ..request.clone() };
            async move { client(way).put(request).await }
        };
        let answer = self.client.stamped("kv put", put).await?;
        Ok(Written { version: answer.version, index: answer.index })
    }

    /// A key's value, or `None` if there is no such key.
    ///
    /// # Errors
    /// As any call.
    pub async fn get(&self, key: &str, consistency: Consistency) -> Result<Option<Entry>, Error> {
        let request = wire::GetRequest {
            job: self.job.clone(),
            key: key.to_owned(),
            consistency: consistency.to_wire(),
        };
        let get = |way: Way| {
            let request = request.clone();
            async move { client(way).get(request).await }
        };
        let answer = self.client.caller().call("kv get", Repeat::Freely, get).await?;
        Ok(answer.found.then_some(Entry {
            key: answer.key,
            value: answer.value,
            version: answer.version,
            modified_index: answer.modified_index,
        }))
    }

    /// Deletes a key and everything under `key/`; tells how many keys that were.
    ///
    /// # Errors
    /// As any call.
    pub async fn delete(&self, key: &str) -> Result<u64, Error> {
        let request = wire::DeleteRequest { job: self.job.clone(), key: key.to_owned(), stamp: None };
        let delete = |way: Way, stamp: wire::Stamp| {
            let request = wire::DeleteRequest { stamp: Some(stamp), ..request.clone() };
            async move { client(way).delete(request).await }
        };
        Ok(self.client.stamped("kv delete", delete).await?.deleted)
    }

    /// Keys that begin with `prefix` and come after `after`, in byte order. `limit` 0: the server's.
    ///
    /// # Errors
    /// As any call.
    pub async fn list(&self, prefix: &str, after: &str, limit: u32, keys_only: bool) -> Result<Page, Error> {
        let request = wire::ListRequest {
            job: self.job.clone(),
            prefix: prefix.to_owned(),
            after: after.to_owned(),
            limit,
            keys_only,
            consistency: Consistency::Linearizable.to_wire(),
        };
        let list = |way: Way| {
            let request = request.clone();
            async move { client(way).list(request).await }
        };
        let answer = self.client.caller().call("kv list", Repeat::Freely, list).await?;
        let entries = answer.keys.into_iter().map(|listed| Entry {
            key: listed.key,
            value: listed.value,
            version: listed.version,
            modified_index: listed.modified_index,
        });
        Ok(Page { entries: entries.collect(), more: answer.more })
    }
}

fn client(way: Way) -> KvClient<Way> {
    KvClient::new(way).max_decoding_message_size(MESSAGE_BYTES_MAX)
}
