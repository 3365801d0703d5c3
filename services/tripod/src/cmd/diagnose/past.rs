//! What went wrong in a job around a moment that is over, by its events: also if it was deleted since.

use std::process::ExitCode;

use tripod_client::{Client, wire};

use crate::cmd::events::{self, AROUND_MS};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::view::events::EventsView;

/// The first cause, and the events of five minutes around that moment.
///
/// # Errors
/// Nothing is known of the job, or nothing may be told; or as any call.
pub(super) async fn show(
    client: &Client,
    job: &str,
    at_ms: u64,
    format: Format,
) -> Result<ExitCode, Failure> {
    let filter = wire::EventFilter {
        since_ms: at_ms.saturating_sub(AROUND_MS),
        until_ms: at_ms.saturating_add(AROUND_MS),
        ..wire::EventFilter::default()
    };
    let Some(answer) = client.job_events(job, filter).await? else { return Err(events::unknown(job)) };
    let view = EventsView::of(&answer);
    let cause = view.cause();
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => {
            let first = cause.map_or_else(
                || "nothing went wrong in these five minutes, as far as the log tells".to_owned(),
                |cause| format!("the first cause: {}", cause.render(false)),
            );
            output::line(&format!("{first}\n{}", view.render(false)))?;
        }
    }
    events::verdict(&view.head)?;
    Ok(if cause.is_some() { ExitCode::from(Exit::Failed as u8) } else { ExitCode::SUCCESS })
}
