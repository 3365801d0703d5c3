//! What nodes must never write.

use std::ops::Range;
use std::path::Path;

use anyhow::Context as _;

use tripod_checkers::check::Violation;

/// Words of lines that no fault of ours excuses: a panic, and what the state machine or raft says when it finds
/// itself contradicted.
const FORBIDDEN: &[&str] =
    &["panicked at", "please report this", "does not belong to the command", "diverge"];
/// Lines that one log is quoted with.
const QUOTED: usize = 3;

/// What was found, and how many lines were read.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) lines: usize,
    pub(super) violations: Vec<Violation>,
}

impl Scanned {
    /// Reads one node's log, but for the bytes that are excused.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn add(&mut self, node: u64, path: &Path, excused: &[Range<usize>]) -> anyhow::Result<()> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let judged = (0..).zip(bytes).filter(|(at, _)| !excused.iter().any(|range| range.contains(at)));
        let bytes: Vec<u8> = judged.map(|(_, byte)| byte).collect();
        let text = String::from_utf8_lossy(&bytes);
        self.lines += text.lines().count();
        let forbidden =
            text.lines().filter(|line| FORBIDDEN.iter().any(|word| line.to_lowercase().contains(word)));
        for line in forbidden.take(QUOTED) {
            let explanation = format!("it wrote: {line}");
            self.violations.push(Violation::new("log", format!("node {node}"), explanation, &[]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_and_ordinary_lines_are_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "INFO leads\nthread 'x' panicked at src/a.rs:1:1:\nWARN peer\n").unwrap();
        let mut scanned = Scanned::default();
        scanned.add(1, file.path(), &[11..30, 30..55]).unwrap();
        assert_eq!(scanned.violations.len(), 0, "{scanned:?}");
        let mut scanned = Scanned::default();
        scanned.add(2, file.path(), &[]).unwrap();
        assert_eq!(scanned.lines, 3);
        assert_eq!(scanned.violations.len(), 1);
        assert!(scanned.violations[0].explanation.contains("panicked at src/a.rs"));
    }
}
