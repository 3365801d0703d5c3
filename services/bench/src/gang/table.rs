//! The figures of gangs.

use std::fmt::Write as _;

use tripod_load::agents::Told;

use super::phase::{Phase, quantile};
use super::played::Round;
use super::size::Size;
use crate::stats::Goal;

/// Of the most resident memory of a node, in megabytes (10^6 bytes).
const PEAK_GOAL: Goal = Goal::AtMost(400.0);
/// Of what must not happen.
const NEVER: Goal = Goal::AtMost(0.0);

/// A table for each gang: the calm one, and the one whose leaders died.
pub(super) fn of(size: Size, rounds: &[Round]) -> String {
    let Size { tasks, agents, .. } = size;
    let mut text = format!(
        "{tasks} tasks behind {agents} agents that one process plays, on the cores of the nodes: each agent has an address, a \
         connection, a stream of calls and a session of its own, at one of three nodes. Heartbeat timeout {} s; each task \
         beats every {} s, those of one agent {}, and agents gather and tell as real ones do. Every task passed every \
         step.\n",
        size.heartbeat_timeout.as_secs_f64(),
        size.beat_every().as_secs_f64(),
        if size.beats_apart { "at different times" } else { "together" }
    );
    let titles = ["All nodes live:", "Another such gang; the leader is killed in the middle of each phase:"];
    for (position, (title, round)) in titles.iter().zip(rounds).enumerate() {
        let _ = write!(text, "\n{title}\n\n| figure | measured | goal | |\n|---|---|---|---|\n");
        // Goals of times are those without a death; what must not happen must not happen then either.
        rows(&mut text, size, round, position == 0);
    }
    text
}

fn rows(text: &mut String, size: Size, round: &Round, is_calm: bool) {
    let mut row = |what: &str, figure: String, goal: Option<String>| {
        let _ = writeln!(text, "| {what} | {figure} | {} |", goal.unwrap_or_else(|| " | ".into()));
    };
    row("all agents connect", format!("{:.2} s", round.connect_s), None);
    row("register", step(&round.register), None);
    row("barrier", step(&round.first), None);
    let start = quantile(&together(&round.register, &round.first), 0.99);
    let start_goal = is_calm.then(|| size.start_goal().cells(start, " s"));
    row("register and barrier of one task, p99", format!("{start:.2} s"), start_goal);
    row("second barrier", step(&round.second), None);
    row("leave", step(&round.leave), None);
    let beat_ms = |part| 1e3 * quantile(&round.beats.waits_s, part);
    let beats = format!("{:.1} ms ({:.1} ms) of {}", beat_ms(0.99), beat_ms(0.5), round.beats.waits_s.len());
    row("heartbeats, p99 (p50)", beats, None);
    let Told { words, in_words, by_themselves, leased, .. } = round.beats_told;
    let told = format!("{in_words} in {words} words, {by_themselves} by name, {leased} answered by agents");
    row("heartbeats, as they were told", told, None);
    if let Some(percent) = round.leader_percent {
        row("leader's processor time while all only beat", format!("{percent:.1} %"), None);
    }
    let refused = round.refused_beats as f64;
    row("heartbeats that a client would have died of", format!("{refused}"), Some(NEVER.cells(refused, "")));
    let sent_away = round.told.sent_away as f64;
    let goal = Some(NEVER.cells(sent_away, ""));
    row("streams that a node ended (GOAWAY or goodbye)", format!("{sent_away}"), goal);
    let broken = round.told.broken as f64;
    row("streams that ended without a word", format!("{broken}"), is_calm.then(|| NEVER.cells(broken, "")));
    row("calls that were sent again", round.told.again.to_string(), None);
    let used = round.used;
    let goal = Some(PEAK_GOAL.cells(used.peak_mb, " MB"));
    row("most resident memory of a node", format!("{:.0} MB", used.peak_mb), goal);
    row("resident memory of a node at the end", format!("{:.0} MB", used.resident_mb), None);
    row("disk, a task and node", format!("{:.0} B", used.disk_bytes / f64::from(size.tasks)), None);
}

/// What a task waited, and how long it was until the last one had passed.
fn step(phase: &Phase) -> String {
    let wait = |part| quantile(&phase.waits_s, part);
    let mut figure = format!("p50 {:.2} s, p99 {:.2} s; all {:.2} s", wait(0.5), wait(0.99), phase.whole_s);
    if let Some(after_s) = phase.after_kill_s {
        let _ = write!(figure, ", {after_s:.2} s from the kill");
    }
    figure
}

/// What each task waited in both.
fn together(first: &Phase, second: &Phase) -> Vec<f64> {
    first.waits_s.iter().zip(&second.waits_s).map(|(first, second)| first + second).collect()
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tripod_load::agents::BeatsSeen;

    use super::super::Amounts;
    use super::super::usage::Used;
    use super::*;

    fn phase(waits_s: &[f64], after_kill_s: Option<f64>) -> Phase {
        Phase { waits_s: waits_s.to_vec(), whole_s: 3.0, ended: Instant::now(), after_kill_s }
    }

    fn round(after_kill_s: Option<f64>, sent_away: u64) -> Round {
        let step = || phase(&[1.0, 1.5], after_kill_s);
        Round {
            connect_s: 0.5,
            register: step(),
            first: step(),
            beats: BeatsSeen { waits_s: vec![0.004], ..BeatsSeen::default() },
            leader_percent: after_kill_s.is_none().then_some(8.25),
            beats_told: Told { words: 2, in_words: 15, by_themselves: 1, ..Told::default() },
            refused_beats: 0,
            second: step(),
            leave: step(),
            told: Told { sent_away, broken: 2, again: 7, ..Told::default() },
            used: Used { peak_mb: 401.0, resident_mb: 90.0, disk_bytes: 100.0 },
        }
    }

    fn size() -> Size {
        let amounts = Amounts { tasks: Some(2), agents: Some(1), ..Amounts::usual() };
        Size::of(amounts).unwrap().unwrap()
    }

    #[test]
    fn the_waits_of_one_task_are_added_and_judged() {
        let text = of(size(), &[round(None, 0)]);
        let has = |line: &str| assert!(text.contains(line), "{line}\n{text}");
        has("| register | p50 1.50 s, p99 1.50 s; all 3.00 s |  |  |");
        has("| register and barrier of one task, p99 | 3.00 s | <= 2 s | **missed** |");
        has("| most resident memory of a node | 401 MB | <= 400 MB | **missed** |");
        has("| disk, a task and node | 50 B |  |  |");
        has("| heartbeats, p99 (p50) | 4.0 ms (4.0 ms) of 1 |  |  |");
        has("| heartbeats, as they were told | 15 in 2 words, 1 by name, 0 answered by agents |  |  |");
        has("| leader's processor time while all only beat | 8.2 % |  |  |");
        assert!(!text.contains("killed"), "{text}");
    }

    #[test]
    fn a_gang_whose_leaders_died_has_no_goals_of_time_and_may_be_sent_away_by_nobody() {
        let text = of(size(), &[round(None, 0), round(Some(0.25), 1)]);
        let (_, killed) = text.split_once("the leader is killed").unwrap();
        assert!(killed.contains("all 3.00 s, 0.25 s from the kill |"), "{killed}");
        assert!(!killed.contains("processor time"), "{killed}");
        assert!(killed.contains("| register and barrier of one task, p99 | 3.00 s |  |  |"), "{killed}");
        assert!(killed.contains("| streams that a node ended (GOAWAY or goodbye) | 1 | <= 0 | **missed** |"));
    }
}
