//! The chapters of README that have commands, typed word for word.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::shell::Shell;
use super::{Machine, read, say};

const PAGE: &str = "README.md";
/// What somebody types who wants to see a log grow; Ctrl-C ends it.
const WATCH: &str = "tail -f ";
/// "A few steps".
const STEPS: usize = 3;
/// How the processes of a gang are numbered in the chapter that starts each of them by hand.
const FIRST_PROCESS: &str = "process_id=0";
const PROCESSES: usize = 3;

/// A block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    /// What stands behind its first fence.
    kind: String,
    lines: Vec<String>,
}

/// What the chapter of the gang showed.
pub(super) struct Gang {
    /// From its first line to the first barrier.
    pub(super) first_barrier: Duration,
    /// From its first line to a step that was begun when the leader was dead.
    pub(super) survived: Duration,
    /// As the program prints it.
    pub(super) longest_step: Duration,
}

/// A gang, its leader killed, and everyday commands meanwhile.
///
/// # Errors
/// A command failed, or printed something else than the page shows.
pub(super) fn gang(machine: &Machine) -> Result<Gang> {
    let page = blocks(&read(PAGE)?);
    let (at, start) = find(&page, "tripod run --job demo ")?;
    let (_, kill) = find(&page[at + 1..], "kill -9 ")?;
    let shown = page[at..].iter().find(|block| block.kind == "console").context("no log is shown")?;
    let mut shell = machine.shell("gang", &["jax_gang.py", "jax_fault_tolerant.py"])?;

    let begun = Instant::now();
    let log = type_and_watch(&mut shell, start)?;
    shell.watch(&log, |text| (!steps(text).is_empty()).then_some(()))?;
    let first_barrier = begun.elapsed();
    shell.watch(&log, |text| (steps(text).len() >= STEPS).then_some(()))?;
    type_and_watch(&mut shell, kill)?;
    let before = shell.watch(&log, |text| Some(steps(text).len()))?;
    // The first one of them may have passed its barrier when the leader died.
    shell.watch(&log, |text| (steps(text).len() >= before + STEPS).then_some(()))?;
    let survived = begun.elapsed();
    let printed = shell.watch(&log, |text| Some(text.to_owned()))?;
    looks_as_shown(&printed, &shown.lines)?;
    let longest_step = steps(&printed).into_iter().max().context("no step was made")?;

    let (at, everyday) = find(&page, "tripod job create ")?;
    let screen = page[at..].iter().find(|block| block.kind == "text").context("no screen is shown")?;
    // The killed node is started again, as `--restart` says.
    shell.shows_at_last(&["tripod status | grep 'quorum 2, 3 answer'".to_owned()], &[])?;
    say(&everyday.lines.join("; "));
    shell.shows(&everyday.lines, &screen.lines)?;
    Ok(Gang { first_barrier, survived, longest_step })
}

/// JAX with a list of nodes.
///
/// # Errors
/// As [`gang`].
pub(super) fn list(machine: &Machine) -> Result<()> {
    let text = read(PAGE)?;
    let start = "tripod dev --tasks 3";
    if !text.contains(&format!("`{start}`")) {
        bail!("{PAGE} does not say `{start}`");
    }
    let page = blocks(&text);
    let (_, typed) = find(&page, FIRST_PROCESS)?;
    let mut shell = machine.shell("list", &[])?;
    shell.shows(&[format!("{start} > dev.log 2>&1 &")], &[])?;
    shell.shows_at_last(&["tripod status | grep 'quorum 2, 3 answer'".to_owned()], &[])?;
    let (program, variables) = typed.lines.split_last().context("a block has lines")?;
    shell.shows(variables, &[])?;
    say(program);
    for process in 0..PROCESSES {
        // What the page says of others stands behind the command, as a comment.
        let line = program.replace(FIRST_PROCESS, &format!("process_id={process}"));
        shell.shows(&[format!("{{ {line}\n}} > {process}.log 2>&1 &")], &[])?;
    }
    for process in 0..PROCESSES {
        let line = format!("process {process} of {PROCESSES}");
        shell.watch(&format!("{process}.log"), |text| text.lines().any(|told| told == line).then_some(()))?;
    }
    Ok(())
}

