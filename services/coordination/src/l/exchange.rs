//! What agents want of the answer to an exchange of devices, which is the same for all clients of a host and may be long.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tripod_proto::metadata::{DEVICES, DEVICES_DIGEST, DEVICES_WHOLE};
use tripod_state::ids::ServiceIncarnation;

use super::topology::Layout;

/// What an agent wants besides what a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// The name of the answer in its place.
    Digest,
    /// Its name beside it.
    Whole,
}

impl Wish {
    /// What the metadata of a call says of it. Clients say nothing.
    pub(super) fn of(metadata: &MetadataMap) -> Option<Self> {
        match metadata.get(DEVICES)?.to_str().ok()? {
            DEVICES_DIGEST => Some(Self::Digest),
            DEVICES_WHOLE => Some(Self::Whole),
            _ => None,
        }
    }
}

/// Names an answer by all that it is made of. What is made of other topologies, or in another layout, has another name; so it
/// does not matter which node is asked, or whether a task has come back meanwhile. Nodes of builds that name otherwise only
/// have an answer sent once more.
pub(super) fn name_of(
    service: ServiceIncarnation,
    layout: Option<Layout>,
    topologies: &[Bytes],
) -> MetadataValue<Ascii> {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, service.0, layout, topologies).hash(&mut hasher);
        hasher.finish()
    };
    let name = format!("{:016x}{:016x}", half(0), half(1));
    MetadataValue::try_from(name).expect("digits are text")
}

#[cfg(test)]
mod tests {
    use super::super::topology::Topology;
    use super::*;

    #[test]
    fn an_answer_is_named_by_everything_of_which_it_is_made() {
        let layout = |bytes: &'static [u8]| Topology::parse(Bytes::from_static(bytes)).unwrap().layout();
        let (newer, unknown) = (layout(&[8, 1, 26, 0]), layout(&[8, 1]));
        assert!(newer.is_some() && unknown.is_none());
        let of = |service, layout, topologies: &[&'static [u8]]| {
            let topologies: Vec<Bytes> = topologies.iter().map(|bytes| Bytes::from_static(bytes)).collect();
            let name = name_of(ServiceIncarnation(service), layout, &topologies);
            name.to_str().unwrap().to_owned()
        };
        let name = of(7, newer, &[b"ab", b"c"]);
        assert_eq!(name, of(7, newer, &[b"ab", b"c"]));
        assert_eq!(name.len(), 32);
        let others = [
            of(8, newer, &[b"ab", b"c"]),
            of(7, unknown, &[b"ab", b"c"]),
            of(7, newer, &[b"a", b"bc"]),
            of(7, newer, &[b"c", b"ab"]),
            of(7, newer, &[b"ab"]),
        ];
        for other in others {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn clients_wish_nothing() {
        let wish = |word: Option<&'static str>| {
            let mut metadata = MetadataMap::new();
            if let Some(word) = word {
                metadata.insert(DEVICES, MetadataValue::from_static(word));
            }
            Wish::of(&metadata)
        };
        assert_eq!(wish(Some("digest")), Some(Wish::Digest));
        assert_eq!(wish(Some("whole")), Some(Wish::Whole));
        assert_eq!((wish(Some("half")), wish(None)), (None, None));
    }
}
