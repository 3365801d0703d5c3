//! One connection through the proxy, and how it ends.

use std::time::Duration;

use rand::RngExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::condition::Condition;
use super::pump::{Broken, Direction, pump};

/// Carries both directions until both ends have closed, one of them breaks, or we reset it.
pub(super) async fn serve(
    mut near: TcpStream,
    target: std::net::SocketAddr,
    condition: watch::Receiver<Condition>,
) {
    let begun = condition.borrow().resets;
    if condition.borrow().refuse_new {
        reset(&near);
        return;
    }
    let Ok(mut far) = TcpStream::connect(target).await else {
        // The target's port is closed. Whether that may be told depends on what arrives at all.
        until_nothing_is_swallowed(condition).await;
        reset(&near);
        return;
    };
    // Small messages must not wait for acknowledgements; the delays are to be those that were asked for.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let orderly = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        let both = async {
            tokio::try_join!(
                pump(near_read, far_write, condition.clone(), Direction::Forward),
                pump(far_read, near_write, condition.clone(), Direction::Backward),
            )
        };
        tokio::select! {
            carried = both => match carried {
                Ok(_) => true,
                Err(Broken) => {
                    until_nothing_is_swallowed(condition.clone()).await;
                    false
                }
            },
            () = until_reset(condition.clone(), begun) => false,
        }
    };
    if !orderly {
        reset(&near);
        reset(&far);
    }
}

/// Makes the end that follows a reset, which loses what is under way, instead of an orderly close.
fn reset(stream: &TcpStream) {
    // A stream that has gone already needs no reset.
    let _ = stream.set_zero_linger();
}

async fn until_nothing_is_swallowed(mut condition: watch::Receiver<Condition>) {
    // An error means that the network itself ends.
    let _ = condition.wait_for(|condition| !condition.swallows()).await;
}

/// Ends when this connection must be reset: by command, or because its random lifetime is over.
async fn until_reset(mut condition: watch::Receiver<Condition>, begun: u64) {
    loop {
        let Condition { resets, lifetime_max_ms, .. } = *condition.borrow_and_update();
        if resets != begun {
            return;
        }
        let lifetime = lifetime_max_ms.map(|most| rand::rng().random_range(0..=most));
        let end = lifetime.map(|lifetime_ms| Instant::now() + Duration::from_millis(lifetime_ms));
        let over = async {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            changed = condition.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}
