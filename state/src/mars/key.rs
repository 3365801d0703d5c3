//! Keys of chunks. Most of them are the key of a tileable, a mark and numbers, as in `KEY:1.0` and `KEY~7`: those share the
//! text before the mark, and their numbers are numbers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Numbers behind a colon that are kept as numbers.
const DIMS_MAX: usize = 4;

/// What stands behind the shared text of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Suffix {
    /// The text is the key.
    Nothing,
    /// `:1.0`; as many numbers as `dims` says, behind which all are 0.
    Index { dims: u8, numbers: [u32; DIMS_MAX] },
    /// `~7`
    Number(u32),
}

/// The key of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkKey {
    pub(crate) text: Arc<str>,
    pub(crate) suffix: Suffix,
}

impl Suffix {
    /// A key as the text that others may share, and what stands behind it.
    pub(crate) fn split(key: &str) -> (&str, Self) {
        let numbers = key.rsplit_once(':').and_then(|(text, rest)| Some((text, index(rest)?)));
        let number =
            || key.rsplit_once('~').and_then(|(text, rest)| Some((text, Self::Number(plain(rest)?))));
        numbers.or_else(number).unwrap_or((key, Self::Nothing))
    }

    /// The numbers of an index.
    pub(crate) fn numbers(&self) -> Option<Vec<u64>> {
        match self {
            Self::Index { dims, numbers } => {
                Some(numbers.iter().take(usize::from(*dims)).map(|number| u64::from(*number)).collect())
            }
            Self::Nothing | Self::Number(_) => None,
        }
    }

    /// Whether these are its numbers.
    pub(crate) fn says(&self, index: &[u64]) -> bool {
        let Self::Index { dims, numbers } = self else { return false };
        let numbers = numbers.iter().take(usize::from(*dims)).map(|number| u64::from(*number));
        numbers.eq(index.iter().copied())
    }

    /// Whether it is as [`Self::split`] gives it.
    pub(crate) fn is_canonical(&self) -> bool {
        match self {
            Self::Nothing | Self::Number(_) => true,
            Self::Index { dims, numbers } => {
                let dims = usize::from(*dims);
                (1..=DIMS_MAX).contains(&dims) && numbers.iter().skip(dims).all(|number| *number == 0)
            }
        }
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Number(number) => write!(f, "~{number}"),
            Self::Index { dims, numbers } => {
                for (place, number) in numbers.iter().take(usize::from(*dims)).enumerate() {
                    write!(f, "{}{number}", if place == 0 { ':' } else { '.' })?;
                }
                Ok(())
            }
        }
    }
}

/// Whether the key of a chunk says its index, as `KEY:1.0` does: then a command need not say it, too.
#[must_use]
pub fn key_says_index(key: &str, index: &[u64]) -> bool {
    Suffix::split(key).1.says(index)
}

impl ChunkKey {
    pub(crate) fn of(key: &str) -> Self {
        let (text, suffix) = Suffix::split(key);
        Self { text: text.into(), suffix }
    }
}

fn index(text: &str) -> Option<Suffix> {
    let mut numbers = [0; DIMS_MAX];
    let mut dims = 0_u8;
    for part in text.split('.') {
        *numbers.get_mut(usize::from(dims))? = plain(part)?;
        dims += 1;
    }
    Some(Suffix::Index { dims, numbers })
}

/// A number that is written as a number is printed: another spelling would be another key.
fn plain(text: &str) -> Option<u32> {
    let spelled_so =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if spelled_so { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_text_after_it_was_split() {
        let keys = [
            "a",
            "a:0",
            "a:1.0",
            "a:1.2.3.4",
            "a:1.2.3.4.5",
            "a~7",
            "a~07",
            "a:01",
            "a:",
            "a~",
            ":1",
            "a:1~2",
            "a~2:1",
            "a:4294967295",
            "a:4294967296",
            "a:+1",
            "",
            "a:1.",
            "a:.1",
            "b:1:2",
        ];
        for key in keys {
            let (text, suffix) = Suffix::split(key);
            assert_eq!(format!("{text}{suffix}"), key);
            assert!(suffix.is_canonical());
        }
        assert_eq!(Suffix::split("a:1.0"), ("a", Suffix::Index { dims: 2, numbers: [1, 0, 0, 0] }));
        assert_eq!(Suffix::split("a~7"), ("a", Suffix::Number(7)));
        assert_eq!(Suffix::split("a~07"), ("a~07", Suffix::Nothing));
    }

    #[test]
    fn a_key_says_the_index_that_is_read_from_it_and_no_other() {
        assert!(key_says_index("a:1.0", &[1, 0]) && key_says_index("a:4294967295", &[u64::from(u32::MAX)]));
        let others: [(&str, &[u64]); 6] = [
            ("a:1.0", &[1]),
            ("a:1.0", &[]),
            ("a:01", &[1]),
            ("a~1", &[1]),
            ("a:4294967296", &[1 << 32]),
            ("a:1.2.3.4.5", &[1, 2, 3, 4, 5]),
        ];
        for (key, index) in others {
            assert!(!key_says_index(key, index), "{key} {index:?}");
        }
    }

    #[test]
    fn an_index_with_numbers_behind_its_dims_is_not_canonical() {
        assert!(!Suffix::Index { dims: 1, numbers: [1, 1, 0, 0] }.is_canonical());
        assert!(!Suffix::Index { dims: 0, numbers: [0; 4] }.is_canonical());
        assert!(!Suffix::Index { dims: 5, numbers: [0; 4] }.is_canonical());
    }
}
