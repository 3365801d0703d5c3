//! Why a text is not an identity.

use std::error::Error;
use std::fmt;

use crate::{IDENTITY_BYTES_MAX, NAME_BYTES_MAX, TRUST_DOMAIN_BYTES_MAX};

/// Why a text is not an identity, or not one of the realm. No variant carries the text, which is anybody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// Longer than [`IDENTITY_BYTES_MAX`].
    TooLong,
    /// Not `spiffe://` and something.
    Scheme,
    /// The host is not a trust domain.
    TrustDomain,
    /// The path does not begin with `/tripod/`.
    NotOurs,
    /// The cluster's name is not one.
    Cluster,
    /// Behind the cluster stands no kind of ours.
    Kind,
    /// The node's name is not one.
    Node,
    /// The operator's or viewer's name is not one.
    Person,
    /// The job's name is not one.
    Job,
    /// The task's number is not one.
    Task,
    /// Something stands behind a whole identity.
    Rest,
    /// Among the URIs is none of ours.
    None,
    /// Among the URIs are two of SPIFFE.
    Several,
    /// The identity is of another trust domain.
    OtherTrustDomain,
    /// The identity is of another cluster.
    OtherCluster,
}

impl Refused {
    /// One word for labels of figures and for the audit log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Scheme => "scheme",
            Self::TrustDomain => "trust_domain",
            Self::NotOurs => "not_ours",
            Self::Cluster => "cluster",
            Self::Kind => "kind",
            Self::Node => "node",
            Self::Person => "person",
            Self::Job => "job",
            Self::Task => "task",
            Self::Rest => "rest",
            Self::None => "none",
            Self::Several => "several",
            Self::OtherTrustDomain => "other_trust_domain",
            Self::OtherCluster => "other_cluster",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |out: &mut fmt::Formatter<'_>, whose: &str| {
            write!(
                out,
                "the {whose}'s name is not 1 to {NAME_BYTES_MAX} of a-z, 0-9, `-`, `_` and `.`, the first a letter or digit"
            )
        };
        match self {
            Self::TooLong => write!(out, "the URI has more than {IDENTITY_BYTES_MAX} bytes"),
            Self::Scheme => out.write_str("the URI does not begin with spiffe://"),
            Self::TrustDomain => {
                write!(
                    out,
                    "the trust domain is not 1 to {TRUST_DOMAIN_BYTES_MAX} of a-z, 0-9, `-`, `_` and `.`"
                )
            }
            Self::NotOurs => out.write_str("the path of the URI does not begin with /tripod/"),
            Self::Cluster => name(out, "cluster"),
            Self::Kind => out.write_str(
                "behind the cluster is none of node, operator, viewer, job/JOB/agent, task, driver, worker, store",
            ),
            Self::Node => name(out, "node"),
            Self::Person => name(out, "operator or viewer"),
            Self::Job => name(out, "job"),
            Self::Task => out.write_str("the task's number is not one of 0 to 2147483647 without leading zeros"),
            Self::Rest => out.write_str("more stands behind the identity"),
            Self::None => out.write_str("the certificate has no URI of SPIFFE"),
            Self::Several => out.write_str("the certificate has more than one URI of SPIFFE"),
            Self::OtherTrustDomain => out.write_str("the identity is of another trust domain"),
            Self::OtherCluster => out.write_str("the identity is of another cluster"),
        }
    }
}

impl Error for Refused {}
