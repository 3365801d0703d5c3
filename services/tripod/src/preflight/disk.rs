//! The data directory and the disk under it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

use super::{Check, Verdict};

/// How long flushes are measured.
const MEASURE: Duration = Duration::from_secs(1);
/// And how many are enough.
const FLUSHES_MAX: usize = 2000;
/// About what a group of small writes appends to the journal.
const BLOCK_BYTES: usize = 4096;
/// Above this a write waits visibly for the disk; good disks take a tenth of it.
const FLUSH_SLOW: Duration = Duration::from_millis(25);
/// The shortest election timeout: a leader whose disk takes longer gives up leading.
const FLUSH_UNFIT: Duration = Duration::from_millis(300);
const MIB: u64 = 1 << 20;
/// Kept free for votes and deletions, and for a first journal and snapshot: less does not last an hour.
const FREE_LEAST_BYTES: u64 = 128 * MIB;
/// Room for a few snapshots and the log between them.
const FREE_GOOD_BYTES: u64 = 2048 * MIB;

/// The checks of a data directory. Blocks.
pub(super) fn check(data: &Path) -> Vec<Check> {
    let (place, mut checks) = match directory(data) {
        (check, Some(place)) => (place, vec![check]),
        (check, None) => return vec![check],
    };
    checks.push(free(&place));
    checks.push(match measure(&place) {
        Ok(took) => flushes(&took),
        Err(error) => Check::new("disk-flush", Verdict::Fail, format!("cannot write and flush: {error}"))
            .next(format!("see `df {0}` and the permissions of {0}", place.display())),
    });
    checks
}

/// Whether a node could use the directory, and where to measure instead if it is still to be made.
fn directory(data: &Path) -> (Check, Option<PathBuf>) {
    let named = |verdict, found: String| Check::new("data-directory", verdict, found);
    let shown = data.display();
    if !data.exists() {
        let parent = data.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            let check = named(Verdict::Fail, format!("the parent of {shown} does not exist"));
            return (check.next("make the parent, mount what is missing, or correct --data"), None);
        }
        return match probe(parent) {
            Ok(()) => {
                let check = named(Verdict::Ok, format!("{shown} will be made at the first start"));
                (check, Some(parent.to_owned()))
            }
            Err(error) => {
                let check = named(Verdict::Fail, format!("{shown} cannot be made: {error}"));
                let next =
                    format!("make it, writable for the user that the node runs as: install -d {shown}");
                (check.next(next), None)
            }
        };
    }
    if let Err(error) = probe(data) {
        let check = named(Verdict::Fail, format!("{shown} cannot be written: {error}"));
        return (check.next("make it writable for the user that the node runs as"), None);
    }
    let holds = if data.join("identity.json").exists() { "holds a node's data" } else { "is there" };
    (named(Verdict::Ok, format!("{shown} {holds} and can be written")), Some(data.to_owned()))
}

/// Makes a file and removes it.
fn probe(place: &Path) -> io::Result<()> {
    tempfile::Builder::new().prefix(".preflight-").tempfile_in(place)?.close()
}

fn free(place: &Path) -> Check {
    let free_bytes = match statvfs(place) {
        Ok(status) => status.blocks_available() * status.fragment_size(),
        Err(error) => return Check::new("disk-space", Verdict::Fail, format!("cannot be told: {error}")),
    };
    let found = format!("{} MiB free", free_bytes / MIB);
    let check = |verdict| Check::new("disk-space", verdict, found.clone()).figure("free_bytes", free_bytes);
    if free_bytes < FREE_LEAST_BYTES {
        let least = FREE_LEAST_BYTES / MIB;
        return check(Verdict::Fail).next(format!("free space: a node needs {least} MiB at the least"));
    }
    if free_bytes < FREE_GOOD_BYTES {
        let good = FREE_GOOD_BYTES / MIB;
        return check(Verdict::Warn).next(format!("{good} MiB leave room for snapshots and the log"));
    }
    check(Verdict::Ok)
}

