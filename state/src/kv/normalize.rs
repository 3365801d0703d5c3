//! What makes two keys the same.

use crate::ids::Key;

/// Collapses runs of `/`, drops them at both ends, and ends the key at a NUL.
#[must_use]
pub fn normalize(asked: &str) -> Key {
    if is_normal(asked) {
        return Key::from(asked);
    }
    let text = asked.split('\0').next().unwrap_or("");
    let mut key = String::with_capacity(text.len());
    for part in text.split('/').filter(|part| !part.is_empty()) {
        if !key.is_empty() {
            key.push('/');
        }
        key.push_str(part);
    }
    Key(key.into())
}

/// Whether a key needs no change, as nearly all do.
fn is_normal(asked: &str) -> bool {
    let ends = asked.starts_with('/') || asked.ends_with('/');
    !ends && !asked.contains('\0') && !asked.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_collapse_and_a_nul_ends_the_key() {
        for (asked, key) in [
            ("", ""),
            ("/", ""),
            ("///", ""),
            ("a", "a"),
            ("//n///k/", "n/k"),
            ("a/b/c", "a/b/c"),
            ("a/b\0c", "a/b"),
            ("\0a", ""),
            ("a/\0/b", "a"),
            ("ä//ö", "ä/ö"),
        ] {
            assert_eq!(normalize(asked), Key::from(key), "{asked:?}");
        }
    }

    #[test]
    fn a_normalised_key_stays_as_it_is() {
        for asked in ["//a//b//", "a", "", "x/y/z"] {
            let once = normalize(asked);
            assert_eq!(normalize(once.as_str()), once);
        }
    }
}
