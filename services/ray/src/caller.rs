//! What a call says beside its message.

use std::str::FromStr;

use tonic::Status;
use tonic::metadata::MetadataMap;
use tripod_gateway::Consistency;
use tripod_proto::metadata;
use tripod_state::ids::Sequence;
use tripod_state::ray::ids::{Attempt, ClientSession, OperationId, WorkerId};
use tripod_state::ray::limits::RESOURCES_MAX;
use tripod_state::ray::{Offers, Origin, Run, Stamp, TaskCall, TaskOptions};

use crate::{decode, status};

/// Digits of a session: 128 bits.
const SESSION_DIGITS: usize = 32;

/// Who calls, and how it wants its call taken. A client of 2016 says nothing of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) origin: Origin,
    /// It has a session, so it will name itself.
    pub(crate) session: Option<ClientSession>,
    pub(crate) run: Option<Run>,
    pub(crate) child: Option<TaskCall>,
    pub(crate) options: TaskOptions,
    pub(crate) slots: u32,
    pub(crate) extended: bool,
    pub(crate) freshness: Consistency,
}

impl Caller {
    /// # Errors
    /// `INVALID_ARGUMENT`, which names the key: a header that cannot be read must not be taken for none, or a call
    /// that its client believes to be exactly-once would be executed twice.
    pub(crate) fn of(metadata: &MetadataMap) -> Result<Self, Status> {
        let session = session(metadata)?;
        let run = run(metadata)?;
        Ok(Self {
            origin: Origin {
                stamp: stamp(metadata, session)?,
                process: number(metadata, metadata::RAY_WORKER)?.map(WorkerId),
            },
            session,
            run,
            child: number(metadata, metadata::RAY_CHILD)?.map(|place| TaskCall { run, place }),
            options: options(metadata)?,
            slots: match number(metadata, metadata::RAY_SLOTS)? {
                Some(0) => return Err(malformed(metadata::RAY_SLOTS, "0", "at least 1")),
                slots => slots.unwrap_or(1),
            },
            extended: flag(metadata, metadata::RAY_EXTENDED)?,
            freshness: freshness(metadata)?,
        })
    }

    /// The same at a place of its session, which a message says instead of the metadata.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: there is no session, or no such place.
    pub(crate) fn at(mut self, sequence: u64, answered: u64) -> Result<Self, Status> {
        let session = self.session.ok_or_else(|| missing(metadata::RAY_SESSION, "seq"))?;
        if sequence == 0 {
            return Err(malformed("seq", "0", "at least 1"));
        }
        self.origin.stamp = Some(Stamp {
            session,
            sequence: Sequence(sequence),
            acknowledged_below: Sequence(answered.saturating_add(1)),
        });
        Ok(self)
    }
}

fn session(metadata: &MetadataMap) -> Result<Option<ClientSession>, Status> {
    let key = metadata::RAY_SESSION;
    let Some(text) = text(metadata, key)? else { return Ok(None) };
    let is_hexadecimal = text.len() == SESSION_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let session = is_hexadecimal.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    match session {
        Some(session) => Ok(Some(ClientSession(session))),
        None => Err(malformed(key, text, "32 hexadecimal digits")),
    }
}

fn stamp(metadata: &MetadataMap, session: Option<ClientSession>) -> Result<Option<Stamp>, Status> {
    let sequence: Option<u64> = number(metadata, metadata::RAY_SEQ)?;
    let answered: Option<u64> = number(metadata, metadata::RAY_ACKED)?;
    match (session, sequence) {
        (_, Some(0)) => Err(malformed(metadata::RAY_SEQ, "0", "at least 1")),
        (Some(session), Some(sequence)) => Ok(Some(Stamp {
            session,
            sequence: Sequence(sequence),
            acknowledged_below: Sequence(answered.unwrap_or(0).saturating_add(1)),
        })),
        (None, Some(_)) => Err(missing(metadata::RAY_SESSION, metadata::RAY_SEQ)),
        // A session without a place is a name only: reads and heartbeats have no place.
        (_, None) => Ok(None),
    }
}

fn run(metadata: &MetadataMap) -> Result<Option<Run>, Status> {
    let operation = number(metadata, metadata::RAY_OP)?;
    match (operation, number(metadata, metadata::RAY_ATTEMPT)?) {
        (_, Some(0)) => Err(malformed(metadata::RAY_ATTEMPT, "0", "at least 1")),
        (Some(operation), Some(attempt)) => {
            Ok(Some(Run { operation: OperationId(operation), attempt: Attempt(attempt) }))
        }
        (Some(_), None) => Err(missing(metadata::RAY_ATTEMPT, metadata::RAY_OP)),
        (None, Some(_)) => Err(missing(metadata::RAY_OP, metadata::RAY_ATTEMPT)),
        (None, None) => Ok(None),
    }
}

