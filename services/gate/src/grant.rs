//! What was granted to an operator or a viewer by name.

use std::collections::BTreeSet;
use std::fmt;

use tripod_identity::JobName;

/// Jobs that one grant names at most.
pub const GRANTED_JOBS_MAX: usize = 1_000;

/// What was granted to a name. A certificate's path is the upper bound of it: a viewer is no operator by grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Grant {
    /// Nothing.
    #[default]
    Nothing,
    /// To look.
    Viewer,
    /// To operate these jobs: who owns them.
    Owner(BTreeSet<JobName>),
    /// To operate the cluster, and every job.
    Operator,
}

/// A grant would name more than [`GRANTED_JOBS_MAX`] jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl Grant {
    /// To own these jobs.
    ///
    /// # Errors
    /// They are too many.
    pub fn of_jobs(jobs: impl IntoIterator<Item = JobName>) -> Result<Self, TooMany> {
        let mut owned = BTreeSet::new();
        for job in jobs {
            if owned.len() == GRANTED_JOBS_MAX && !owned.contains(&job) {
                return Err(TooMany);
            }
            owned.insert(job);
        }
        Ok(Self::Owner(owned))
    }
}

impl fmt::Display for TooMany {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "a grant names at most {GRANTED_JOBS_MAX} jobs; give more than one name grants, or make it an operator"
        )
    }
}

impl std::error::Error for TooMany {}
