//! Callers, and files that tests compare with.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use tripod_gate::{Caller, Grant};
use tripod_identity::{Identity, JobName};

pub(crate) fn job(name: &str) -> JobName {
    name.parse().expect("a job's name")
}

pub(crate) fn identity(path: &str) -> Identity {
    format!("spiffe://example.org/tripod/main/{path}").parse().expect("an identity")
}

pub(crate) fn proved(path: &str, grant: Grant) -> Caller {
    Caller::of(identity(path), grant)
}

/// An owner of the job `own`.
pub(crate) fn owner() -> Caller {
    proved("operator/olga", Grant::of_jobs([job("own"), job("more")]).expect("two jobs"))
}

/// One of each role, of the job `own`, in the order of the table, and those of whom less is known.
pub(crate) fn every_caller() -> Vec<(&'static str, Caller)> {
    let of_job = |path| proved(path, Grant::Nothing);
    vec![
        ("node", of_job("node/n1")),
        ("operator", proved("operator/alice", Grant::Operator)),
        ("viewer", proved("viewer/victor", Grant::Viewer)),
        ("owner", owner()),
        ("agent", of_job("job/own/agent")),
        ("task", of_job("job/own/task")),
        ("driver", of_job("job/own/driver")),
        ("worker", of_job("job/own/worker")),
        ("store", of_job("job/own/store")),
        ("task-3", of_job("job/own/task/3")),
        ("listener", Caller::Listener(job("own"))),
        ("ungranted", of_job("operator/nobody")),
        ("anonymous", Caller::Anonymous),
        ("legacy", Caller::Legacy),
    ]
}

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(place(path)).unwrap_or_default()
}

/// Compares a file of the tree with what it should have; with `UPDATE_EXPECT=1` it is written.
pub(crate) fn compare(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(place(path), expected).expect("the file can be written");
    }
    assert!(
        read(path) == expected,
        "{path} is another; UPDATE_EXPECT=1 writes it. It should be:\n{expected}"
    );
}
