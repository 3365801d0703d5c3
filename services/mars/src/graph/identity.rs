//! Whether two graphs of one key are the same.

use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use super::Wanted;
use crate::domain::Digest;

/// Makes a hash of everything that a client says of a graph: nodes, options and targets. It is the same whether the graph
/// came whole or in parts. Clients know their own graphs: who makes two that meet has only deceived itself.
pub(crate) struct Hasher([Xxh3; 2]);

impl Hasher {
    /// Begins with what stands beside the nodes.
    pub(crate) fn new(kind: &str, wanted: &Wanted) -> Self {
        let mut hasher = Self([0, 1].map(Xxh3::with_seed));
        hasher.part(kind.as_bytes());
        hasher.part(&wanted.options.unwrap_or_default().encode_to_vec());
        hasher.part(&(wanted.target_keys.len() as u64).to_le_bytes());
        for target in &wanted.target_keys {
            hasher.part(target.as_bytes());
        }
        hasher
    }

    /// Adds a node.
    pub(crate) fn node(&mut self, node: &impl Message) {
        self.part(&node.encode_to_vec());
    }

    fn part(&mut self, bytes: &[u8]) {
        for half in &mut self.0 {
            half.update(&(bytes.len() as u64).to_le_bytes());
            half.update(bytes);
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut digest = [0; 32];
        for (bytes, half) in digest.chunks_exact_mut(16).zip(&self.0) {
            bytes.copy_from_slice(&half.digest128().to_le_bytes());
        }
        Digest(digest)
    }
}

#[cfg(test)]
mod tests {
    use tripod_proto::mars::v1::TileableNode;

    use super::*;

    #[test]
    fn another_kind_target_node_or_order_is_another_graph() {
        let of = |kind: &str, targets: &[&str], keys: &[&str]| {
            let target_keys = targets.iter().map(|target| (*target).to_owned()).collect();
            let wanted = Wanted { target_keys, options: None, helpers: tripod_tile::Helpers::Refused };
            let mut hasher = Hasher::new(kind, &wanted);
            for key in keys {
                hasher.node(&TileableNode { key: (*key).to_owned(), ..Default::default() });
            }
            hasher.digest()
        };
        let all = [
            of("t", &["a"], &["a", "b"]),
            of("c", &["a"], &["a", "b"]),
            of("t", &[], &["a", "b"]),
            of("t", &["a"], &["b", "a"]),
            of("t", &["a"], &["a"]),
            of("t", &["a", "b"], &[]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}");
        }
        assert_eq!(all[0], of("t", &["a"], &["a", "b"]));
    }
}
