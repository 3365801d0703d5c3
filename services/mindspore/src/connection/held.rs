//! What is asked while nobody leads: it is held, and goes on when somebody does.

use std::time::Duration;

use tokio::time::Instant;
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_state::{Command, Envelope, Fault, Reply, Stamp, State};

/// How long a message is held while nobody leads. A node that waits has waited for as long by then. That a node has gone ends
/// its registration, what it wanted of an entry and what it asked, and nothing else: whoever has left is to have left.
const HELD_TIME: Duration = Duration::from_secs(600);
/// Between two attempts; the gateway holds one for all of the time, unless it has no room for what waits.
const PAUSE: Duration = Duration::from_millis(100);

/// Replicates a command, however long that takes while nobody leads. `stamp` is that of whoever sends it. Without one the
/// gateway has one of its own, by which the command takes effect once however often it is sent. Only if that is lost, as after
/// an outage so long that sessions end, is an outcome unknown before all the time has passed; then a command is sent again if
/// to do it twice is the same as to do it once, whatever others do in between (`is_repeatable`). What became of an attempt that
/// may have taken effect is not known by later ones that were not executed: then the outcome stays unknown.
pub(crate) async fn submit(
    gateway: &Gateway,
    command: Command,
    stamp: Option<Stamp>,
    is_repeatable: bool,
) -> Result<Reply, Outage> {
    let began = Instant::now();
    let mut doubt = None;
    loop {
        let command = command.clone();
        let reply = match stamp {
            Some(_) => gateway.submit_stamped(Envelope { stamp, command }).await,
            None => gateway.submit_within(command, HELD_TIME.saturating_sub(began.elapsed())).await,
        };
        match reply {
            Err(outage)
                if may_go_on(&outage, is_repeatable || stamp.is_some()) && began.elapsed() < HELD_TIME =>
            {
                tracing::debug!(%outage, "a message of a node of MindSpore is held");
                if matches!(outage, Outage::Unknown(_)) {
                    doubt = Some(outage);
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(outage) => return Err(doubt.unwrap_or(outage)),
            Ok(reply) => {
                // The session that would know of the earlier attempt is gone, or does not remember it.
                let is_blind = matches!(reply, Err(Fault::SessionExpired | Fault::ReplyForgotten));
                return doubt.filter(|_| is_blind).map_or(Ok(reply), Err);
            }
        }
    }
}

/// Looks at everything that was acknowledged before, however long that takes while nobody leads.
pub(crate) async fn look<T>(gateway: &Gateway, look: impl Fn(&State) -> T) -> Result<T, Outage> {
    let began = Instant::now();
    loop {
        match gateway.read(Consistency::Linearizable, &look).await {
            Err(Outage::NoLeader { .. } | Outage::Overloaded(_)) if began.elapsed() < HELD_TIME => {
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Whether another attempt may do what this one did not.
fn may_go_on(outage: &Outage, is_repeatable: bool) -> bool {
    match outage {
        Outage::NoLeader { .. } | Outage::Overloaded(_) => true,
        Outage::Unknown(_) => is_repeatable,
        _ => false,
    }
}

/// Whether it says that another attempt is in vain.
pub(crate) fn is_refusal(outage: &Outage) -> bool {
    matches!(outage, Outage::DiskFull(_) | Outage::JobFull(_) | Outage::StateFull(_) | Outage::Level(_))
}
