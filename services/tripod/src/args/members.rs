//! Groups of a job's tasks, and where tasks listen: `chief:1,worker:4` and `worker:0=HOST:PORT`.

use std::fmt;
use std::str::FromStr;

use tripod_state::job::Group;

use crate::args::host_port::host_port;

/// The groups of a job, in the order in which their tasks are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    pub(crate) fn as_slice(&self) -> &[Group] {
        &self.0
    }

    /// Tasks of all groups together.
    pub(crate) fn tasks(&self) -> u32 {
        self.0.iter().map(|group| group.tasks).fold(0, u32::saturating_add)
    }
}

impl From<Vec<Group>> for Groups {
    fn from(groups: Vec<Group>) -> Self {
        Self(groups)
    }
}

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let group = |text: &str| {
            let parsed = text.split_once(':').and_then(|(name, tasks)| Some((name, tasks.parse().ok()?)));
            match parsed {
                Some((name, tasks)) if !name.is_empty() => Ok(Group { name: name.to_owned(), tasks }),
                _ => Err(format!("`{text}` is not NAME:TASKS")),
            }
        };
        text.split(',').map(group).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.0.iter().map(|group| format!("{}:{}", group.name, group.tasks));
        f.write_str(&groups.collect::<Vec<_>>().join(","))
    }
}

/// Where one task of a group listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) group: String,
    /// Within the group.
    pub(crate) index: i32,
    /// `HOST:PORT`.
    pub(crate) address: String,
}

impl FromStr for Member {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("`{text}` is not NAME:INDEX=HOST:PORT");
        let (task, address) = text.split_once('=').ok_or_else(bad)?;
        let (group, index) = task.split_once(':').ok_or_else(bad)?;
        let index = index.parse::<u16>().map_err(|_| bad())?;
        let address = host_port(address).map_err(|_| bad())?;
        Ok(Self { group: group.to_owned(), index: index.into(), address })
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.group, self.index, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_as_they_are_written() {
        let groups: Groups = "chief:1,worker:4".parse().expect("legal");
        assert_eq!((groups.tasks(), groups.to_string().as_str()), (5, "chief:1,worker:4"));
        for bad in ["", "worker", "worker:x", ":3", "a:1,", "a:-1"] {
            assert!(bad.parse::<Groups>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_member_is_a_task_and_its_address() {
        let member: Member = "worker:1=[::1]:2222".parse().expect("legal");
        let expected = Member { group: "worker".into(), index: 1, address: "[::1]:2222".into() };
        assert_eq!(member, expected);
        assert_eq!(member.to_string(), "worker:1=[::1]:2222");
        for bad in ["worker:1", "worker=h:1", "worker:x=h:1", "worker:1=h", "worker:-1=h:1"] {
            assert!(bad.parse::<Member>().is_err(), "{bad:?} was accepted");
        }
    }
}
