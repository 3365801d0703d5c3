//! A job's name as the first label of the host that a client dialled: `train42.coord.example:7700`.

use http::Request;

/// What may be a job's name. Whether there is such a job is another question: the first label of a
/// node's own host name looks the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(pub String);

/// Puts the label beside the request, where the services can read it: gRPC's own request does not keep
/// the authority.
pub fn read<B>(request: &mut Request<B>) {
    if let Some(label) = request.uri().host().and_then(Label::of) {
        request.extensions_mut().insert(label);
    }
}

impl Label {
    /// The first label of a name with several. An address and a bare name have none.
    #[must_use]
    pub fn of(host: &str) -> Option<Self> {
        if host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
            return None;
        }
        let (first, rest) = host.split_once('.')?;
        (!first.is_empty() && !rest.is_empty()).then(|| Self(first.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_several_labels_have_a_first_one() {
        let label = |host: &str| Label::of(host).map(|label| label.0);
        assert_eq!(label("train42.coord.example").as_deref(), Some("train42"));
        assert_eq!(label("Train42.coord").as_deref(), Some("train42"));
        for host in ["localhost", "127.0.0.1", "[::1]", "[fe80::1.2.3.4]", ".coord", "train42.", ""] {
            assert_eq!(label(host), None, "{host:?}");
        }
    }
}
