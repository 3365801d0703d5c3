//! Header blocks: HPACK in, mended literals out (RFC 7541).

use bytes::{BufMut, BytesMut};
use http::uri::Authority;

/// Bytes of the encoder's dynamic table that a client may use: the protocol's default, which h2
/// does not change, so that this decoder and the client agree.
const TABLE_BYTES_MAX: usize = 4096;
/// Bytes of a decoded block: a few bytes of HPACK can name a large entry many times.
const DECODED_BYTES_MAX: usize = 64 << 10;
/// What each decoded field counts beside its text, as in the protocol's own size of a list.
const FIELD_BYTES: usize = 32;
/// Stands for an authority of which no part can be parsed.
const FALLBACK: &[u8] = b"localhost";

/// A header block is damaged, or too large.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("header block: {0}")]
pub(super) struct Malformed(pub(super) String);

/// A block, decoded and encoded anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) block: BytesMut,
    /// Whether its authority had to be replaced.
    pub(super) mended: bool,
}

/// Rewrites the header blocks of one connection. Every block must be given to it, in order: they
/// share a compression table.
pub(super) struct Rewriter {
    decoder: loona_hpack::Decoder<'static>,
}

impl Rewriter {
    pub(super) fn new() -> Self {
        let mut decoder = loona_hpack::Decoder::new();
        decoder.set_max_allowed_table_size(TABLE_BYTES_MAX);
        Self { decoder }
    }

    pub(super) fn rewrite(&mut self, block: &[u8]) -> Result<Rewritten, Malformed> {
        let mut rewritten = Rewritten { block: BytesMut::with_capacity(block.len()), mended: false };
        let mut decoded_bytes = 0;
        let outcome = self.decoder.decode_with_cb(block, |name, value| {
            decoded_bytes += name.len() + value.len() + FIELD_BYTES;
            if decoded_bytes > DECODED_BYTES_MAX {
                return;
            }
            match mended(&name, &value) {
                Some(better) => {
                    rewritten.mended = true;
                    put_field(&name, better, &mut rewritten.block);
                }
                None => put_field(&name, &value, &mut rewritten.block),
            }
        });
        outcome.map_err(|error| Malformed(error.to_string()))?;
        if decoded_bytes > DECODED_BYTES_MAX {
            return Err(Malformed(format!("{decoded_bytes} bytes when decoded")));
        }
        Ok(rewritten)
    }
}

/// The value to send on in place of an authority that cannot be parsed: the first member of the
/// list that can.
fn mended<'a>(name: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let parses = |value: &&[u8]| Authority::try_from(*value).is_ok();
    if name != b":authority" || parses(&value) {
        return None;
    }
    Some(value.split(|byte| *byte == b',').find(parses).unwrap_or(FALLBACK))
}

/// A literal field without indexing and with a new name, so that the reader's table stays empty.
fn put_field(name: &[u8], value: &[u8], out: &mut BytesMut) {
    out.put_u8(0);
    put_text(name, out);
    put_text(value, out);
}

/// A text that is not Huffman coded, with its length as an integer of seven bits prefix.
fn put_text(text: &[u8], out: &mut BytesMut) {
    const PREFIX_MAX: usize = 0x7f;
    if text.len() < PREFIX_MAX {
        out.put_u8(text.len() as u8);
    } else {
        out.put_u8(PREFIX_MAX as u8);
        let mut rest = text.len() - PREFIX_MAX;
        while rest >= 0x80 {
            out.put_u8((rest % 0x80) as u8 | 0x80);
            rest /= 0x80;
        }
        out.put_u8(rest as u8);
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(fields: &[(&str, &str)]) -> BytesMut {
        let mut block = BytesMut::new();
        for (name, value) in fields {
            put_field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        block
    }

    #[test]
    fn replaces_what_cannot_be_parsed() {
        for (sent, expected) in [
            ("10.0.0.1:7700,10.0.0.2:7700", "10.0.0.1:7700"),
            ("%2Ftmp%2Fs.sock", "localhost"),
            ("a b,node-2:7700", "node-2:7700"),
            ("::,::", "localhost"),
        ] {
            let rewritten = Rewriter::new().rewrite(&literal(&[(":authority", sent)])).expect("a block");
            assert_eq!(rewritten, Rewritten { block: literal(&[(":authority", expected)]), mended: true });
        }
    }

    #[test]
    fn leaves_everything_else() {
        let long = "v".repeat(300);
        let fields = [(":authority", "node:7700"), (":path", "/a,b:c"), ("x", long.as_str()), ("te", "")];
        let rewritten = Rewriter::new().rewrite(&literal(&fields)).expect("a block");
        assert_eq!(rewritten, Rewritten { block: literal(&fields), mended: false });
    }

    #[test]
    fn an_indexed_authority_of_an_earlier_block_is_mended_too() {
        let mut rewriter = Rewriter::new();
        // Literal with incremental indexing, name from the static table (1 is `:authority`).
        let first = rewriter.rewrite(b"\x41\x07a:1,b:2").expect("a block");
        let second = rewriter.rewrite(b"\xbe").expect("a block");
        assert_eq!(first.block, literal(&[(":authority", "a:1")]));
        assert_eq!(second, first);
    }

    #[test]
    fn a_table_larger_than_agreed_is_refused() {
        // A size update to 4097, then the static field `:method: GET`.
        assert!(Rewriter::new().rewrite(b"\x3f\xe2\x1f\x82").is_err());
        assert!(Rewriter::new().rewrite(b"\x3f\xe1\x1f\x82").is_ok(), "4096 is agreed");
    }

    #[test]
    fn a_small_block_that_decodes_to_a_huge_one_is_refused() {
        let mut block = BytesMut::from(&b"\x40\x01x\x7f\xa1\x1e"[..]);
        block.extend_from_slice(&[b'v'; 4000]);
        block.extend_from_slice(&[0xbe; 1000]);
        let error = Rewriter::new().rewrite(&block).expect_err("four megabytes");
        assert!(error.to_string().contains("when decoded"), "{error}");
    }
}
