//! In which order the messages of a connection are answered: one after the other, but for heartbeats. A report may have to
//! wait until somebody leads, and a node whose heartbeats are not answered for 30 s takes its scheduler for dead. What a node
//! has said before it went is done, but for a registration: by then another process may have registered in its place. What it
//! only asked is given up likewise, and does not keep its connection's place until somebody leads.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tripod_port::{LEFT_TIME, Stopping, is_slow};

use super::asked::{Asked, ends_with_node};
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
    // Whether what is under way is given up a while after its node has gone.
    let (mut is_open, mut ends) = (true, false);
    // Since when the node is known to have gone.
    let mut gone: Option<Instant> = None;
    loop {
        while under_way.is_none()
            && let Some(next) = waiting.pop_front()
        {
            ends = ends_with_node(next.frame.frame.command());
            let is_over = ends && gone.is_some_and(|gone| gone.elapsed() >= LEFT_TIME);
            if !is_over {
                under_way = Some(Box::pin(async move { session.said(&next.frame).await }));
            }
        }
        if !is_open && under_way.is_none() {
            return Ok(());
        }
        tokio::select! {
            biased;
            answer = going(&mut under_way) => {
                under_way = None;
                if let Some(answer) = answer? {
                    send(&mut outgoing, &answer, &mut gone).await?;
                }
            }
            () = left(gone), if under_way.is_some() && ends => under_way = None,
            () = stopping.overdue(), if under_way.is_some() => return Err(Ended::Overdue),
            received = incoming.next::<Marked>(), if is_open && waiting.len() < WAITING_MAX => {
                let received = match received {
                    // What came before of this one is whole.
                    Err(Ended::Lost(error)) if !is_slow(&error) => None,
                    received => received?,
                };
                let Some(received) = received else {
                    is_open = false;
                    if stopping.is_begun() {
                        waiting.clear();
                    } else {
                        gone.get_or_insert_with(Instant::now);
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
                    send(&mut outgoing, &answer, &mut gone).await?;
                }
                if let Some(sign) = beaten.sign {
                    session.pulse().note(sign);
                }
            }
        }
    }
}

/// Answers, unless the node has gone: what it has said before is here, or still comes.
async fn send(
    outgoing: &mut Outgoing<impl AsyncWrite + Unpin + Send>,
    answer: &Bytes,
    gone: &mut Option<Instant>,
) -> Result<(), Ended> {
    match outgoing.send(answer).await {
        Err(Ended::Lost(_)) => {
            gone.get_or_insert_with(Instant::now);
            Ok(())
        }
        sent => sent,
    }
}

/// Resolves when the node has been gone for a while.
async fn left(gone: Option<Instant>) {
    match gone {
        Some(gone) => sleep_until(gone + LEFT_TIME).await,
        None => pending().await,
    }
}

/// What is under way, if anything is.
async fn going<T>(slot: &mut Option<Going<'_, T>>) -> T {
    match slot {
        Some(going) => going.as_mut().await,
        None => pending().await,
    }
}
