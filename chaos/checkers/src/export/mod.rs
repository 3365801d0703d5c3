//! Histories as checkers of other people read them, so that nobody has to believe ours.
//!
//! # What it promises
//! What is exported is never stricter than what was seen: where a format cannot say something, such as a
//! compare-and-set by version, less is claimed, and how often is told. So a checker that refuses an exported history has
//! found something. What surely had no effect, and what was refused, is `:fail`; what may have had one is `:info`, and
//! may take effect until the end of the history.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | `select` | the calls on one kind of objects |
//! | `processes` | who called, so that nobody calls again behind a call that is still open |
//! | `counters` | increments with one stamp are one |
//! | `versions` | which value a version stands for |
//! | `porcupine` | operations as lines of JSON |
//! | `edn` | events as lines of EDN |
//! | `jepsen`, `elle` | what Jepsen's checkers with Knossos, and Elle, make of a call |

mod counters;
mod edn;
mod elle;
mod jepsen;
#[cfg(test)]
mod outside;
mod porcupine;
mod processes;
mod select;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;

use crate::history::{History, Key};

/// How a history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Operations for Porcupine, one line of JSON each, with all that is known of them.
    Porcupine,
    /// Transactions for Elle, as EDN: lists that are appended to, or registers.
    Elle,
    /// Events for Knossos and Jepsen's own checkers, as EDN: registers, or counters.
    JepsenEdn,
}

/// What was called upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    Registers,
    Lists,
    Counters,
}

/// A history in another form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// All lines.
    pub text: String,
    /// Calls that are in it.
    pub operations: usize,
    /// What is not said in it, or said more weakly than it was seen: why, and of how many calls.
    pub notes: BTreeMap<&'static str, usize>,
}

impl Objects {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::Lists => "lists",
            Self::Counters => "counters",
        }
    }
}

impl Format {
    /// What is exported if nobody says: what the format is best at.
    #[must_use]
    pub fn usual(self) -> Objects {
        match self {
            Self::Elle => Objects::Lists,
            Self::Porcupine | Self::JepsenEdn => Objects::Registers,
        }
    }
}

/// Writes the calls of a history on `objects`, or on one of them, for others.
///
/// # Errors
/// The history has no such call, or the format cannot say what such objects do.
pub fn export(
    history: &History,
    format: Format,
    objects: Objects,
    key: Option<&Key>,
) -> anyhow::Result<Exported> {
    let mut selected = select::select(history, objects, key)?;
    let mut notes = BTreeMap::new();
    if objects == Objects::Counters {
        counters::count_once(&mut selected, format == Format::JepsenEdn, &mut notes);
    }
    let (text, operations) = match (format, objects) {
        (Format::Porcupine, _) => porcupine::text(&selected, history.end(), &mut notes),
        (Format::Elle, Objects::Lists) => edn::text(&elle::lists(&selected)),
        (Format::Elle, Objects::Registers) => edn::text(&elle::registers(&selected, &mut notes)),
        (Format::JepsenEdn, Objects::Registers) => {
            edn::text(&jepsen::registers(&selected, key.is_some(), &mut notes))
        }
        (Format::JepsenEdn, Objects::Counters) => edn::text(&jepsen::counters(&selected, key.is_some())),
        (Format::Elle, Objects::Counters) => {
            anyhow::bail!("Elle has no model of counters; jepsen-edn and porcupine have")
        }
        (Format::JepsenEdn, Objects::Lists) => {
            anyhow::bail!("Knossos has no model of lists; elle and porcupine have")
        }
    };
    anyhow::ensure!(operations > 0, "no call is left that this format can say; {notes:?}");
    Ok(Exported { text, operations, notes })
}
