//! The keys of the log's tree in sled. One tree holds everything, so that one batch of changes is
//! atomic; a leading byte keeps the spaces apart, and chunk keys sort by index.

/// Single values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaKey {
    /// Whose log this is: [`crate::disk::identity::Identity`].
    Identity,
    /// The last vote. Durable before it is used.
    Vote,
    /// The last log id known as committed. May lag.
    Committed,
    /// The last log id that was purged. Entries up to it may be gone.
    Purged,
    /// The journal that continues this log.
    Journal,
}

const META_SPACE: u8 = 0;
const CHUNK_SPACE: u8 = 1;

impl MetaKey {
    /// The key's bytes in sled.
    pub(crate) fn bytes(self) -> [u8; 2] {
        let number = match self {
            Self::Identity => 0,
            Self::Vote => 1,
            Self::Committed => 2,
            Self::Purged => 3,
            Self::Journal => 4,
        };
        [META_SPACE, number]
    }
}

/// Where a part of a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkKey {
    /// Index of the chunk's first entry.
    pub(crate) first: u64,
    /// Number of the part within the chunk, from 0.
    pub(crate) part: u16,
}

impl ChunkKey {
    const BYTES: usize = 11;

    /// The smallest and the largest chunk key.
    pub(crate) const ALL: [Self; 2] = [Self { first: 0, part: 0 }, Self { first: u64::MAX, part: u16::MAX }];

    /// The key's bytes in sled; their order is the order of keys.
    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [CHUNK_SPACE; Self::BYTES];
        bytes[1..9].copy_from_slice(&self.first.to_be_bytes());
        bytes[9..].copy_from_slice(&self.part.to_be_bytes());
        bytes
    }

    /// The key that [`Self::bytes`] came from, or `None` for a key of another space.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (&space, rest) = bytes.split_first()?;
        let (first, part) = rest.split_at_checked(8)?;
        if space != CHUNK_SPACE {
            return None;
        }
        Some(Self {
            first: u64::from_be_bytes(first.try_into().ok()?),
            part: u16::from_be_bytes(part.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_keys_sort_by_index_then_part_and_come_back() {
        let keys = [(0, 0), (0, 1), (0, 256), (1, 0), (255, 7), (256, 0), (u64::MAX, u16::MAX)]
            .map(|(first, part)| ChunkKey { first, part });
        for pair in keys.windows(2) {
            assert!(pair[0].bytes() < pair[1].bytes(), "{pair:?}");
        }
        for key in keys {
            assert_eq!(ChunkKey::parse(&key.bytes()), Some(key));
        }
        assert_eq!(ChunkKey::parse(&MetaKey::Vote.bytes()), None);
        assert_eq!(ChunkKey::parse(&[]), None);
    }
}
