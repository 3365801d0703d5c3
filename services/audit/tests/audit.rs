//! Lines are found that were taken out, added, moved, changed or cut; files are bounded and private; what fails leaves nothing.

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;
use tripod_audit::{
    Change, How, LINE_BYTES_MAX, Limits, Log, OpenError, Outcome, Record, TEXT_BYTES_MAX, Verified, What,
    files, verify,
};

fn record(resource: &str) -> Record {
    Record {
        at_ms: 1_790_000_000_000,
        node: "n1".into(),
        who: "operator/alice".into(),
        kind: "operator".into(),
        how: How::Cert,
        from: "10.0.0.7".into(),
        rpc: "/tripod.v1.Jobs/Delete".into(),
        job: "train".into(),
        resource: resource.into(),
        outcome: Outcome::Done,
        index: Some(17),
        ..Record::default()
    }
}

fn open(directory: &Path, limits: Limits) -> Log {
    Log::open(directory, limits, record("")).expect("it opens")
}

/// A log of so many records beside the one that it was opened.
fn log_of(records: usize, limits: Limits) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open(directory.path(), limits);
    for number in 0..records {
        log.append(&record(&format!("r{number}"))).expect("it is written");
    }
    directory
}

fn verify_all(directory: &Path) -> Verified {
    let files = files(directory).expect("it can be listed");
    verify(files.iter().map(|(_, path)| BufReader::new(File::open(path).expect("it is there"))))
        .expect("it can be read")
}

fn text_of(directory: &Path) -> String {
    let files = files(directory).expect("it can be listed");
    files.iter().map(|(_, path)| fs::read_to_string(path).expect("it is text")).collect()
}

fn verify_text(text: &str) -> Verified {
    verify([text.as_bytes()]).expect("memory can be read")
}

fn problems(text: &str) -> Vec<(u64, What)> {
    verify_text(text).problems.into_iter().map(|problem| (problem.line, problem.what)).collect()
}

#[test]
fn a_line_that_was_taken_out_is_named() {
    let text = text_of(log_of(9, Limits::default()).path());
    assert!(verify_text(&text).is_sound());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 10);
    for gone in 1..9 {
        let mut left = lines.clone();
        left.remove(gone);
        let missing = gone as u64 + 1;
        let expected = (missing, What::Missing { from: missing, to: missing });
        assert_eq!(problems(&(left.join("\n") + "\n")), [expected]);
    }
    let told = problems(&([&lines[..2], &lines[5..]].concat().join("\n") + "\n"));
    assert_eq!(told, [(3, What::Missing { from: 3, to: 5 })]);
    assert_eq!(told[0].1.to_string(), "records 3 to 5 are missing before it");
}

#[test]
fn a_line_that_was_changed_added_or_moved_is_named() {
    let text = text_of(log_of(5, Limits::default()).path());
    let lines: Vec<&str> = text.lines().collect();
    let of = |lines: &[&str]| problems(&(lines.join("\n") + "\n"));

    let changed = lines[2].replace("alice", "mallo");
    let mut with_changed = lines.clone();
    with_changed[2] = &changed;
    assert_eq!(of(&with_changed), [(4, What::Changed { seq: 3 })]);

    let mut with_more = lines.clone();
    with_more.insert(3, lines[2]);
    assert_eq!(of(&with_more), [(4, What::Again { seq: 3 })]);

    let mut moved = lines.clone();
    moved.swap(2, 3);
    let (missing, again) = (What::Missing { from: 3, to: 3 }, What::Again { seq: 3 });
    assert_eq!(of(&moved), [(3, missing), (4, again), (5, What::Missing { from: 4, to: 4 })]);

    let mut with_noise = lines.clone();
    with_noise.insert(1, "{}");
    assert_eq!(of(&with_noise), [(2, What::Unreadable)]);

    let renumbered = lines[1].replace("\"seq\":2", "\"seq\":1");
    assert_eq!(of(&[&renumbered]), [(1, What::NotTheFirst)]);
    assert_eq!(problems(text.trim_end()), [(6, What::Unfinished)]);
    let long = format!("{}\n{}\n", lines[0], "x".repeat(3 * LINE_BYTES_MAX));
    assert_eq!(problems(&long), [(2, What::Unreadable)]);
}

#[test]
fn a_log_goes_on_where_it_was_left() {
    let directory = log_of(2, Limits::default());
    let mut log = open(directory.path(), Limits::default());
    assert_eq!(log.append(&record("again")).unwrap(), 5);
    let verified = verify_all(directory.path());
    assert!(verified.is_sound());
    assert_eq!((verified.first, verified.last, verified.lines), (Some(1), Some(log.last()), 5));
}

