//! One target in a process of its own, for a while.
//!
//! Each input is written to a file before it is tried, so that it is known when the process ends in the middle of it: because a
//! stack is full, or because memory is bounded and used up. A watch ends the process when an input takes too long; it goes by
//! the time that the input had a processor, which is the same however busy the machine is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::attempt::attempt;
use crate::corpus;
use crate::mutate::{INPUT_BYTES_MAX, mutate};
use crate::source::Source;
use crate::target::Target;

/// Memory that one input may take beside what is there.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Processor time of one input.
pub const INPUT_TIME_MAX: Duration = Duration::from_secs(4);
/// And time altogether, for what hangs without a processor.
const INPUT_HANGS_AFTER: Duration = Duration::from_secs(120);
/// What a worker of tokio has, and so what a decoder in a node can count on.
const STACK_BYTES: usize = 2 << 20;
/// How often a long run says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(30);
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// The status of a process in which an input took too long.
pub const TOO_LONG: i32 = 70;
/// The file of the input that is being tried.
pub const RUNNING: &str = "running";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub inputs: u64,
    /// What was found, and with which input.
    pub found: Option<(String, Vec<u8>)>,
}

/// What to run.
#[derive(Clone)]
pub struct Run {
    pub target: &'static Target,
    pub seed: u64,
    pub time: Duration,
    /// Where the input lies that is being tried.
    pub folder: PathBuf,
    pub corpus: PathBuf,
}

/// The input of that number: the same for the same seed.
#[must_use]
pub fn input(target: &Target, seed: u64, number: u64, kept: &[Vec<u8>]) -> Vec<u8> {
    // Not the standard library's own hash, which may change: of numbers and a name, mixed by hand.
    let name = target.name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (seed ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ number;
    let mut source = Source::new(mixed);
    let mut input = if !kept.is_empty() && source.one_in(6) {
        let mut input = source.pick(kept).clone();
        mutate(&mut source, &mut input);
        input
    } else {
        (target.generate)(&mut source)
    };
    input.truncate(INPUT_BYTES_MAX);
    input
}

/// Tries inputs until the time is over or something is found. `bound` is called before each of them, to bound its memory.
///
/// # Errors
/// Files cannot be written or read, or there is no thread to be had.
pub fn drive(run: &Run, bound: impl Fn() + Send + 'static) -> io::Result<Ended> {
    fs::create_dir_all(&run.folder)?;
    let kept: Vec<_> =
        corpus::of(&run.corpus, run.target.name)?.into_iter().map(|(_, input)| input).collect();
    let running = File::create(run.folder.join(RUNNING))?;
    let tried = Arc::new(AtomicU64::new(0));
    let (tell, told) = mpsc::channel();
    let worker = {
        let (run, tried) = (run.clone(), Arc::clone(&tried));
        thread::Builder::new().name("input".into()).stack_size(STACK_BYTES).spawn(move || {
            // Gone only when the watch has ended the process.
            let _ = tell.send(fs::read_link("/proc/thread-self"));
            inputs(&run, &kept, &running, &tried, bound)
        })?
    };
    let place = told.recv().map_err(io::Error::other)??;
    watch(run, &Path::new("/proc").join(place).join("schedstat"), &tried, &worker);
    worker.join().map_err(|_| io::Error::other("the worker panicked outside of an input"))?
}

fn inputs(
    run: &Run,
    kept: &[Vec<u8>],
    running: &File,
    tried: &AtomicU64,
    bound: impl Fn(),
) -> io::Result<Ended> {
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < run.time {
        let input = input(run.target, run.seed, number, kept);
        running.write_all_at(&input, 0)?;
        running.set_len(input.len() as u64)?;
        number += 1;
        tried.store(number, Ordering::SeqCst);
        bound();
        if let Err(what) = attempt(run.target, &input) {
            return Ok(Ended { inputs: number, found: Some((what, input)) });
        }
    }
    Ok(Ended { inputs: number, found: None })
}

/// Ends the process when an input takes too long, and says how far the run is.
fn watch<T>(run: &Run, usage: &Path, tried: &AtomicU64, worker: &thread::JoinHandle<T>) {
    let begun = Instant::now();
    let (mut number, mut since, mut used) = (0, Instant::now(), Duration::ZERO);
    let mut told = Instant::now();
    while !worker.is_finished() {
        thread::sleep(WATCH_EVERY);
        let now = tried.load(Ordering::SeqCst);
        let processor = processor_time(usage);
        if now != number {
            (number, since, used) = (now, Instant::now(), processor);
        }
        let took = processor.saturating_sub(used);
        if took > INPUT_TIME_MAX || since.elapsed() > INPUT_HANGS_AFTER {
            let mut out = io::stdout().lock();
            // Whoever reads it may have gone.
            let _ = writeln!(out, "inputs {number}").and_then(|()| out.flush());
            std::process::exit(TOO_LONG);
        }
        if told.elapsed() > PROGRESS_EVERY {
            told = Instant::now();
            eprintln!("  {}: {number} inputs in {} s", run.target.name, begun.elapsed().as_secs());
        }
    }
}

/// How long a thread has had a processor.
fn processor_time(usage: &Path) -> Duration {
    let text = fs::read_to_string(usage).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::ALL;

    #[test]
    fn a_seed_repeats_its_inputs() {
        for target in ALL {
            let inputs = |seed| (0..4).map(|number| input(target, seed, number, &[])).collect::<Vec<_>>();
            assert_eq!(inputs(5), inputs(5), "{}", target.name);
            assert_ne!(inputs(5), inputs(6), "{}", target.name);
        }
    }

    #[test]
    fn no_input_of_any_target_is_a_panic_by_itself() {
        for target in ALL {
            for garbage in [&b""[..], b"\0", b"\xff\xff\xff\xff\xff\xff\xff\xff"] {
                assert_eq!(attempt(target, garbage), Ok(()), "{}", target.name);
            }
        }
    }
}
