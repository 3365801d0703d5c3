//! Who calls, as a gate sees it.

use std::collections::BTreeSet;
use std::fmt;

use tripod_identity::{Identity, JobName, Kind, NodeName, TaskNumber};

use crate::{Grant, Role};

/// Who calls: of one connection, made when that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Nothing is known of it.
    Anonymous,
    /// Nobody had to say who it is: it may what everybody could before there were identities.
    Legacy,
    /// It proved a name to which nothing was granted.
    Ungranted(Identity),
    /// It came by a port of this job that asks for no certificate: a task of it, and nothing else.
    Listener(JobName),
    /// It proved this.
    Proved {
        /// What.
        identity: Identity,
        /// As what it calls.
        role: Role,
        /// The jobs of an owner.
        owned: BTreeSet<JobName>,
        /// Whether it was a token that proved it, and not a certificate.
        is_by_token: bool,
    },
}

/// Within what somebody may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope<'a> {
    /// Everything.
    Everywhere,
    /// A job.
    Job(&'a JobName),
    /// Some jobs.
    Jobs(&'a BTreeSet<JobName>),
}

impl Caller {
    /// Who proved this identity. Of operators and viewers the grant for their name counts, of everybody else the identity alone.
    #[must_use]
    pub fn of(identity: Identity, grant: Grant) -> Self {
        let alone = |role| Some((role, BTreeSet::new()));
        let granted = match &identity.kind {
            Kind::Node(_) => alone(Role::Node),
            Kind::Agent(_) => alone(Role::Agent),
            Kind::Task { .. } => alone(Role::Task),
            Kind::Driver(_) => alone(Role::Driver),
            Kind::Worker(_) => alone(Role::Worker),
            Kind::Store(_) => alone(Role::Store),
            Kind::Operator(_) => match grant {
                Grant::Nothing => None,
                Grant::Viewer => alone(Role::Viewer),
                Grant::Owner(jobs) => Some((Role::Owner, jobs)),
                Grant::Operator => alone(Role::Operator),
            },
            Kind::Viewer(_) => match grant {
                Grant::Nothing => None,
                Grant::Viewer | Grant::Owner(_) | Grant::Operator => alone(Role::Viewer),
            },
        };
        match granted {
            Some((role, owned)) => Self::Proved { identity, role, owned, is_by_token: false },
            None => Self::Ungranted(identity),
        }
    }

    /// Who proved this identity, as far as its path goes: for a cluster that knows no grants.
    #[must_use]
    pub fn by_path(identity: Identity) -> Self {
        let grant = match &identity.kind {
            Kind::Operator(_) => Grant::Operator,
            Kind::Viewer(_) => Grant::Viewer,
            _ => Grant::Nothing,
        };
        Self::of(identity, grant)
    }

    /// The same, of which a token has proved who it is.
    #[must_use]
    pub fn by_token(self) -> Self {
        match self {
            Self::Proved { identity, role, owned, .. } => {
                Self::Proved { identity, role, owned, is_by_token: true }
            }
            other => other,
        }
    }

    /// Whether a token has proved who it is.
    #[must_use]
    pub fn is_by_token(&self) -> bool {
        matches!(self, Self::Proved { is_by_token: true, .. })
    }

    /// As what it calls; `None` if it is nobody.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Anonymous | Self::Legacy | Self::Ungranted(_) => None,
            Self::Listener(_) => Some(Role::Task),
            Self::Proved { role, .. } => Some(*role),
        }
    }

    /// Whether it acts within some jobs only.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.role().is_some() && self.scope() != Scope::Everywhere
    }

    pub(crate) fn scope(&self) -> Scope<'_> {
        match self {
            Self::Listener(job) => Scope::Job(job),
            Self::Proved { role: Role::Owner, owned, .. } => Scope::Jobs(owned),
            Self::Proved { identity, .. } => identity.kind.job().map_or(Scope::Everywhere, Scope::Job),
            Self::Anonymous | Self::Legacy | Self::Ungranted(_) => Scope::Everywhere,
        }
    }

    /// Which task of its job it proved to be.
    pub(crate) fn task(&self) -> Option<TaskNumber> {
        match self {
            Self::Proved { identity: Identity { kind: Kind::Task { number, .. }, .. }, .. } => *number,
            _ => None,
        }
    }

    /// Which node it proved to be.
    pub(crate) fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Proved { identity: Identity { kind: Kind::Node(name), .. }, .. } => Some(name),
            _ => None,
        }
    }
}

/// Whom figures and logs name: a word, or the path of the identity behind its cluster.
impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => out.write_str("anonymous"),
            Self::Legacy => out.write_str("legacy"),
            Self::Listener(job) => write!(out, "listener/{job}"),
            Self::Ungranted(identity) | Self::Proved { identity, .. } => write!(out, "{}", identity.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GRANTED_JOBS_MAX, TooMany};

    fn identity(path: &str) -> Identity {
        format!("spiffe://example.org/tripod/main/{path}").parse().unwrap()
    }

    #[test]
    fn the_path_is_the_upper_bound_of_the_grant() {
        let jobs = || Grant::of_jobs(["a".parse().unwrap()]).unwrap();
        let role = |path, grant| Caller::of(identity(path), grant).role();
        assert_eq!(role("operator/x", Grant::Operator), Some(Role::Operator));
        assert_eq!(role("operator/x", jobs()), Some(Role::Owner));
        assert_eq!(role("operator/x", Grant::Viewer), Some(Role::Viewer));
        for grant in [Grant::Operator, jobs(), Grant::Viewer] {
            assert_eq!(role("viewer/x", grant.clone()), Some(Role::Viewer));
            assert_eq!(role("job/a/task", grant), Some(Role::Task));
        }
        for path in ["operator/x", "viewer/x"] {
            let caller = Caller::of(identity(path), Grant::Nothing);
            assert!(matches!(caller, Caller::Ungranted(_)) && caller.role().is_none());
        }
    }

    #[test]
    fn by_a_token_one_calls_as_by_a_certificate() {
        let caller = Caller::by_path(identity("job/a/task/3"));
        let bearer = caller.clone().by_token();
        assert!(bearer.is_by_token() && !caller.is_by_token());
        assert_eq!((bearer.role(), bearer.task()), (caller.role(), caller.task()));
        assert_eq!((bearer.to_string(), bearer.scope()), (caller.to_string(), caller.scope()));
        assert!(!Caller::Anonymous.by_token().is_by_token());
    }

    #[test]
    fn a_grant_names_so_many_jobs_and_no_more() {
        let jobs = |count: usize| (0..count).map(|job| format!("j{job}").parse().unwrap());
        assert!(Grant::of_jobs(jobs(GRANTED_JOBS_MAX).chain(jobs(1))).is_ok());
        assert_eq!(Grant::of_jobs(jobs(GRANTED_JOBS_MAX + 1)), Err(TooMany));
    }
}