/// How long each flush of a small append takes, shortest first.
fn measure(place: &Path) -> io::Result<Vec<Duration>> {
    let mut file = tempfile::Builder::new().prefix(".preflight-").tempfile_in(place)?;
    let block = [0x5a_u8; BLOCK_BYTES];
    // The first flush also makes the file itself durable, which a journal does once.
    append(file.as_file_mut(), &block)?;
    let begin = Instant::now();
    let mut took = Vec::new();
    while took.len() < FLUSHES_MAX && (begin.elapsed() < MEASURE || took.is_empty()) {
        let begun = Instant::now();
        append(file.as_file_mut(), &block)?;
        took.push(begun.elapsed());
    }
    file.close()?;
    took.sort_unstable();
    Ok(took)
}

fn append(file: &mut File, block: &[u8]) -> io::Result<()> {
    file.write_all(block)?;
    file.sync_data()
}

/// Judges flushes, the shortest first, of which there is at least one.
fn flushes(took: &[Duration]) -> Check {
    let all: Duration = took.iter().sum();
    let at = |percent: usize| took[(took.len() * percent).div_ceil(100).clamp(1, took.len()) - 1];
    let (half, p99) = (at(50), at(99));
    let rate = took.len() as f64 / all.as_secs_f64().max(f64::EPSILON);
    let ms = |length: Duration| length.as_secs_f64() * 1000.0;
    let found = format!("{rate:.0} flushes/s, p50 {:.2} ms, p99 {:.2} ms", ms(half), ms(p99));
    let verdict = match p99 {
        p99 if p99 >= FLUSH_UNFIT => Verdict::Fail,
        p99 if p99 >= FLUSH_SLOW => Verdict::Warn,
        _ => Verdict::Ok,
    };
    let check = Check::new("disk-flush", verdict, found)
        .figure("flushes_per_s", rate.round() as u64)
        .figure("p50_us", half.as_micros() as u64)
        .figure("p99_us", p99.as_micros() as u64);
    match verdict {
        Verdict::Ok => check,
        Verdict::Warn => check.next("every write waits for a flush on two nodes; a faster disk makes it faster"),
        Verdict::Fail => check.next(
            "leaders would give up leading whenever the disk takes so long: use another disk, or raise the three \
             timing settings",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_fit_directory_is_measured_and_left_as_it_was() {
        let place = tempfile::tempdir().expect("a directory");
        let new = place.path().join("data");
        for data in [place.path(), &new] {
            let checks = check(data);
            let names: Vec<_> = checks.iter().map(|check| check.check).collect();
            assert_eq!(names, ["data-directory", "disk-space", "disk-flush"]);
            assert_eq!(checks[0].verdict, Verdict::Ok, "{checks:?}");
            assert!(checks[2].figures["flushes_per_s"].as_u64() > Some(0), "{checks:?}");
        }
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_directory_that_no_node_could_use_fails() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        fs::write(&file, "mine").expect("written");
        for data in [file.clone(), place.path().join("missing/data")] {
            let checks = check(&data);
            assert_eq!((checks.len(), checks[0].verdict), (1, Verdict::Fail), "{checks:?}");
            assert!(checks[0].next.is_some());
        }
        assert_eq!(fs::read(&file).expect("there"), b"mine");
    }

    #[test]
    fn slow_flushes_are_told_and_very_slow_ones_fail() {
        let of = |ms: u64| flushes(&[Duration::from_millis(1), Duration::from_millis(ms)]);
        assert_eq!(
            (of(2).verdict, of(25).verdict, of(300).verdict),
            (Verdict::Ok, Verdict::Warn, Verdict::Fail)
        );
        let mut mostly_fast = vec![Duration::from_millis(1); 199];
        mostly_fast.push(Duration::from_secs(1));
        assert_eq!(flushes(&mostly_fast).verdict, Verdict::Ok, "one of two hundred is no p99");
        assert_eq!(of(300).figures["p99_us"], 300_000);
    }
}
