//! Keys of the runtime are any bytes and are not normalised. They live among the job's other keys,
//! under a directory of their own, written so that two of them never meet there.

use std::fmt::Write as _;

/// What every stored key of the runtime begins with.
pub const KEYS_PREFIX: &str = "xla.DistributedRuntimeService/";

/// What stands for the empty key: an escape mark without its digits.
const EMPTY: &str = "%";

/// The text under which a key is stored. Plain text stays readable; `%XX` stands for a byte that is
/// no part of a character, for control characters and `%`, and for a slash that normalisation would
/// remove. No two keys have the same text, and normalisation leaves all of them as they are.
pub(super) fn stored(key: &[u8]) -> String {
    let mut text = String::with_capacity(KEYS_PREFIX.len() + key.len());
    text.push_str(KEYS_PREFIX);
    if key.is_empty() {
        text.push_str(EMPTY);
    }
    let mut at = 0;
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            let next = at + character.len_utf8();
            let inner_slash = at > 0 && key.get(next).is_some_and(|next| *next != b'/');
            let plain = if character == '/' { inner_slash } else { is_plain(character) };
            if plain {
                text.push(character);
            } else {
                escape(&key[at..next], &mut text);
            }
            at = next;
        }
        escape(chunk.invalid(), &mut text);
        at += chunk.invalid().len();
    }
    text
}

fn is_plain(character: char) -> bool {
    character != '%' && !character.is_control()
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        write!(text, "%{byte:02X}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kv::normalize;

    fn shown(key: &[u8]) -> String {
        stored(key).strip_prefix(KEYS_PREFIX).unwrap().to_owned()
    }

    /// The key that a stored text stands for.
    fn unescaped(shown: &str) -> Vec<u8> {
        if shown == EMPTY {
            return Vec::new();
        }
        let (mut key, mut rest) = (Vec::new(), shown.as_bytes());
        while let Some((first, tail)) = rest.split_first() {
            if *first == b'%' {
                let digits = std::str::from_utf8(&tail[..2]).unwrap();
                key.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &tail[2..];
            } else {
                key.push(*first);
                rest = tail;
            }
        }
        key
    }

    #[test]
    fn plain_text_stays_readable() {
        for key in ["a", "cuda:0", "a/b/c", "\u{e4}/\u{f6}", "a b"] {
            assert_eq!(shown(key.as_bytes()), key);
        }
    }

    #[test]
    fn what_normalisation_would_change_is_escaped() {
        for (key, text) in [
            (&b""[..], "%"),
            (b"/", "%2F"),
            (b"//a//b/", "%2F/a%2F/b%2F"),
            (b"a\0b", "a%00b"),
            (b"50%", "50%25"),
            (b"a\nb", "a%0Ab"),
            (b"\xff\xc3z\xe4", "%FF%C3z%E4"),
        ] {
            assert_eq!(shown(key), text);
        }
    }

    proptest! {
        #[test]
        fn every_key_has_a_text_of_its_own(key in proptest::collection::vec(
            prop_oneof![Just(b'/'), Just(b'%'), Just(0_u8), Just(b'a'), any::<u8>()], 0..12,
        )) {
            let text = stored(&key);
            let normal = normalize(&text);
            prop_assert_eq!(normal.as_str(), text);
            prop_assert_eq!(unescaped(&shown(&key)), key);
        }
    }
}
