//! Who may make and revoke which tokens: nobody more than one's own rights.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use tripod_state::token::Bearer;

/// Whoever makes, sees or revokes tokens. Who decides what a call may do puts an `Arc` of it among the extensions of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maker {
    /// Of the whole cluster. `name`: as tokens say who made them.
    Operator { name: String },
    /// Of these jobs and of nothing else.
    Owner { name: String, jobs: BTreeSet<String> },
}

/// A token proves more than its maker may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond;

impl Maker {
    /// Whoever proved this name. Where roles are enforced, who is no operator makes tokens of no job: nobody was granted one. Where
    /// they are not, everybody may what everybody always could, by the own name.
    #[must_use]
    pub fn who_proved(name: String, is_operator: bool, is_enforced: bool) -> Self {
        match is_enforced && !is_operator {
            true => Self::Owner { name, jobs: BTreeSet::new() },
            false => Self::Operator { name },
        }
    }

    /// As tokens say who made or revoked them.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Operator { name } | Self::Owner { name, .. } => name,
        }
    }

    /// Whether tokens like this one are the maker's affair: to make them, to see them, and to revoke them.
    ///
    /// # Errors
    /// [`Beyond`].
    pub fn check(&self, bearer: &Bearer) -> Result<(), Beyond> {
        match (self, &bearer.job) {
            (Self::Operator { .. }, _) => Ok(()),
            (Self::Owner { jobs, .. }, Some(job))
                if bearer.kind.is_of_a_job() && jobs.contains(job.as_str()) =>
            {
                Ok(())
            }
            (Self::Owner { .. }, _) => Err(Beyond),
        }
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a token proves no more than its maker may do: owners of jobs make tokens of those jobs; ask an operator")
    }
}

impl Error for Beyond {}
