//! What stands in a cell of the table.

/// What a role may do with an RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Call it.
    Yes,
    /// Call it within its own job, or its own jobs.
    Job,
    /// Call it of itself only: its own task, session, process or name; and, who belongs to a job, within that.
    Itself,
    /// Nothing.
    No,
}

impl Right {
    /// What stands in the cell.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Yes => 'y',
            Self::Job => 'j',
            Self::Itself => 's',
            Self::No => '-',
        }
    }

    /// That of a letter. Tables are written in constants, so a wrong letter does not compile.
    pub(crate) const fn of(letter: u8) -> Self {
        match letter {
            b'y' => Self::Yes,
            b'j' => Self::Job,
            b's' => Self::Itself,
            b'-' => Self::No,
            _ => panic!("a cell is y, j, s or -"),
        }
    }
}
