//! The whole identity: reading, writing, and the one URI among several.

use std::fmt;
use std::str::FromStr;

use crate::{Kind, Realm, Refused};

/// The longest URI that is read, as SPIFFE has it. The longest that is written has 419 bytes.
pub const IDENTITY_BYTES_MAX: usize = 2048;

const SCHEME: &str = "spiffe://";
const OURS: &str = "tripod/";

/// Who calls. Read from `spiffe://TRUST/tripod/CLUSTER/...`, and written as the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Within what the name means something.
    pub realm: Realm,
    /// As what, and which.
    pub kind: Kind,
}

impl Identity {
    /// The identity among the URIs of a certificate. URIs of other schemes say nothing to us and are passed over.
    ///
    /// # Errors
    /// There is none of SPIFFE, there are two, or the one is not an identity.
    pub fn of_uris<'a>(uris: impl IntoIterator<Item = &'a str>) -> Result<Self, Refused> {
        let mut spiffe = uris.into_iter().filter(|uri| begins_as_spiffe(uri));
        let first = spiffe.next().ok_or(Refused::None)?;
        if spiffe.next().is_some() {
            return Err(Refused::Several);
        }
        first.parse()
    }

    /// The identity, if it is one of the realm.
    ///
    /// # Errors
    /// It is of another trust domain, or of another cluster of this one.
    pub fn within(self, realm: &Realm) -> Result<Self, Refused> {
        if self.realm.trust != realm.trust {
            Err(Refused::OtherTrustDomain)
        } else if self.realm.cluster != realm.cluster {
            Err(Refused::OtherCluster)
        } else {
            Ok(self)
        }
    }
}

/// By whatever case of letters: a second URI must not hide behind capitals, though only small ones are read.
fn begins_as_spiffe(uri: &str) -> bool {
    let scheme = b"spiffe:";
    uri.as_bytes().get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
}

impl FromStr for Identity {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        if text.len() > IDENTITY_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let rest = text.strip_prefix(SCHEME).ok_or(Refused::Scheme)?;
        let (trust, path) = rest.split_once('/').unwrap_or((rest, ""));
        let trust = trust.parse()?;
        let path = path.strip_prefix(OURS).ok_or(Refused::NotOurs)?;
        let (cluster, kind) = path.split_once('/').unwrap_or((path, ""));
        let cluster = cluster.parse()?;
        Ok(Self { realm: Realm { trust, cluster }, kind: Kind::parse(kind)? })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.realm, self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "spiffe://example.org/tripod/main";

    fn refused(text: &str) -> Option<Refused> {
        text.parse::<Identity>().err()
    }

    #[test]
    fn every_kind_is_read_and_written_as_the_same_bytes() {
        let paths = "node/n-1 operator/alice viewer/bob job/train42/agent job/train42/task job/train42/task/0 \
                     job/train42/task/17 job/train42/driver job/train42/worker job/train42/store";
        for path in paths.split_whitespace() {
            let text = format!("{HERE}/{path}");
            let identity: Identity = text.parse().expect("it is one");
            assert_eq!(identity.to_string(), text);
            let job = identity.kind.job().map(ToString::to_string);
            assert_eq!(job.as_deref(), path.starts_with("job").then_some("train42"), "{path}");
        }
    }

