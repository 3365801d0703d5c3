//! Which file is which: each has the number of its first line in its name, so their order is that of their names.

use std::io;
use std::path::{Path, PathBuf};

const BEGIN: &str = "audit-";
const END: &str = ".log";
const DIGITS: usize = 20;

/// The name of the file whose first line has this number.
pub(crate) fn of(seq: u64) -> String {
    format!("{BEGIN}{seq:0DIGITS$}{END}")
}

/// The number of the first line of a file, by its name.
fn seq(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let are_digits = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    if are_digits { digits.parse().ok() } else { None }
}

/// The files of a directory in the order of their lines, and the number of the first line of each. Others are passed over.
///
/// # Errors
/// The system's.
pub fn files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(seq) = entry.file_name().to_str().and_then(seq) {
            files.push((seq, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_first_line_and_nothing_else_is_such_a_name() {
        for number in [1, 17, u64::MAX] {
            assert_eq!(seq(&of(number)), Some(number));
        }
        for name in [
            "audit-1.log",
            "audit-.log",
            "audit-0000000000000000000x.log",
            "audit-00000000000000000001.log.gz",
        ] {
            assert_eq!(seq(name), None);
        }
        assert!(of(9) < of(10));
    }
}
