//! What calls hold: bytes are counted from the moment when they come until h2 has written the answer.
//!
//! | module | holds |
//! |---|---|
//! | `call` | a call that begins |
//! | `messages` | how long the messages of a request are |
//! | `received` | a request's body, which waits when its connection holds too much |
//! | `weight` | what they become when they are decoded |
//! | `content` | an answer's body, which is made when the connection has room, and handed over in pieces |

mod call;
mod content;
mod messages;
mod received;
mod weight;

pub use call::enter;
pub(crate) use call::enter_op;
pub use content::Content;
pub(crate) use content::Gathered;
pub use received::Received;
