//! Who did what: lines of JSON, each of which has the SHA-256 of the line before, in files of bounded size.
//!
//! ```text
//! {"seq":17,"prev":"4f…","at_ms":1790000000000,"node":"n1","who":"operator/alice","kind":"operator","how":"cert", ...}
//! ```
//!
//! A line that is taken out, added, moved or changed is found by whoever has the files ([`verify`]), unless it and all lines
//! behind it were written anew; so whoever must prove more keeps a line elsewhere now and then. A file ends where its process
//! ended: that lines are missing at the end can be seen only by such a line.
//!
//! # What this crate does not know
//!
//! * What is worth a line, and whose call is refused without one.
//! * [`Log`] knows no clock and no threads: [`Log::append`] writes, [`Log::sync`] makes it durable; both belong on no worker of a
//!   runtime. An [`Auditor`] has a thread for them.
//!
//! # Invariants
//!
//! * A line is written whole or taken back. What a process left unfinished when it ended is cut off, and the next line says so.
//! * No text in a line is longer than its bound, and no byte of it is one of control.
//! * At most so many files of so many bytes, for their user only.
//! * One process writes to a directory at a time; it holds a lock there.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `record` | what a line says |
//! | `line` | a line with its number and the hash of the one before |
//! | `log` | the files |
//! | `names` | which file is which |
//! | `auditor` | who writes lines while a process runs, and for how long a call waits for its own |
//! | `verify` | whether lines follow from each other |

mod auditor;
mod line;
mod log;
mod names;
mod record;
mod verify;

pub use auditor::{Auditor, Complain, PATIENCE, Sink, Sinks, Unwritten, lost};
pub use line::{Hash, LINE_BYTES_MAX};
pub use log::{Limits, Log, OpenError};
pub use names::files;
pub use record::{Change, How, Outcome, Record, TEXT_BYTES_MAX, Text, kind_of, user};
pub use verify::{PROBLEMS_MAX, Problem, Verified, What, verify};
