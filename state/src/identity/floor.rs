//! Below what no node is to serve: so that nobody who can set up or restart one makes a cluster less safe than it was.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::command::{Answer, Effect, Reply};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::identity::{Identity, Refusal};
use crate::ids::TimeMs;
use crate::limits::{TOKEN_BY_BYTES_MAX, within};
use crate::state::State;

/// How a node is protected, from what is asked of nobody to what is asked of everybody. Each has all of those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Ports take plain text only, or some of them do.
    #[default]
    Off,
    /// The peer port and the client port take TLS, and perhaps plain text.
    Permissive,
    /// It is counted who calls what that is not for them.
    Rehearse,
    /// The peer port and the client port take TLS only, and such calls are refused.
    Enforce,
    /// The http port takes TLS only.
    Strict,
}

impl Mode {
    /// In ascending order.
    pub const ALL: [Self; 5] = [Self::Off, Self::Permissive, Self::Rehearse, Self::Enforce, Self::Strict];

    /// As people write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Permissive => "permissive",
            Self::Rehearse => "rehearse",
            Self::Enforce => "enforce",
            Self::Strict => "strict",
        }
    }
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|mode| mode.word() == text);
        known.ok_or("must be off, permissive, rehearse, enforce or strict")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The least that nodes are to be protected by, and who said so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Floor {
    pub mode: Mode,
    /// Who wanted it, for people; empty: nobody ever said it.
    pub by: String,
    /// Log time.
    pub since: TimeMs,
}

/// What changes it. Part of feature level 11.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// From now on nodes are to be protected at least so. Whoever lowers it from `enforce` or above must have proved to be an
    /// operator. The same again changes nothing.
    SetFloor {
        mode: Mode,
        /// Who wants it, for people.
        by: String,
    },
}

impl State {
    /// The least that nodes are to be protected by.
    #[must_use]
    pub fn floor(&self) -> &Floor {
        &self.floor
    }

    /// Whether whoever uses what somebody has opened must prove to be that one.
    pub(crate) fn wants_identities(&self) -> bool {
        self.floor.mode >= Mode::Enforce
    }

    /// `by_proof`: who proposed it, if that is known.
    pub(crate) fn apply_identity(
        &mut self,
        context: &ApplyContext,
        command: Command,
        by_proof: Option<&Identity>,
        effects: &mut Vec<Effect>,
    ) -> Reply {
        let Command::SetFloor { mode, by } = command;
        within("bytes of who wants it", by.len() as u64, TOKEN_BY_BYTES_MAX as u64)?;
        let is_operator = matches!(by_proof, Some(Identity::Operator(_)));
        if mode < self.floor.mode && self.wants_identities() && !is_operator {
            return Err(Fault::from(Refusal::OperatorsOnly));
        }
        if mode != self.floor.mode {
            self.floor = Floor { mode, by, since: context.now_ms };
            // As with what else is said of nodes.
            effects.push(Effect::MemberChanged);
        }
        Ok(Answer::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_written_and_each_is_above_the_one_before() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!(Mode::ALL.is_sorted() && Mode::default() == Mode::ALL[0]);
        assert!("Strict".parse::<Mode>().is_err() && "log".parse::<Mode>().is_err());
    }
}
