//! What a checker says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::history::{Operation, OperationId};

/// Violations that one checker tells in full. One mistake often shows in every later operation.
pub const VIOLATIONS_TOLD: usize = 10;

/// One rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The rule's short name, such as `stale-read`.
    pub rule: String,
    /// What it happened to: a key, a barrier, a task.
    pub subject: String,
    /// What is wrong, in plain words.
    pub explanation: String,
    /// The operations that show it, as few as were cheap to find.
    pub operations: Vec<OperationId>,
    /// The same operations, spelt out.
    pub evidence: Vec<String>,
}

/// What one checker found in one history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The checker's name.
    pub checker: String,
    /// How many operations it looked at. A checker that looked at none proves nothing.
    pub examined: u64,
    pub conclusion: Conclusion,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Every rule held.
    Held,
    /// Rules were broken: the first of them, and how many there are in all.
    Violated { violations: Vec<Violation>, total: u64 },
    /// The check ran out of its budget and says neither yes nor no.
    Undecided(String),
    /// The history itself is no good: the harness made a mistake.
    Void(String),
}

impl Violation {
    /// A violation that these operations show.
    #[must_use]
    pub fn new(rule: &str, subject: impl fmt::Display, explanation: String, shown: &[&Operation]) -> Self {
        let mut shown = shown.to_vec();
        shown.sort_by_key(|operation| (operation.invoked, operation.id));
        shown.dedup_by_key(|operation| operation.id);
        Self {
            rule: rule.to_owned(),
            subject: subject.to_string(),
            explanation,
            operations: shown.iter().map(|operation| operation.id).collect(),
            evidence: shown.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Checked {
    /// A check that told these violations; none: it held.
    #[must_use]
    pub fn told(checker: &str, examined: usize, mut violations: Vec<Violation>) -> Self {
        let total = violations.len() as u64;
        violations.truncate(VIOLATIONS_TOLD);
        let conclusion =
            if total == 0 { Conclusion::Held } else { Conclusion::Violated { violations, total } };
        Self { checker: checker.to_owned(), examined: examined as u64, conclusion }
    }

    /// A check that cannot be made because the harness made a mistake.
    #[must_use]
    pub fn void(checker: &str, examined: usize, reason: String) -> Self {
        let conclusion = Conclusion::Void(reason);
        Self { checker: checker.to_owned(), examined: examined as u64, conclusion }
    }

    /// A check that ran out of its budget before it found a violation.
    #[must_use]
    pub fn undecided(checker: &str, examined: usize, reason: String) -> Self {
        let conclusion = Conclusion::Undecided(reason);
        Self { checker: checker.to_owned(), examined: examined as u64, conclusion }
    }

    /// Whether every rule held.
    #[must_use]
    pub fn held(&self) -> bool {
        self.conclusion == Conclusion::Held
    }

    /// The violations that are told; none unless there are some.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        match &self.conclusion {
            Conclusion::Violated { violations, .. } => violations,
            Conclusion::Held | Conclusion::Undecided(_) | Conclusion::Void(_) => &[],
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {}", self.rule, self.subject, self.explanation)?;
        for line in &self.evidence {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}
