//! In which order the messages of a connection are answered: one after the other, but for heartbeats. A report may have to
//! wait until somebody leads, and a node whose heartbeats are not answered for 30 s takes its scheduler for dead.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tripod_port::Stopping;

use super::asked::Asked;
use super::session::Session;
use crate::connection::{Ended, Incoming, Outgoing, Received};
use crate::wire::Word;
use crate::wire::ps::{Marked, Parts};

/// Messages that wait for the one before them. A node has a handful under way; beyond this its next are not read.
const WAITING_MAX: usize = 16;

type Going<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves a node until it ends, or the port stops.
///
/// # Errors
/// Why the connection ends before.
pub(crate) async fn converse(
    session: &Session,
    mut incoming: Incoming<impl AsyncRead + Unpin + Send>,
    mut outgoing: Outgoing<impl AsyncWrite + Unpin + Send>,
    stopping: Stopping,
) -> Result<(), Ended> {
    let mut waiting = VecDeque::<Received<Marked>>::new();
    let mut under_way: Option<Going<'_, Result<Option<Bytes>, Ended>>> = None;
    let mut is_open = true;
    loop {
        if under_way.is_none()
            && let Some(next) = waiting.pop_front()
        {
            under_way = Some(Box::pin(async move { session.said(&next.frame).await }));
        }
        if !is_open && under_way.is_none() {
            return Ok(());
        }
        tokio::select! {
            biased;
            answer = going(&mut under_way) => {
                under_way = None;
                if let Some(answer) = answer? {
                    outgoing.send(&answer).await?;
                }
            }
            () = stopping.overdue(), if under_way.is_some() => return Err(Ended::Overdue),
            received = incoming.next::<Marked>(), if is_open && waiting.len() < WAITING_MAX => {
                let Some(received) = received? else {
                    is_open = false;
                    if stopping.is_begun() {
                        waiting.clear();
                    }
                    continue;
                };
                let Marked { frame, mark } = &received.frame;
                let Ok(Asked::Beat(message)) = Asked::of(frame) else {
                    waiting.push_back(received);
                    continue;
                };
                let beaten = session.beat(frame, message).await?;
                // An agent waits for the one answer that each frame has.
                let silent = mark.map(|_| Parts::of_word(Word::Silent).encode());
                if let Some(answer) = beaten.answer.map(|answer| answer.encode()).or(silent) {
                    outgoing.send(&answer).await?;
                }
                if let Some(sign) = beaten.sign {
                    session.pulse().note(sign);
                }
            }
        }
    }
}

/// What is under way, if anything is.
async fn going<T>(slot: &mut Option<Going<'_, T>>) -> T {
    match slot {
        Some(going) => going.as_mut().await,
        None => pending().await,
    }
}
