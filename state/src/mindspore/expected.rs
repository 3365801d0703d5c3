//! How many nodes a job's cluster is to have.

use serde::{Deserialize, Serialize};

use crate::job::Spec;

/// What a node does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    Worker,
    Server,
}

impl Role {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Server => "server",
        }
    }

    /// The role of a job's group of that name.
    fn of_group(name: &str) -> Option<Self> {
        match name {
            "worker" | "MS_WORKER" => Some(Self::Worker),
            "server" | "ps" | "MS_SERVER" | "MS_PSERVER" => Some(Self::Server),
            _ => None,
        }
    }
}

/// How many nodes of each role there are, or are to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Expected {
    pub workers: u32,
    pub servers: u32,
}

impl Expected {
    /// The groups `worker` or `MS_WORKER`, and `server`, `ps`, `MS_SERVER` or `MS_PSERVER`, of a job; where it has no
    /// groups all of its tasks are workers. Other groups count for nothing.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        if spec.groups.is_empty() {
            return Self { workers: spec.tasks, servers: 0 };
        }
        let sum = |role| {
            let groups = spec.groups.iter().filter(|group| Role::of_group(&group.name) == Some(role));
            groups.map(|group| group.tasks).fold(0, u32::saturating_add)
        };
        Self { workers: sum(Role::Worker), servers: sum(Role::Server) }
    }

    /// How many of one role.
    #[must_use]
    pub fn count(self, role: Role) -> u32 {
        match role {
            Role::Worker => self.workers,
            Role::Server => self.servers,
        }
    }

    pub(crate) fn count_mut(&mut self, role: Role) -> &mut u32 {
        match role {
            Role::Worker => &mut self.workers,
            Role::Server => &mut self.servers,
        }
    }

    /// How many together.
    #[must_use]
    pub fn total(self) -> u32 {
        self.workers.saturating_add(self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Group;

    #[test]
    fn groups_of_either_name_are_counted_and_others_are_not() {
        assert_eq!(Expected::of(&Spec::of_tasks(3)), Expected { workers: 3, servers: 0 });
        let group = |name: &str, tasks| Group { name: name.to_owned(), tasks };
        let groups = vec![group("ps", 2), group("MS_WORKER", 4), group("chief", 1), group("MS_PSERVER", 1)];
        let spec = Spec { groups, ..Spec::of_tasks(8) };
        let expected = Expected::of(&spec);
        assert_eq!((expected.workers, expected.servers, expected.total()), (4, 3, 7));
    }
}
