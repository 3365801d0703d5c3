//! Every page of commands has a test that types it: a new page without one fails here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Each page, and the test that types it.
const TYPED: [(&str, &str); 21] = [
    ("README.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/clients/jax.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/clients/mars.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/clients/mindspore.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/clients/ray.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/clients/tensorflow.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/runbooks/backup-and-restore.md", "services/tripod/tests/processes/backup.rs"),
    ("docs/runbooks/corrupt-node.md", "services/tripod/tests/runbooks/corrupt_node.rs"),
    ("docs/runbooks/disk-full.md", "services/tripod/tests/runbooks/disk_full.rs"),
    ("docs/runbooks/downgrade.md", "services/tripod/tests/processes/levels.rs"),
    ("docs/runbooks/first-cluster.md", "services/tripod/tests/runbooks/first_cluster.rs"),
    ("docs/runbooks/grow-and-shrink.md", "services/tripod/tests/runbooks/grow_and_shrink.rs"),
    ("docs/runbooks/lost-quorum.md", "services/tripod/tests/processes/recover.rs"),
    ("docs/runbooks/replace-dead-node.md", "services/tripod/tests/runbooks/replace_dead_node.rs"),
    ("docs/runbooks/rolling-upgrade.md", "services/tripod/tests/processes/levels.rs"),
    ("docs/runbooks/scale-mindspore-servers.md", "services/tripod/tests/runbooks/scale_mindspore_servers.rs"),
    ("docs/runbooks/scheduled-backups.md", "services/tripod/tests/runbooks/scheduled_backups.rs"),
    (
        "docs/runbooks/secure-a-running-cluster.md",
        "services/tripod/tests/runbooks/secure_a_running_cluster.rs",
    ),
    ("docs/runbooks/tasks.md", "services/tripod/tests/runbooks/clients.rs"),
    ("docs/runbooks/unreadable-entry.md", "services/tripod/tests/runbooks/unreadable_entry.rs"),
    ("docs/tutorial.md", "services/tripod/tests/runbooks/tutorial.rs"),
];

/// Pages whose commands print nothing while all is well, or only what depends on where nodes are.
const SILENT: [&str; 4] = [
    "docs/clients/mars.md",
    "docs/clients/mindspore.md",
    "docs/clients/ray.md",
    "docs/clients/tensorflow.md",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn every_page_of_commands_is_typed_by_a_test() {
    let mut pages = BTreeSet::from(["README.md", "docs/tutorial.md"].map(str::to_owned));
    for folder in ["docs/clients", "docs/runbooks"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder of pages") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            // A list of pages has no commands of its own.
            if name != "README.md" {
                pages.insert(format!("{folder}/{name}"));
            }
        }
    }
    let listed: BTreeSet<_> = TYPED.iter().map(|(page, _)| (*page).to_owned()).collect();
    assert_eq!(pages, listed, "give a new page a test that types it, and a row here");
    for (page, test) in TYPED {
        let source = fs::read_to_string(root().join(test)).expect(test);
        let includes =
            source.lines().any(|line| line.contains("include_str!") && line.contains(&format!("/{page}\"")));
        assert!(includes, "{test} does not read {page}");
        let text = fs::read_to_string(root().join(page)).expect(page);
        let shows = text.lines().any(|line| line.trim_start() == "```text");
        assert_ne!(shows, SILENT.contains(&page), "{page}: what its commands print stands behind them");
    }
}
