//! How deep values may stand within values of their own kind when they are read.
//!
//! Whoever decodes such a value recurses, and bytes that a hostile peer wrote could nest it deeper than any stack is.
//! What is committed can be read back: a fault cites at most eight others, a retried command holds one command, and
//! a batch of requests none.

use std::cell::Cell;
use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// Values within each other. Far above what [`crate::Fault::cited`] allows, and far below what fills a stack.
const DEPTH_MAX: u32 = 32;

thread_local! {
    /// How many values the one that is being read on this thread stands in. Reading begins and ends at zero, so what
    /// is read does not depend on it.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One value that is being read.
struct Within;

impl Within {
    fn enter() -> Option<Self> {
        let depth = DEPTH.get();
        (depth < DEPTH_MAX).then(|| {
            DEPTH.set(depth + 1);
            Self
        })
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Of a field that may hold a value of the kind that it stands in, to be read.
///
/// # Errors
/// The value stands in too many others.
pub(crate) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let _within = Within::enter().ok_or_else(|| de::Error::custom(TooDeep))?;
    T::deserialize(deserializer)
}

struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {DEPTH_MAX} values stand within each other")
    }
}

#[cfg(test)]
mod tests {
    use crate::command::Scope;
    use crate::ids::{JobId, TaskId};
    use crate::{Answer, Command, Envelope, Fault, Reply, kv, ray};

    fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, bincode::error::DecodeError> {
        bincode::serde::decode_from_slice(bytes, bincode::config::standard()).map(|(value, _)| value)
    }

    fn written<T: serde::Serialize>(value: &T) -> Vec<u8> {
        bincode::serde::encode_to_vec(value, bincode::config::standard()).unwrap()
    }

    /// A value in ever more others: the byte that begins each of them, a million times.
    fn nested<T: serde::Serialize>(innermost: &T, once: &T) -> Vec<u8> {
        let (inner, outer) = (written(innermost), written(once));
        let around = &outer[..outer.len() - inner.len()];
        assert_eq!(&outer[around.len()..], &inner);
        [&around.repeat(1_000_000), &inner[..]].concat()
    }

    #[test]
    fn no_nest_of_a_hostile_peer_is_deeper_than_a_stack() {
        let delete = Command::Kv(kv::Command::Delete {
            scope: Scope { job: JobId(1), service: None },
            key: "a".into(),
        });
        let commands = nested(&delete, &Command::Retried(Box::new(delete.clone())));
        let empty = ray::Request::Batch(Vec::new());
        let batches =
            nested(&ray::Request::KillWorkers, &ray::Request::Batch(vec![ray::Request::KillWorkers]));
        let answers = nested(&ray::Answer::Done, &ray::Answer::Replayed(Box::new(ray::Answer::Done)));
        let left = Fault::PollerLeft;
        let faults = nested(&left, &Fault::Unheard { cause: Box::new(left.clone()) });
        let refusals = [
            read::<Command>(&commands).unwrap_err(),
            read::<ray::Request>(&batches).unwrap_err(),
            read::<ray::Answer>(&answers).unwrap_err(),
            read::<Fault>(&faults).unwrap_err(),
        ];
        for refusal in refusals {
            assert!(refusal.to_string().contains("stand within each other"), "{refusal}");
        }
        assert_eq!(read::<ray::Request>(&written(&empty)).unwrap(), empty, "the next one is read again");
    }

    #[test]
    fn whatever_the_state_can_hold_is_read() {
        let scope = Scope { job: JobId(1), service: None };
        let mut fault = Fault::Reported { task: TaskId(1), code: 13, message: "boom".into() };
        // Every citation by another one, for ever.
        for _ in 0..100 {
            fault = Fault::ShutdownFailed { cause: fault.cited() };
            let reply: Reply = Err(Fault::PollInError { task: TaskId(2), existing: fault.cited() });
            assert_eq!(read::<Reply>(&written(&reply)).unwrap(), reply);
        }
        let delete = Command::Kv(kv::Command::Delete { scope, key: "a".into() });
        let envelope = Envelope { stamp: None, command: Command::Retried(Box::new(delete)) };
        assert_eq!(read::<Envelope>(&written(&envelope)).unwrap(), envelope);
        let batch = ray::Answer::Batch(vec![Ok(ray::Answer::Done); 1_000]);
        let reply: Reply = Ok(Answer::Ray(ray::Answer::Replayed(Box::new(batch))));
        assert_eq!(read::<Reply>(&written(&reply)).unwrap(), reply);
    }
}
