//! Reusable variables: what a worker makes once and its tasks use, such as a model or a connection.
//!
//! | module | what |
//! |---|---|
//! | `declared` | how a variable is made and made anew |
//! | `kept` | the instances of one life of a worker |
//! | `uses` | the instances that one running task has taken |
//! | `export` | a value on its way from a driver to the workers |
//! | `error` | why there is no variable |

mod declared;
mod error;
mod export;
mod kept;
mod uses;

pub(crate) use declared::Declared;
pub use declared::Reusable;
pub use error::{ExportError, ReusableError};
pub(crate) use export::write;
pub(crate) use kept::Reusables;
pub use uses::ReusableGuard;
pub(crate) use uses::Uses;
