//! Numbers of things.

use std::fmt::Display;

/// `1 page`, `2 pages`: so many of what is called `one`.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    counted(number, one, &format!("{one}s"))
}

/// The same of what is called otherwise when it is several: `1 entry`, `2 entries`.
pub(crate) fn counted<N: Copy + Display + PartialEq + From<u8>>(
    number: N,
    one: &str,
    several: &str,
) -> String {
    let name = if number == N::from(1) { one } else { several };
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n32_one_thing_is_not_called_several() {
        assert_eq!([0_u64, 1, 2].map(|number| count(number, "key")), ["0 keys", "1 key", "2 keys"]);
        assert_eq!(
            [1_usize, 12].map(|number| counted(number, "entry", "entries")),
            ["1 entry", "12 entries"]
        );
    }
}