fn options(metadata: &MetadataMap) -> Result<TaskOptions, Status> {
    let key = metadata::RAY_MAX_RETRIES;
    let mut options = TaskOptions::default();
    if let Some(retries) = number::<i64>(metadata, key)? {
        options.max_retries = max_retries(retries)
            .ok_or_else(|| malformed(key, &retries.to_string(), "-1 or a number of 32 bits"))?;
    }
    options.retry_exceptions = flag(metadata, metadata::RAY_RETRY_EXCEPTIONS)?;
    Ok(options)
}

/// What a worker has that registers.
///
/// # Errors
/// `INVALID_ARGUMENT`, which names the key, or as [`decode::named`].
pub(crate) fn offers(metadata: &MetadataMap) -> Result<Offers, Status> {
    let mut offers = Offers::default();
    if let Some(cpus_milli) = number(metadata, metadata::RAY_CPUS_MILLI)? {
        offers.cpus_milli = cpus_milli;
    }
    offers.memory_bytes = number(metadata, metadata::RAY_MEMORY_BYTES)?.unwrap_or(0);
    let key = metadata::RAY_RESOURCES_MILLI;
    if let Some(list) = text(metadata, key)?.filter(|list| !list.is_empty()) {
        let malformed = || malformed(key, list, "NAME=THOUSANDTHS, divided by commas, each name once");
        let mut read: Vec<(String, u64)> = Vec::new();
        for part in list.split(',') {
            let (name, amount) = part.split_once('=').ok_or_else(malformed)?;
            let amount = Some(amount).filter(|amount| !amount.starts_with('+'));
            let amount = amount.and_then(|amount| amount.parse().ok()).ok_or_else(malformed)?;
            if read.iter().any(|(known, _)| known == name) {
                return Err(malformed());
            }
            read.push((name.to_owned(), amount));
            // One more than there may be shows that there are too many.
            if read.len() as u64 > RESOURCES_MAX {
                break;
            }
        }
        offers.named_milli = decode::named(key, read)?;
    }
    Ok(offers)
}

/// The outer `None`: it is no number of retries; the inner one: there is no limit.
pub(crate) fn max_retries(wire: i64) -> Option<Option<u32>> {
    match wire {
        -1 => Some(None),
        _ => u32::try_from(wire).ok().map(Some),
    }
}

fn freshness(metadata: &MetadataMap) -> Result<Consistency, Status> {
    let key = metadata::RAY_READ;
    match text(metadata, key)? {
        None | Some("linearizable") => Ok(Consistency::Linearizable),
        Some("stale") => Ok(Consistency::Local),
        Some(other) => Err(malformed(key, other, "linearizable or stale")),
    }
}

fn flag(metadata: &MetadataMap, key: &'static str) -> Result<bool, Status> {
    match text(metadata, key)? {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(malformed(key, other, "0 or 1")),
    }
}

fn number<T: FromStr>(metadata: &MetadataMap, key: &'static str) -> Result<Option<T>, Status> {
    let Some(text) = text(metadata, key)? else { return Ok(None) };
    // Rust would read "+1" too, which no other language's client writes on purpose.
    let plain = !text.starts_with('+');
    let number = plain.then(|| text.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| malformed(key, text, "a decimal number in range"))
}

fn text<'a>(metadata: &'a MetadataMap, key: &'static str) -> Result<Option<&'a str>, Status> {
    let Some(value) = metadata.get(key) else { return Ok(None) };
    value.to_str().map(Some).map_err(|_| malformed(key, "bytes", "text"))
}

fn malformed(key: &str, got: &str, wanted: &str) -> Status {
    status::invalid(&format!("metadata {key} is {got:?}, not {wanted}"))
}

