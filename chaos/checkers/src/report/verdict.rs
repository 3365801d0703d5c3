//! What a run comes to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::{Checked, Conclusion};

/// The one word about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every promise was kept, as far as the history shows.
    Passed,
    /// So many rules were broken.
    Violated { violations: u64 },
    /// No violation was found, but a checker ran out of its budget.
    Undecided(String),
    /// The run proves nothing: the harness failed.
    Void(String),
}

impl Verdict {
    /// A violation counts even in a run that is void otherwise: what was seen was seen.
    #[must_use]
    pub fn of(checks: &[Checked], void: Option<&str>) -> Self {
        let violations = checks.iter().map(|check| match &check.conclusion {
            Conclusion::Violated { total, .. } => *total,
            Conclusion::Held | Conclusion::Undecided(_) | Conclusion::Void(_) => 0,
        });
        let violations = violations.sum();
        if violations > 0 {
            return Self::Violated { violations };
        }
        if let Some(reason) = void {
            return Self::Void(reason.to_owned());
        }
        for check in checks {
            if let Conclusion::Void(reason) = &check.conclusion {
                return Self::Void(format!("{}: {reason}", check.checker));
            }
        }
        for check in checks {
            if let Conclusion::Undecided(reason) = &check.conclusion {
                return Self::Undecided(format!("{}: {reason}", check.checker));
            }
        }
        Self::Passed
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("Passed"),
            Self::Violated { violations: 1 } => f.write_str("Violated: one rule was broken"),
            Self::Violated { violations } => write!(f, "Violated: {violations} times a rule was broken"),
            Self::Undecided(reason) => write!(f, "Undecided: {reason}"),
            Self::Void(reason) => write!(f, "Void: {reason}"),
        }
    }
}
