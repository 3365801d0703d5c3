//! Rules that transcripts cannot show well: late looks, bounds, damaged snapshots.

mod bounds;
mod clusters;
mod events;
mod identities;
mod level_4;
mod level_5;
mod levels;
mod members;
mod memory;
mod origins;
mod restored;
mod schedulers;
mod sessions;
mod slow_waiters;
mod snapshots;
mod support;
mod tokens;
