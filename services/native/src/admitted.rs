//! What a call's head did not say of it, and its message does: checked before anything is done.

use tonic::{Code, Extensions, Status};
use tripod_gate::{Admitted, Reason};

use crate::resolve::DEFAULT_JOB;

/// The message of a call is about the job of this name; empty: `default`.
///
/// # Errors
/// It is not the caller's, whether there is such a job or not.
pub(crate) fn about_job(extensions: &Extensions, name: &str) -> Result<(), Status> {
    let Some(admitted) = Admitted::of(extensions) else { return Ok(()) };
    admitted.about_job(if name.is_empty() { DEFAULT_JOB } else { name }).map_err(refused)
}

/// The call asks for a digest of the whole state.
///
/// # Errors
/// The caller may have none made.
pub(crate) fn asks_for_digest(extensions: &Extensions) -> Result<(), Status> {
    Admitted::of(extensions).map_or(Ok(()), |admitted| admitted.asks_for_digest().map_err(refused))
}

fn refused(reason: Reason) -> Status {
    Status::new(Code::from(i32::from(reason.code())), reason.to_string())
}
