//! Requests about tokens.

use tonic::Status;
use tripod_proto::tripod::v1::CreateTokenRequest;
use tripod_state::Fault;
use tripod_state::ids::{DurationMs, JobName, TaskId, TokenId};
use tripod_state::limits::TOKEN_DEFAULT_LIFETIME_MS;
use tripod_state::token::{Bearer, Kind, Refusal};

use crate::status;

/// A token that somebody wants.
pub(crate) struct Wanted {
    pub(crate) bearer: Bearer,
    pub(crate) lifetime_ms: DurationMs,
    pub(crate) by: String,
}

pub(crate) fn wanted(request: CreateTokenRequest) -> Result<Wanted, Status> {
    let CreateTokenRequest { kind, job, task, name, lifetime_ms, by } = request;
    let kind = Kind::of_word(&kind).ok_or_else(status::token::no_kind)?;
    let task = match task.map(i32::try_from).transpose() {
        Ok(task) => task.map(TaskId),
        Err(_) => return Err(invalid("task", "must be at most 2147483647")),
    };
    let job = (!job.is_empty()).then(|| JobName::from(job.as_str()));
    let lifetime_ms = match lifetime_ms {
        0 => DurationMs(TOKEN_DEFAULT_LIFETIME_MS.min(kind.lifetime_max().0)),
        told => DurationMs(told),
    };
    Ok(Wanted { bearer: Bearer { kind, job, task, name }, lifetime_ms, by })
}

pub(crate) fn id(text: &str) -> Result<TokenId, Status> {
    let why = "an id has 13 digits of a-z and 2-7, as `tripod auth token list` shows it";
    TokenId::parse(text).ok_or_else(|| invalid("id", why))
}

fn invalid(field: &str, reason: &str) -> Status {
    let (field, reason) = (field.to_owned(), reason.to_owned());
    status::of_fault(&Fault::Token(Refusal::Invalid { field, reason }))
}
