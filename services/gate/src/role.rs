//! The columns of the table.

/// As what somebody calls: a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A voter or learner.
    Node,
    /// Who operates the cluster, and every job in it.
    Operator,
    /// Who looks.
    Viewer,
    /// Who owns some jobs: an operator of those by grant.
    Owner,
    /// All tasks of a job on a host.
    Agent,
    /// A task of a job.
    Task,
    /// A program that gives work to a job's scheduler.
    Driver,
    /// A process that does such work.
    Worker,
    /// A process that keeps a job's objects.
    Store,
}

impl Role {
    /// In the order of the table's columns.
    pub const ALL: [Self; 9] = [
        Self::Node,
        Self::Operator,
        Self::Viewer,
        Self::Owner,
        Self::Agent,
        Self::Task,
        Self::Driver,
        Self::Worker,
        Self::Store,
    ];

    /// What heads its column.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Node => 'N',
            Self::Operator => 'A',
            Self::Viewer => 'V',
            Self::Owner => 'O',
            Self::Agent => 'G',
            Self::Task => 'T',
            Self::Driver => 'D',
            Self::Worker => 'W',
            Self::Store => 'S',
        }
    }

    /// What it is called in texts and labels.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
            Self::Owner => "owner",
            Self::Agent => "agent",
            Self::Task => "task",
            Self::Driver => "driver",
            Self::Worker => "worker",
            Self::Store => "store",
        }
    }
}