#[test]
fn a_log_that_is_written_is_opened_by_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut log = open(directory.path(), Limits::default());
    let refused = Log::open(directory.path(), Limits::default(), record("")).expect_err("it is in use");
    assert!(matches!(&refused, OpenError::InUse(place) if place == directory.path()), "{refused:?}");
    assert!(refused.to_string().contains("give each process a directory of its own"), "{refused}");
    assert_eq!(log.append(&record("on")).unwrap(), 2, "and nothing was written by the other one");
    drop(log);
    assert_eq!(open(directory.path(), Limits::default()).last().0, 3);
    assert!(verify_all(directory.path()).is_sound());
}

#[test]
fn files_are_so_many_and_so_long_and_for_their_user_only() {
    let limits = Limits { file_bytes: 2_000, files: 3 };
    let directory = log_of(40, limits);
    let kept = files(directory.path()).unwrap();
    assert_eq!(kept.len(), 3);
    for (_, path) in &kept {
        let metadata = fs::metadata(path).unwrap();
        assert!(metadata.len() <= 2_000 && metadata.len() > 0);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    let verified = verify_all(directory.path());
    assert!(verified.is_sound(), "also from file to file: {:?}", verified.problems);
    assert_eq!((verified.first, verified.last.unwrap().0), (Some(kept[0].0), 41));
    assert!(kept[0].0 > 1);

    fs::remove_file(&kept[1].1).unwrap();
    let missing = What::Missing { from: kept[1].0, to: kept[2].0 - 1 };
    let told = verify_all(directory.path()).problems;
    assert_eq!((told.len(), told[0].file, told[0].line, told[0].what), (1, 1, 1, missing));
}

#[test]
fn what_a_process_left_unfinished_is_cut_off_and_said() {
    let directory = log_of(2, Limits::default());
    let (_, path) = files(directory.path()).unwrap().pop().unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":4,\"pr").unwrap();
    assert_eq!(verify_all(directory.path()).problems[0].what, What::Unfinished);
    drop(open(directory.path(), Limits::default()));
    let verified = verify_all(directory.path());
    assert!(verified.is_sound() && verified.lines == 4);
    assert!(
        text_of(directory.path())
            .lines()
            .last()
            .unwrap()
            .contains("12 bytes of an unfinished line were cut off")
    );
}

#[test]
fn a_file_without_a_line_follows_the_one_before() {
    let limits = Limits { file_bytes: 1, files: 4 };
    let directory = log_of(1, limits);
    let (_, last) = files(directory.path()).unwrap().pop().unwrap();
    // As if the process had ended between making it and its first line.
    File::create(&last).unwrap();
    let log = open(directory.path(), limits);
    assert_eq!(log.last().0, 2);
    assert!(verify_all(directory.path()).is_sound());
}

#[test]
fn nothing_is_put_behind_a_line_that_is_none() {
    let directory = log_of(1, Limits::default());
    let (_, path) = files(directory.path()).unwrap().pop().unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"garbage\n").unwrap();
    let before = fs::read(&path).unwrap();
    let refused = Log::open(directory.path(), Limits::default(), record(""));
    assert!(matches!(refused, Err(OpenError::Damaged(damaged)) if damaged == path));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn the_longest_record_is_a_line_and_no_sign_of_control_is_written() {
    let directory = log_of(0, Limits::default());
    let longest = "\u{1b}\"".repeat(TEXT_BYTES_MAX);
    let all = |text: &str| Record {
        at_ms: u64::MAX,
        node: text.into(),
        who: text.into(),
        kind: text.into(),
        how: How::Listener,
        from: text.into(),
        rpc: text.into(),
        job: text.into(),
        resource: text.into(),
        outcome: Outcome::WouldRefuse,
        reason: text.into(),
        index: Some(u64::MAX),
        change: Some(Change::Reloaded),
    };
    let mut log = open(directory.path(), Limits::default());
    log.append(&all(&longest)).unwrap();
    log.append(&all(&"\"".repeat(TEXT_BYTES_MAX))).unwrap();
    let text = text_of(directory.path());
    assert!(text.lines().all(|line| line.len() < LINE_BYTES_MAX && !line.chars().any(char::is_control)));
    assert!(verify_text(&text).is_sound());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One byte of a line that has one behind it: whatever it becomes, something is told.
    #[test]
    fn no_byte_of_a_line_can_be_changed_unseen(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let text = text_of(log_of(3, Limits::default()).path());
        let before_last = text.trim_end().rfind('\n').unwrap();
        let mut bytes = text.clone().into_bytes();
        let place = place.index(before_last);
        let is_same = bytes[place] == byte;
        bytes[place] = byte;
        let verified = verify([&bytes[..]]).unwrap();
        prop_assert_eq!(verified.is_sound(), is_same, "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let verified = verify([&bytes[..]]).unwrap();
        prop_assert_eq!(verified.lines, 0);
        prop_assert_eq!(verified.is_sound(), bytes.is_empty());
    }
}
