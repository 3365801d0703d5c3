//! Agents of hosts that are only played, with the tasks behind them: the wire is real, the processes are not.
//!
//! Each agent has an address of its own on loopback, as each host has; one connection, one stream of calls over it, and one
//! session. What its tasks call are ops of that stream, and their heartbeats are told as agents tell them. When it loses the stream, it opens one at another node and sends what
//! is not answered again, with the same places in the same session: whatever took effect before takes none again.
//!
//! | module | what |
//! |---|---|
//! | `agent` | one agent: its stream, and calls until they are answered |
//! | `fleet` | what all agents of a job share |
//! | `life` | what a task says, and what it is answered |
//! | `numbers` | places of calls in a session |
//! | `heart` | when tasks beat, and what is seen of it |
//! | `beats` | heartbeats of an agent's tasks on their way |
//! | `tally` | how streams ended, and what was sent again |

mod agent;
mod beats;
mod fleet;
mod heart;
mod life;
mod numbers;
mod tally;

pub use agent::{PlayedAgent, Waits};
pub use fleet::{AGENTS_MAX, Fleet};
pub use heart::{BeatsSeen, Heart};
pub use life::Step;
pub use tally::Told;
