//! What is made of a graph: by its text, by refusals, and by computing it twice, as a whole and chunk by chunk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod cell;
mod choices;
mod chunked;
mod dense;
mod direct;
mod functions;
mod properties;
mod random;
mod refusals;
mod rules;
mod support;
mod transcripts;
