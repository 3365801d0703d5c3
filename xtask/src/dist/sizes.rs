//! How large artefacts are, beside what they should be at most.

/// A million bytes.
const MB: f64 = 1e6;

/// What somebody waits for or pays for, and what it should be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The program without symbols.
    Program,
    /// The wheel with the program.
    Wheel,
}

impl Goal {
    fn mb_max(self) -> f64 {
        match self {
            Self::Program => 25.0,
            Self::Wheel => 15.0,
        }
    }
}

/// The line of something that was made.
pub(crate) fn line(name: &str, bytes: usize, goal: Option<Goal>) -> String {
    let mb = bytes as f64 / MB;
    let verdict = goal.map_or(String::new(), |goal| {
        let most = goal.mb_max();
        let over = if mb > most { "OVER the goal" } else { "goal" };
        format!("   {over}: at most {most:.0} MB")
    });
    format!("{mb:9.2} MB  {name}{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_its_goal_says_so() {
        assert_eq!(line("a", 14_000_000, Some(Goal::Wheel)), "    14.00 MB  a   goal: at most 15 MB");
        assert_eq!(
            line("b", 30_000_000, Some(Goal::Program)),
            "    30.00 MB  b   OVER the goal: at most 25 MB"
        );
        assert_eq!(line("c", 1_234_567, None), "     1.23 MB  c");
    }
}
