//! Who waits for a line, and what happens when no sink takes one: S54.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tripod_audit::{
    Auditor, Complain, How, Limits, Outcome, Record, Sink, Sinks, Unwritten, files, lost, verify,
};

fn sinks(directory: &Path, file_bytes: u64) -> Sinks {
    Sinks { directory: Some(directory.to_owned()), limits: Limits { file_bytes, files: 4 }, stderr: false }
}

fn call(rpc: &str) -> Record {
    Record { who: "operator/alice".into(), how: How::Cert, rpc: rpc.into(), ..Record::default() }
}

fn texts(directory: &Path) -> String {
    let files = files(directory).expect("readable");
    files.iter().map(|(_, path)| fs::read_to_string(path).expect("readable")).collect()
}

fn is_sound(directory: &Path) -> bool {
    let files = files(directory).expect("readable");
    let readers = files.iter().map(|(_, path)| BufReader::new(File::open(path).expect("readable")));
    verify(readers).expect("readable").is_sound()
}

fn silent() -> Complain {
    Box::new(|_, _| {})
}

#[tokio::test]
async fn a_call_is_written_down_with_what_became_of_it() {
    let place = tempfile::tempdir().expect("a directory");
    let auditor = Auditor::start(&sinks(place.path(), 1 << 20), "n1", false, silent()).expect("opened");
    assert_eq!(auditor.begin(&call("/a/B")).await, Ok(()));
    auditor.end(Record { outcome: Outcome::Refused, reason: "no_right".into(), ..call("/a/B") }).await;
    auditor.stop().await;
    let text = texts(place.path());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "opened, the call once, stopped: {text}");
    assert!(
        lines[0].contains("\"change\":\"opened\"") && lines[2].contains("\"change\":\"stopped\""),
        "{text}"
    );
    assert!(lines[1].contains("operator/alice") && lines[1].contains("\"outcome\":\"refused\""), "{text}");
    assert!(lines.iter().all(|line| line.contains("\"node\":\"n1\"")), "{text}");
    assert!(is_sound(place.path()));
}

#[tokio::test]
async fn where_it_is_required_a_call_is_written_down_before_it_begins() {
    let place = tempfile::tempdir().expect("a directory");
    let auditor = Auditor::start(&sinks(place.path(), 1 << 20), "n1", true, silent()).expect("opened");
    assert_eq!(auditor.begin(&call("/a/B")).await, Ok(()));
    assert!(texts(place.path()).contains("\"outcome\":\"begun\""));
}

/// The files' directory is taken away: a new file cannot be made when the first one is full.
#[tokio::test]
async fn s54_without_a_sink_calls_go_on_and_are_counted_unless_it_is_required() {
    for is_required in [false, true] {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("audit");
        let complaints = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&complaints);
        let complain = Box::new(move |_: Sink, _: &std::io::Error| {
            told.fetch_add(1, Ordering::SeqCst);
        });
        // Each line takes a file of its own.
        let auditor = Auditor::start(&sinks(&directory, 1), "n1", is_required, complain).expect("opened");
        assert_eq!(auditor.begin(&call("/a/B")).await, Ok(()));
        fs::remove_dir_all(&directory).expect("removed");
        let before = lost();
        let begun = auditor.begin(&call("/a/C")).await;
        assert_eq!(begun, if is_required { Err(Unwritten) } else { Ok(()) });
        auditor.end(call("/a/C")).await;
        assert!(lost() > before);
        assert!(complaints.load(Ordering::SeqCst) > 0);
        // It is there again, and so are lines.
        fs::create_dir(&directory).expect("made");
        auditor.end(call("/a/D")).await;
        assert!(texts(&directory).contains("/a/D"));
    }
}

#[tokio::test]
async fn files_that_end_are_told_of_though_standard_error_has_the_lines() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("audit");
    let complaints = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&complaints);
    let complain = Box::new(move |sink: Sink, _: &std::io::Error| told.lock().expect("no panic").push(sink));
    let both = Sinks { stderr: true, ..sinks(&directory, 1) };
    let auditor = Auditor::start(&both, "n1", true, complain).expect("opened");
    assert_eq!(auditor.begin(&call("/a/B")).await, Ok(()));
    assert!(complaints.lock().expect("no panic").is_empty());
    fs::remove_dir_all(&directory).expect("removed");
    let before = lost();
    assert_eq!(auditor.begin(&call("/a/C")).await, Ok(()), "one sink is enough");
    assert_eq!(*complaints.lock().expect("no panic"), [Sink::Files]);
    assert_eq!(lost(), before, "it is on standard error");
}

#[tokio::test]
async fn without_sinks_nothing_is_written_and_nobody_waits() {
    let auditor = Auditor::default();
    assert_eq!(auditor.begin(&call("/a/B")).await, Ok(()));
    auditor.end(call("/a/B")).await;
    auditor.tell(call("/a/B"));
    auditor.stop().await;
}