fn missing(key: &str, with: &str) -> Status {
    status::invalid(&format!("metadata {with} without {key}"))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    const SESSION: &str = "000102030405060708090a0b0c0d0e0f";

    fn caller(pairs: &[(&'static str, &str)]) -> Result<Caller, Status> {
        let mut metadata = MetadataMap::new();
        for (key, value) in pairs {
            metadata.insert(*key, value.parse().unwrap());
        }
        Caller::of(&metadata)
    }

    #[test]
    fn a_client_of_2016_says_nothing() {
        let caller = caller(&[]).unwrap();
        assert_eq!(caller.origin, Origin::default());
        assert_eq!((caller.run, caller.child, caller.slots), (None, None, 1));
        assert_eq!((caller.extended, caller.session), (false, None));
        assert_eq!(caller.options, TaskOptions::default());
        assert_eq!(caller.freshness, Consistency::Linearizable);
    }

    #[test]
    fn a_stamp_is_a_session_a_place_and_what_was_answered() {
        let stamp = |more: &[(&'static str, &str)]| {
            let pairs = [&[(metadata::RAY_SESSION, SESSION)], more].concat();
            caller(&pairs).unwrap().origin.stamp
        };
        assert_eq!(stamp(&[]), None);
        let first = stamp(&[(metadata::RAY_SEQ, "1")]).unwrap();
        assert_eq!(first.session, ClientSession(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f));
        assert_eq!((first.sequence, first.acknowledged_below), (Sequence(1), Sequence(1)));
        let later = stamp(&[(metadata::RAY_SEQ, "9"), (metadata::RAY_ACKED, "7")]).unwrap();
        assert_eq!((later.sequence, later.acknowledged_below), (Sequence(9), Sequence(8)));
    }

    #[test]
    fn options_runs_and_children_are_read() {
        let caller = caller(&[
            (metadata::RAY_WORKER, "0"),
            (metadata::RAY_OP, "18446744073709551615"),
            (metadata::RAY_ATTEMPT, "2"),
            (metadata::RAY_CHILD, "0"),
            (metadata::RAY_MAX_RETRIES, "-1"),
            (metadata::RAY_RETRY_EXCEPTIONS, "1"),
            (metadata::RAY_SLOTS, "8"),
            (metadata::RAY_EXTENDED, "1"),
            (metadata::RAY_READ, "stale"),
        ])
        .unwrap();
        assert_eq!(caller.origin.process, Some(WorkerId(0)));
        assert_eq!(caller.run, Some(Run { operation: OperationId(u64::MAX), attempt: Attempt(2) }));
        assert_eq!((caller.child.map(|call| call.place), caller.slots, caller.extended), (Some(0), 8, true));
        assert_eq!(caller.options, TaskOptions { max_retries: None, retry_exceptions: true });
        assert_eq!(caller.freshness, Consistency::Local);
    }

    #[test]
    fn what_a_worker_has_is_read_and_without_a_word_it_is_one_processor() {
        let read = |pairs: &[(&'static str, &str)]| {
            let mut metadata = MetadataMap::new();
            for (key, value) in pairs {
                metadata.insert(*key, value.parse().unwrap());
            }
            offers(&metadata)
        };
        assert!(read(&[]).unwrap().is_default());
        let some = read(&[
            (metadata::RAY_CPUS_MILLI, "8000"),
            (metadata::RAY_MEMORY_BYTES, "4096"),
            (metadata::RAY_RESOURCES_MILLI, "gpu=1000,licence=500"),
        ])
        .unwrap();
        assert_eq!((some.cpus_milli, some.memory_bytes), (8_000, 4_096));
        assert_eq!(some.named_milli, [("gpu".to_owned(), 1_000), ("licence".to_owned(), 500)].into());
        for list in ["gpu", "gpu=", "=1", "gpu=-1", "gpu=+1", "gpu=1,gpu=2", "gpu=1,", ","] {
            let refused = read(&[(metadata::RAY_RESOURCES_MILLI, list)]).expect_err(list);
            assert_eq!(refused.code(), Code::InvalidArgument, "{list}");
        }
        let many: Vec<String> = (0..1_000).map(|number| format!("{number}=1")).collect();
        let refused = read(&[(metadata::RAY_RESOURCES_MILLI, &many.join(","))]).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(read(&[(metadata::RAY_CPUS_MILLI, "x")]).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_named() {
        let session = (metadata::RAY_SESSION, SESSION);
        let cases: &[&[(&'static str, &str)]] = &[
            &[(metadata::RAY_SESSION, "1")],
            &[(metadata::RAY_SESSION, "+00102030405060708090a0b0c0d0e0f")],
            &[(metadata::RAY_SEQ, "1")],
            &[session, (metadata::RAY_SEQ, "0")],
            &[session, (metadata::RAY_SEQ, "x")],
            &[session, (metadata::RAY_SEQ, "1"), (metadata::RAY_ACKED, "-1")],
            &[(metadata::RAY_WORKER, "18446744073709551616")],
            &[(metadata::RAY_OP, "1")],
            &[(metadata::RAY_ATTEMPT, "1")],
            &[(metadata::RAY_OP, "1"), (metadata::RAY_ATTEMPT, "0")],
            &[(metadata::RAY_CHILD, "+1")],
            &[(metadata::RAY_MAX_RETRIES, "-2")],
            &[(metadata::RAY_MAX_RETRIES, "4294967296")],
            &[(metadata::RAY_RETRY_EXCEPTIONS, "yes")],
            &[(metadata::RAY_SLOTS, "0")],
            &[(metadata::RAY_EXTENDED, "")],
            &[(metadata::RAY_READ, "fresh")],
        ];
        for pairs in cases {
            let refused = caller(pairs).expect_err("it is malformed");
            assert_eq!(refused.code(), Code::InvalidArgument, "{pairs:?}");
            assert!(refused.message().contains("x-tripod-"), "{refused}");
        }
    }
}
