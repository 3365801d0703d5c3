//! A protocol of lines of text, which no client speaks: the smallest front end there can be. Whoever adds a protocol reads
//! this first; its test serves it beside another one, kills nothing and loses nothing.
//!
//! | line | answer |
//! |---|---|
//! | `put KEY VALUE` | `ok`, when it is durable on a quorum |
//! | `get KEY` | `ok VALUE`, as everybody sees it |
//!
//! Anything else is answered `error WHY`, and the connection goes on; a line that is too long, or has begun and does not end
//! within [`LINE_TIME`], ends it.
//!
//! # What this crate does not know
//! How connections are accepted, counted and left (`tripod-port`), how a command is replicated (`tripod-gateway`), and what a
//! key may be (`tripod-state`).

mod front_end;
mod line;

pub use front_end::{Echo, LINE_TIME, PORT};
pub use line::LINE_BYTES_MAX;
