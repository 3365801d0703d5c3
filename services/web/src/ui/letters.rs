//! The states of many tasks in few bytes: a letter each, and runs of equal letters as one with a count.

use std::fmt::Write as _;

use tripod_state::task::Standing;

/// Runs of changed letters that a patch has at most; with more the whole text is shorter to read.
const PATCH_RUNS_MAX: usize = 256;
/// Equal letters between two changed ones that are cheaper to repeat than to begin another run.
const GAP: usize = 8;

/// Connected, and not in a barrier; nobody waits for it.
pub(crate) const CONNECTED: u8 = b'c';
/// Connected and at a barrier.
pub(crate) const IN_BARRIER: u8 = b'b';
/// Connected, and others wait for it at a barrier.
pub(crate) const AWAITED: u8 = b'm';
/// Not heard for more than half of the time after which it is given up.
pub(crate) const LATE: u8 = b'y';
/// The age of a heartbeat that nobody knows.
pub(crate) const AGE_UNKNOWN: u8 = b'?';
/// The first letter of ages: less than a tenth of a second.
const AGE_FIRST: u8 = b'A';
/// The last one: 22 days and more.
const AGE_STEPS_MAX: u32 = 25;
/// What the first letter stands for, in milliseconds; each next one stands for twice as much.
const AGE_STEP_MS: u64 = 100;

/// The letter of a task that is not connected, or of which nothing else is known.
pub(crate) fn of(standing: Standing) -> u8 {
    match standing {
        Standing::NeverCame => b'o',
        Standing::Registering => b'g',
        Standing::Connected => CONNECTED,
        Standing::Left => b'l',
        Standing::Lost => b'x',
        Standing::Ended => b'e',
        Standing::Failed => b'f',
    }
}

/// What a letter means, for people.
pub(crate) fn word(letter: u8) -> &'static str {
    match letter {
        b'o' => "never came",
        b'g' => "registering",
        CONNECTED => "connected",
        IN_BARRIER => "in a barrier",
        AWAITED => "awaited",
        LATE => "late",
        b'l' => "left",
        b'x' => "lost",
        b'e' => "ended",
        _ => "in error",
    }
}

/// All of them, what needs a look first.
pub(crate) const ALL: [u8; 10] = [b'x', b'e', b'f', LATE, b'o', AWAITED, b'g', IN_BARRIER, CONNECTED, b'l'];

/// The letter of an age: the power of two of tenths of a second that it has reached.
pub(crate) fn age(age_ms: u64) -> u8 {
    let steps = (age_ms / AGE_STEP_MS).checked_ilog2().map_or(0, |power| power + 1);
    AGE_FIRST + u8::try_from(steps.min(AGE_STEPS_MAX)).unwrap_or(0)
}

/// The letters as text: a letter and its count for each run, or all of them behind `=`, whichever is shorter.
pub(crate) fn encode(letters: &[u8]) -> String {
    let mut runs = String::new();
    for run in letters.chunk_by(|one, next| one == next) {
        runs.push(run[0].into());
        write!(runs, "{}", run.len()).expect("a text grows");
        if runs.len() > letters.len() {
            return format!("={}", String::from_utf8_lossy(letters));
        }
    }
    runs
}

/// Where `new` differs from `old`, with the letters that stand there now. `None`: they are of different jobs, or so much
/// has changed that the whole text is shorter.
pub(crate) fn patch(old: &[u8], new: &[u8]) -> Option<Vec<(usize, String)>> {
    if old.len() != new.len() {
        return None;
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for place in (0..new.len()).filter(|place| old[*place] != new[*place]) {
        match runs.last_mut() {
            Some((_, end)) if place - *end <= GAP => *end = place + 1,
            _ => runs.push((place, place + 1)),
        }
        if runs.len() > PATCH_RUNS_MAX {
            return None;
        }
    }
    let bytes: usize = runs.iter().map(|(start, end)| 12 + end - start).sum();
    let shown =
        |(start, end): (usize, usize)| (start, String::from_utf8_lossy(&new[start..end]).into_owned());
    (bytes < encode(new).len()).then(|| runs.into_iter().map(shown).collect())
}

/// So many cells for all tasks: each shows the one of its tasks that most needs a look.
pub(crate) fn in_cells(letters: &[u8], cells: usize) -> Vec<u8> {
    let first = |letter: u8| ALL.iter().position(|one| *one == letter).unwrap_or(ALL.len());
    let worst = |part: &[u8]| part.iter().copied().min_by_key(|letter| first(*letter));
    letters.chunks(letters.len().div_ceil(cells).max(1)).filter_map(worst).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_unless_that_is_longer() {
        assert_eq!(encode(b"bbbbmbb"), "b4m1b2");
        assert_eq!(encode(b"bmbmbm"), "=bmbmbm");
        assert_eq!(encode(b""), "");
        assert_eq!(encode(&[b'b'; 10_000]), "b10000");
    }

    #[test]
    fn a_patch_has_what_changed_and_nothing_else() {
        let old = [b'c'; 10_000];
        let mut new = old;
        (new[2], new[4], new[9_000]) = (b'b', b'b', b'x');
        assert_eq!(patch(&old, &new), None, "the runs are shorter than a patch");
        let mixed: Vec<u8> = (0..10_000u32).map(|id| if id % 2 == 0 { b'b' } else { b'm' }).collect();
        let mut later = mixed.clone();
        (later[2], later[4], later[9_001]) = (b'x', b'x', b'x');
        let runs = patch(&mixed, &later).expect("it is short");
        assert_eq!(runs, [(2, "xmx".to_owned()), (9_001, "x".to_owned())]);
        assert_eq!(patch(&mixed, &mixed), Some(vec![]));
        assert_eq!(patch(&mixed, &later[1..]), None, "it has another number of tasks");
        let all: Vec<u8> = mixed.iter().map(|letter| letter + 1).collect();
        assert_eq!(patch(&mixed, &all), None);
    }

    #[test]
    fn ages_are_powers_of_two() {
        let letters: Vec<u8> = [0, 99, 100, 199, 200, 400, 100_000, u64::MAX].map(age).to_vec();
        assert_eq!(letters, b"AABBCDKZ");
    }

    #[test]
    fn a_cell_shows_what_needs_a_look_first() {
        let mut letters = [b'b'; 100];
        (letters[7], letters[8], letters[60]) = (b'm', b'x', b'o');
        assert_eq!(in_cells(&letters, 4), b"xbob");
        assert_eq!(in_cells(b"bm", 32), b"bm");
        assert_eq!(in_cells(b"", 32), b"");
    }
}