/// A program of tasks.
///
/// # Errors
/// As [`gang`].
pub(super) fn tasks(machine: &Machine) -> Result<()> {
    let page = blocks(&read(PAGE)?);
    let program = page.iter().find(|block| block.kind == "python").context("no program of Python")?;
    let mut shell = machine.shell("tasks", &[])?;
    let file = machine.folder.join("tasks/program.py");
    fs::write(&file, program.lines.join("\n") + "\n").context("cannot write a program")?;
    say("python program.py");
    shell.shows(&["python program.py".to_owned()], &["[0, 1, 4, 9]".to_owned()])
}

/// Types the lines of a block; the last one looks at a log, whose name is the answer.
fn type_and_watch(shell: &mut Shell, block: &Block) -> Result<String> {
    say(&block.lines.join("; "));
    let Some((last, lines)) = block.lines.split_last() else { bail!("a block has lines") };
    shell.shows(lines, &[])?;
    let log = last.strip_prefix(WATCH).with_context(|| format!("`{last}` is not `{WATCH}LOG`"))?;
    Ok(log.to_owned())
}

/// Blocks of a page between fences, in order.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some(Block { kind: kind.to_owned(), lines: Vec::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    blocks
}

/// The first block with this text in one of its lines, and its place.
fn find<'a>(page: &'a [Block], text: &str) -> Result<(usize, &'a Block)> {
    let has = |(_, block): &(usize, &Block)| block.lines.iter().any(|line| line.contains(text));
    page.iter().enumerate().find(has).with_context(|| format!("no block of {PAGE} has `{text}`"))
}

/// How long each step took that a program has printed.
fn steps(log: &str) -> Vec<Duration> {
    let took = |line: &str| {
        let (step, took) = line.strip_prefix("step ")?.split_once(" took ")?;
        step.parse::<u32>().ok()?;
        took.strip_suffix(" s")?.parse().ok().map(Duration::from_secs_f64)
    };
    log.lines().filter_map(took).collect()
}

/// Whether all lines of a log have the form of one that the page shows, and each form of the page is there.
fn looks_as_shown(log: &str, shown: &[String]) -> Result<()> {
    let wanted: Vec<String> = shown.iter().map(|line| form(line)).collect();
    let seen: Vec<String> = log.lines().map(form).collect();
    if let Some(other) = seen.iter().position(|form| !wanted.contains(form)) {
        let line = log.lines().nth(other).unwrap_or_default();
        bail!("the program has printed a line that {PAGE} does not show: {line}");
    }
    match wanted.iter().position(|form| !seen.contains(form)) {
        Some(missing) => bail!("{PAGE} shows a line as no program has printed: {}", shown[missing]),
        None => Ok(()),
    }
}

/// A line with `#` for each number.
fn form(line: &str) -> String {
    let mut form = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !form.ends_with('#') {
            form.push(c);
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_has_what_is_typed() {
        let page = blocks(&read(PAGE).unwrap());
        for text in ["tripod run --job demo ", "kill -9 ", "tripod job create ", FIRST_PROCESS] {
            assert!(find(&page, text).is_ok(), "{text}");
        }
        for kind in ["console", "text", "python"] {
            assert!(page.iter().any(|block| block.kind == kind), "{kind}");
        }
        let (_, start) = find(&page, "tripod run --job demo ").unwrap();
        assert_eq!(start.lines.last().unwrap(), "tail -f 0.log");
    }

    #[test]
    fn a_log_is_compared_but_for_its_numbers() {
        let shown = ["process 0 of 3, pid 30239", "step 1 took 0.51 s"].map(str::to_owned);
        let log = "process 0 of 3, pid 7\nstep 1 took 0.5 s\nstep 12 took 10.25 s\n";
        looks_as_shown(log, &shown).unwrap();
        let others = ["step 1 took 0.5 s\n", "process 0 of 3, pid 7\nstep 1 took 0.5 s\nwarning\n", ""];
        for other in others {
            assert!(looks_as_shown(other, &shown).is_err(), "{other}");
        }
        assert_eq!(steps(log), [Duration::from_millis(500), Duration::from_millis(10_250)]);
    }
}
