//! Tokens: the text that somebody holds, and whether a node believes it.
//!
//! ```text
//! trp_operator_b5kq4w2m7xj3e_SECRET_6ax3k2q
//!     KIND     ID            256 bits  CRC32 of what stands before it
//! ```
//!
//! For callers that cannot hold a certificate: prologs of Slurm, notebooks, CI. The state knows the SHA-256 of the id and the
//! secret and never the secret; the node that makes a token tells it once. The checksum proves nothing: it tells a text that was
//! cut off from one that is wrong, and lets scanners for secrets find ours without asking us.
//!
//! Does not know: how a text came here and whether by TLS, what its bearer may do, or who is asked for a verdict on a call.
//!
//! # Invariants
//!
//! * One token has one text. Whatever is read is written as the same bytes.
//! * A secret is in no text but the token's own: [`Secret`] has no `Debug`, and its memory is overwritten when it goes.
//! * Who is refused learns nothing: [`Refused`] has one text, and the time that a refusal takes does not depend on the secret.
//!
//! | module | holds |
//! |---|---|
//! | `text` | a token's text: made, written and read |
//! | `secret` | 256 bits that nobody else is told |
//! | `verify` | whether a text is believed, and as whom |
//! | `remembered` | what one connection has proved so, until the tokens change |
//! | `maker` | who may make and revoke which tokens |

mod maker;
mod remembered;
mod secret;
mod text;
mod verify;

pub use maker::{Beyond, Maker};
pub use remembered::{Believed, Remembered};
pub use secret::Secret;
pub use text::{Illegible, TOKEN_BYTES_MAX, TokenText};
pub use verify::{REFUSED, Refused, View, Why, verify, verify_join, whose, why};