    #[test]
    fn each_wrong_part_has_its_own_reason() {
        let cases = [
            ("", Refused::Scheme),
            ("https://example.org/tripod/main/node/a", Refused::Scheme),
            ("SPIFFE://example.org/tripod/main/node/a", Refused::Scheme),
            ("spiffe://", Refused::TrustDomain),
            ("spiffe:///tripod/main/node/a", Refused::TrustDomain),
            ("spiffe://example.org:1/tripod/main/node/a", Refused::TrustDomain),
            ("spiffe://example.org", Refused::NotOurs),
            ("spiffe://example.org/ns/x/sa/y", Refused::NotOurs),
            ("spiffe://example.org//tripod/main/node/a", Refused::NotOurs),
            ("spiffe://example.org/tripod/", Refused::Cluster),
            ("spiffe://example.org/tripod//node/a", Refused::Cluster),
            ("spiffe://example.org/tripod/main", Refused::Kind),
            ("spiffe://example.org/tripod/main/root/a", Refused::Kind),
            ("spiffe://example.org/tripod/main/Node/a", Refused::Kind),
            ("spiffe://example.org/tripod/main/node", Refused::Node),
            ("spiffe://example.org/tripod/main/node/..", Refused::Node),
            ("spiffe://example.org/tripod/main/node/a?x=y", Refused::Node),
            ("spiffe://example.org/tripod/main/node/a#x", Refused::Node),
            ("spiffe://example.org/tripod/main/operator/a%20b", Refused::Person),
            ("spiffe://example.org/tripod/main/viewer/", Refused::Person),
            ("spiffe://example.org/tripod/main/job//agent", Refused::Job),
            ("spiffe://example.org/tripod/main/job/a", Refused::Kind),
            ("spiffe://example.org/tripod/main/job/a/owner", Refused::Kind),
            ("spiffe://example.org/tripod/main/job/a/task/", Refused::Task),
            ("spiffe://example.org/tripod/main/job/a/task/01", Refused::Task),
            ("spiffe://example.org/tripod/main/job/a/task/1/2", Refused::Rest),
            ("spiffe://example.org/tripod/main/job/a/agent/", Refused::Rest),
            ("spiffe://example.org/tripod/main/node/a/", Refused::Rest),
        ];
        for (text, reason) in cases {
            assert_eq!(refused(text), Some(reason), "{text}");
        }
        let long = format!("{HERE}/node/{}", "a".repeat(IDENTITY_BYTES_MAX));
        assert_eq!(refused(&long), Some(Refused::TooLong));
    }

    #[test]
    fn the_longest_that_is_written_is_read() {
        let name = "n".repeat(63);
        let text = format!("spiffe://{}/tripod/{name}/job/{name}/task/2147483647", "t".repeat(255));
        let identity: Identity = text.parse().expect("it is one");
        assert_eq!(identity.to_string().len(), 419);
        assert_eq!(identity.to_string(), text);
    }

    #[test]
    fn one_uri_of_spiffe_is_taken_and_two_are_refused() {
        let (node, other) = (format!("{HERE}/node/a"), format!("{HERE}/operator/b"));
        let of = |uris: &[&str]| Identity::of_uris(uris.iter().copied()).map(|identity| identity.to_string());
        assert_eq!(of(&[&node]), Ok(node.clone()));
        assert_eq!(of(&["https://a.example/", &node, "urn:x"]), Ok(node.clone()));
        assert_eq!(of(&[]), Err(Refused::None));
        assert_eq!(of(&["https://a.example/", "spiff", "é"]), Err(Refused::None));
        assert_eq!(of(&[&node, &other]), Err(Refused::Several));
        assert_eq!(of(&[&node, &node]), Err(Refused::Several));
        assert_eq!(of(&[&node, "SPIFFE://example.org/x"]), Err(Refused::Several));
        assert_eq!(of(&["spiffe:x"]), Err(Refused::Scheme));
    }

    #[test]
    fn another_realm_says_nothing_here() {
        let identity = |text: &str| text.parse::<Identity>().expect("it is one");
        let here = identity(&format!("{HERE}/node/a"));
        let realm = here.realm.clone();
        assert_eq!(here.clone().within(&realm), Ok(here));
        let other = identity("spiffe://example.com/tripod/main/node/a");
        assert_eq!(other.within(&realm), Err(Refused::OtherTrustDomain));
        let other = identity("spiffe://example.org/tripod/main2/node/a");
        assert_eq!(other.within(&realm), Err(Refused::OtherCluster));
    }

    #[test]
    fn only_a_nodes_uri_begins_with_that_of_nodes() {
        let identity = |path: &str| format!("{HERE}/{path}").parse::<Identity>().expect("it is one");
        let nodes = identity("node/a").realm.nodes();
        assert_eq!(nodes, "spiffe://example.org/tripod/main/node/");
        assert!(identity("node/a").to_string().starts_with(&nodes));
        assert!(!identity("job/node/task").to_string().starts_with(&nodes));
    }
}
