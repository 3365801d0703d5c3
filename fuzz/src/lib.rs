//! Hostile bytes for everything in this repository that reads bytes of others.
//!
//! A [`Target`] makes inputs that are nearly right and does with any bytes what a node, an agent, a store or a worker does with
//! them. It panics where something that must hold does not: a panic of ours or of a library, what was committed and is not read
//! back, a broken invariant. So is memory or time without measure a finding: see [`drive`](mod@drive).
//!
//! An input is the same for the same seed and number, and what it does is the same whenever it is run, so that a finding is a
//! small file.
//!
//! # What this crate does not know
//! Rules: it asks the state machine whether its invariants hold, and the codecs whether they agree with themselves.
//!
//! # Map
//! | module | what |
//! |---|---|
//! | [`target`](mod@target), `targets` | what is fuzzed |
//! | `source`, `words` | chance, with a taste for extremes; values that mean something to targets |
//! | `message`, `value`, `mutate` | messages from their descriptions, values of serde's types, changes of bytes |
//! | `calls`, `pieces` | inputs of several parts |
//! | `node`, `runtime` | a node in memory, and what its time and its chance are |
//! | [`attempt`](mod@attempt), [`corpus`](mod@corpus) | one input; inputs that are kept |
//! | [`drive`](mod@drive), [`supervise`](mod@supervise) | one process for one target; all of them, and what became of them |

pub mod attempt;
mod calls;
pub mod corpus;
pub mod drive;
mod message;
mod mutate;
mod node;
mod pieces;
mod runtime;
mod source;
pub mod supervise;
pub mod target;
mod targets;
mod value;
mod words;

pub use source::Source;
pub use target::Target;
