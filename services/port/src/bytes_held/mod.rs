//! Bytes that are held for clients: requests that come and run, calls that wait, answers that nobody has read yet.
//!
//! Each connection has an [`Account`] of the node's [`Budget`]. What is held is a [`Charge`], which gives its bytes back
//! when it is dropped, however that comes about. Requests and answers are counted and waited for each by themselves, so that
//! answers never wait for requests that wait for answers. Only who waits takes a lock.
//!
//! | module | holds |
//! |---|---|
//! | `limits` | how much there may be |
//! | `budget` | what the node holds |
//! | `identity_share` | what it holds for one identity, by all of its connections |
//! | `account` | what it holds for one connection |
//! | `direction_account` | who waits for room in one direction of a connection |
//! | `turn` | one who waits |
//! | `charge` | bytes that are held |
//! | `call` | those of one call's request |
//! | `reserved` | answers that cost as much before they are sent |
//! | `short` | what is told when there is no room |

mod account;
mod budget;
mod call;
mod charge;
mod direction_account;
mod identity_share;
mod limits;
mod reserved;
mod short;
mod turn;

pub use account::{Account, Direction};
pub use budget::Budget;
pub use call::CallBytes;
pub use charge::Charge;
pub(crate) use limits::OP_BYTES;
pub use limits::{CALL_BYTES, CONNECTION_BYTES_FREE, CONNECTION_WINDOW_BYTES, MemoryLimits};
pub use reserved::{Making, Reserved};
pub use short::Short;
pub use turn::Turn;

#[cfg(test)]
mod tests;
