//! One direction of one connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::condition::{Condition, Flow};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces under way at most: with the kernel's own buffers, what a sender can write before it notices.
const PIECES: usize = 64;
/// How much of a narrow line's second one piece may take.
const SLOW_PIECES_PER_SECOND: u64 = 20;

/// Which of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// The connection cannot go on: one end reset it.
#[derive(Debug)]
pub(super) struct Broken;

/// A piece and when it may arrive.
struct Piece {
    due: Instant,
    content: Content,
}

enum Content {
    Bytes(Bytes),
    /// The sender will send no more.
    End,
    /// The sender reset the connection.
    Reset,
}

impl Direction {
    fn flow(self, condition: &watch::Receiver<Condition>) -> Flow {
        let condition = *condition.borrow();
        match self {
            Self::Forward => condition.forward,
            Self::Backward => condition.backward,
        }
    }
}

/// Carries bytes until the sender ends its side.
///
/// # Errors
/// [`Broken`], as late as the news of it may arrive.
pub(super) async fn pump(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    condition: watch::Receiver<Condition>,
    direction: Direction,
) -> Result<(), Broken> {
    let (pieces, arriving) = mpsc::channel(PIECES);
    let take = take(from, pieces, &condition, direction);
    let give = give(to, arriving, condition.clone(), direction);
    tokio::pin!(take, give);
    tokio::select! {
        // Who cannot write needs to read no more.
        written = &mut give => written,
        () = &mut take => give.await,
    }
}

/// Reads until the sender ends; what is read is stamped with the time at which it may arrive.
async fn take(
    mut from: ReadHalf<'_>,
    pieces: mpsc::Sender<Piece>,
    condition: &watch::Receiver<Condition>,
    direction: Direction,
) {
    let mut due = Instant::now();
    loop {
        let mut buffer = BytesMut::with_capacity(PIECE_BYTES);
        let content = match from.read_buf(&mut buffer).await {
            Ok(0) => Content::End,
            Ok(_) => Content::Bytes(buffer.freeze()),
            Err(_) => Content::Reset,
        };
        // A piece never overtakes another, whatever was drawn for it.
        due = due.max(Instant::now() + delay(direction.flow(condition)));
        let last = !matches!(content, Content::Bytes(_));
        if pieces.send(Piece { due, content }).await.is_err() || last {
            return;
        }
    }
}

fn delay(flow: Flow) -> Duration {
    let Flow::Delay { least_ms, jitter_ms } = flow else { return Duration::ZERO };
    Duration::from_millis(least_ms + rand::rng().random_range(0..=jitter_ms))
}

async fn give(
    mut to: WriteHalf<'_>,
    mut arriving: mpsc::Receiver<Piece>,
    mut condition: watch::Receiver<Condition>,
    direction: Direction,
) -> Result<(), Broken> {
    while let Some(Piece { due, content }) = arriving.recv().await {
        tokio::time::sleep_until(due).await;
        while direction.flow(&condition) == Flow::Swallow {
            // Nobody is left to end it: the whole connection is about to end.
            condition.changed().await.map_err(|_| Broken)?;
        }
        match content {
            Content::Bytes(bytes) => write(&mut to, &bytes, &condition, direction).await?,
            Content::End => return to.shutdown().await.map_err(|_| Broken),
            Content::Reset => return Err(Broken),
        }
    }
    Ok(())
}

async fn write(
    to: &mut WriteHalf<'_>,
    bytes: &[u8],
    condition: &watch::Receiver<Condition>,
    direction: Direction,
) -> Result<(), Broken> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = match direction.flow(condition) {
            Flow::Slow { bytes_per_second } => {
                let piece = usize::try_from(bytes_per_second / SLOW_PIECES_PER_SECOND).unwrap_or(usize::MAX);
                let piece = rest.len().min(piece.max(1));
                let share = u32::try_from(piece).unwrap_or(u32::MAX);
                tokio::time::sleep(Duration::from_secs(1) * share / slow_rate(bytes_per_second)).await;
                rest.split_at(piece)
            }
            _ => (rest, &rest[..0]),
        };
        to.write_all(now).await.map_err(|_| Broken)?;
        rest = later;
    }
    Ok(())
}

fn slow_rate(bytes_per_second: u64) -> u32 {
    u32::try_from(bytes_per_second).unwrap_or(u32::MAX).max(1)
}
