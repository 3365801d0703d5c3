//! Files stay short enough to be read in one go.

/// More lines than this are reported.
pub(super) const LINES_SOFT: usize = 500;
/// More lines than this fail.
pub(super) const LINES_HARD: usize = 800;

/// How long a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    Long(usize),
    TooLong(usize),
}

/// Judges a text by its number of lines.
pub(super) fn check(text: &str) -> Verdict {
    match text.lines().count() {
        lines if lines > LINES_HARD => Verdict::TooLong(lines),
        lines if lines > LINES_SOFT => Verdict::Long(lines),
        _ => Verdict::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_inclusive() {
        assert_eq!(check(&"x\n".repeat(500)), Verdict::Fine);
        assert_eq!(check(&"x\n".repeat(501)), Verdict::Long(501));
        assert_eq!(check(&"x\n".repeat(800)), Verdict::Long(800));
        assert_eq!(check(&"x\n".repeat(801)), Verdict::TooLong(801));
    }
}
