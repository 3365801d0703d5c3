//! What comes out.

use crate::{Code, Facts, Safety};

/// Where the cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Launcher,
    Program,
    Host,
    Network,
    Coordinator,
    /// A setting of the job, or of its clients.
    Settings,
    /// Host or network: one witness cannot tell them apart.
    HostOrNetwork,
}

impl Where {
    /// A word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Launcher => "launcher",
            Self::Program => "program",
            Self::Host => "host",
            Self::Network => "network",
            Self::Coordinator => "coordinator",
            Self::Settings => "settings",
            Self::HostOrNetwork => "host-or-network",
        }
    }

    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Launcher => "launcher or host",
            Self::HostOrNetwork => "program, host or network",
            other => other.word(),
        }
    }
}

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sure {
    /// By the word of the replicated state, or of whoever started a process.
    Certain,
    Likely,
}

impl Sure {
    /// A word for programs and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    pub place: Where,
    pub sure: Sure,
    /// What is wrong, in one line without its code.
    pub text: String,
    /// For how long, if that is known.
    pub since_ago_ms: Option<u64>,
    /// Whose fault it is, or about whom it is: ascending.
    pub tasks: Vec<i32>,
    /// Who waits where, of tasks that wait for each other: the name of a place and who is there.
    pub parties: Vec<(String, Vec<i32>)>,
    /// Labels and what is said of them.
    pub lines: Vec<(String, String)>,
    /// What to do next.
    pub next: Vec<String>,
}

/// The outcome. The first finding is the answer; without one nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis<'a> {
    pub facts: &'a Facts,
    pub findings: Vec<Finding>,
    pub safety: Safety,
}
