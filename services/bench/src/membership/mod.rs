//! Members change under load: what writers and clients behind agents notice of it.
//!
//! | module | what is measured |
//! |---|---|
//! | `replace` | a dead leader is replaced by a new node |
//! | `transfer` | the leader hands over, again and again |
//! | `resize` | three nodes become five and three, again and again, under kills |
//! | `large` | a node joins, and a snapshot is saved, with many keys in place |
//! | `operator` | what they do to the members |
//! | `clients` | clients behind agents, who count what fails |

mod clients;
mod large;
mod operator;
mod replace;
mod resize;
mod transfer;

use std::fmt::Write as _;

use clap::Args;

use super::Section;
use super::stats::Goal;

/// How much of each.
#[derive(Debug, Clone, Copy, Args)]
pub struct Amounts {
    /// Dead leaders that are replaced
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub replacements: u64,
    /// Leaders that hand over
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub transfers: u64,
    /// Times that three nodes become five and three again
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub resizes: u64,
    /// Keys that are in place when a node joins and when a snapshot is saved
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: u64,
}

impl Amounts {
    /// As `bench all` has it: the defaults.
    pub(super) fn usual() -> Self {
        Self { replacements: 5, transfers: 100, resizes: 20, keys: 1_000_000 }
    }
}

/// One line of the table.
struct Row {
    what: String,
    figure: f64,
    unit: &'static str,
    goal: Option<Goal>,
}

impl Row {
    fn new(what: impl Into<String>, figure: f64, unit: &'static str, goal: Option<Goal>) -> Self {
        Self { what: what.into(), figure, unit, goal }
    }
}

/// Measures all of it, one after the other, each with clusters of its own.
pub(super) async fn run(amounts: Amounts) -> anyhow::Result<Section> {
    let mut rows = replace::run(amounts.replacements).await?;
    rows.extend(transfer::run(amounts.transfers).await?);
    rows.extend(resize::run(amounts.resizes).await?);
    rows.extend(large::run(amounts.keys).await?);
    Ok(Section { name: "membership", markdown: table(&rows, amounts) })
}

fn table(rows: &[Row], amounts: Amounts) -> String {
    let Amounts { replacements, transfers, resizes, keys } = amounts;
    let mut text = format!(
        "{replacements} dead leaders replaced, {transfers} hand-overs, {resizes} times from three nodes to five and back, \
         {keys} keys of 256 B; default timing.\n\n| what | figure | goal | |\n|---|---|---|---|\n"
    );
    for Row { what, figure, unit, goal } in rows {
        let goal = goal.map_or(" | ".into(), |goal| goal.cells(*figure, unit));
        let _ = writeln!(text, "| {what} | {figure:.2}{unit} | {goal} |");
    }
    text
}

/// The figure below which 99 of 100 are; the largest of fewer.
fn p99(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let place = (figures.len() * 99).div_ceil(100).saturating_sub(1);
    figures.get(place).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_figures_the_last_but_one_counts() {
        assert_eq!(p99((1..=100).map(f64::from).collect()), 99.0);
        assert_eq!(p99(vec![3.0, 1.0, 2.0]), 3.0);
        assert!(p99(Vec::new()).is_nan());
    }

    #[test]
    fn a_missed_goal_is_seen_in_the_table() {
        let amounts = Amounts { replacements: 1, transfers: 2, resizes: 3, keys: 4 };
        let rows = [
            Row::new("gap", 0.25, " s", Some(Goal::AtMost(0.3))),
            Row::new("lost", 1.0, "", Some(Goal::AtMost(0.0))),
            Row::new("calls", 7.0, "", None),
        ];
        let text = table(&rows, amounts);
        assert!(text.contains("| gap | 0.25 s | <= 0.3 s | met |"), "{text}");
        assert!(text.contains("| lost | 1.00 | <= 0 | **missed** |"), "{text}");
        assert!(text.contains("| calls | 7.00 |  |  |"), "{text}");
    }
}
