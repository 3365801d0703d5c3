//! The codes of findings.

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    NeverCame,
    CameAndGone,
    Elsewhere,
    WaitsForKey,
    Busy,
    Late,
    Frozen,
    HostSilent,
    Ended,
    Gone,
    Timeouts,
    InError,
    NoQuorum,
    Leaderless,
    NodeCut,
    DiskSlow,
    LeaderPaused,
    ApplyBacklog,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::NeverCame,
        Self::CameAndGone,
        Self::Elsewhere,
        Self::WaitsForKey,
        Self::Busy,
        Self::Late,
        Self::Frozen,
        Self::HostSilent,
        Self::Ended,
        Self::Gone,
        Self::Timeouts,
        Self::InError,
        Self::NoQuorum,
        Self::Leaderless,
        Self::NodeCut,
        Self::DiskSlow,
        Self::LeaderPaused,
        Self::ApplyBacklog,
    ];

    /// The number, a contract, and the word for people.
    #[must_use]
    pub fn parts(self) -> (u16, &'static str) {
        match self {
            Self::NeverCame => (7101, "never-came"),
            Self::CameAndGone => (7102, "came-and-gone"),
            Self::Elsewhere => (7103, "elsewhere"),
            Self::WaitsForKey => (7104, "waits-for-key"),
            Self::Busy => (7105, "busy"),
            Self::Late => (7106, "late"),
            Self::Frozen => (7107, "frozen"),
            Self::HostSilent => (7108, "host-silent"),
            Self::Ended => (7109, "ended"),
            Self::Gone => (7110, "gone"),
            Self::Timeouts => (7111, "timeouts"),
            Self::InError => (7113, "in-error"),
            Self::NoQuorum => (7201, "no-quorum"),
            Self::Leaderless => (7202, "leaderless"),
            Self::NodeCut => (7203, "node-cut"),
            Self::DiskSlow => (7204, "disk-slow"),
            Self::LeaderPaused => (7205, "leader-paused"),
            Self::ApplyBacklog => (7206, "apply-backlog"),
        }
    }

    /// The number with its letter in front.
    #[must_use]
    pub fn number(self) -> String {
        format!("T{}", self.parts().0)
    }

    /// The word alone.
    #[must_use]
    pub fn slug(self) -> &'static str {
        self.parts().1
    }

    /// Both, as they stand before a text.
    #[must_use]
    pub fn name(self) -> String {
        format!("{} {}", self.number(), self.slug())
    }
}
