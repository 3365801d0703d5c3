//! The directory of a cluster: one directory a node, and what must not change between two starts.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tripod_local::files;
use tripod_proto::code::Code;

use crate::dev::Plan;
use crate::failure::Failure;
use crate::view::count;

const CLUSTER_ID: &str = "cluster-id";
const LAYOUT: &str = "layout.json";

/// An open directory. A temporary one is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Data {
    root: PathBuf,
    cluster_id: String,
    _temporary: Option<TempDir>,
}

/// The nodes know each other by address, so a cluster cannot move to other ports.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Layout {
    nodes: usize,
    port: u16,
}

impl Data {
    /// Opens a directory of this cluster, or makes one.
    pub(crate) fn open(directory: Option<PathBuf>, plan: &Plan) -> Result<Self, Failure> {
        let (root, temporary) = match directory {
            Some(directory) => (directory, None),
            None => {
                let made = TempDir::with_prefix("tripod-dev-");
                let made = made.map_err(|error| {
                    Failure::new(Code::DevDirectory, format!("cannot make a directory: {error}"))
                })?;
                (made.path().to_owned(), Some(made))
            }
        };
        let in_root = |error: io::Error| {
            let path = root.display();
            Failure::new(
                Code::DevDirectory,
                format!("cannot use --data {path}: {error}; choose a directory that can be written"),
            )
        };
        files::create_dir_all(&root).map_err(in_root)?;
        // One that somebody names by mistake is left as it is.
        if root.join(CLUSTER_ID).exists() {
            tripod_local::tighten(&root).map_err(in_root)?;
        }
        let cluster_id = cluster_id(&root).map_err(in_root)?;
        let wanted = Layout { nodes: plan.nodes.len(), port: plan.port };
        let known = layout(&root, &wanted).map_err(in_root)?;
        if known != wanted {
            return Err(Failure::new(
                Code::DevDirectory,
                format!(
                    "--data {} holds a cluster of {} on port {}; start it with --nodes {} --port {}, or choose \
                     another directory",
                    root.display(),
                    count(known.nodes, "node"),
                    known.port,
                    known.nodes,
                    known.port
                ),
            ));
        }
        for node in &plan.nodes {
            files::create_dir_all(&root.join(format!("node-{}", node.id))).map_err(in_root)?;
        }
        Ok(Self { root, cluster_id, _temporary: temporary })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Where a node keeps its log, snapshots and identity.
    pub(crate) fn node(&self, id: u64) -> PathBuf {
        self.root.join(format!("node-{id}")).join("data")
    }

    /// Where a node's log lines go.
    pub(crate) fn log(&self, id: u64) -> PathBuf {
        self.root.join(format!("node-{id}")).join("log")
    }
}

/// The cluster's id, drawn at the first start.
fn cluster_id(root: &Path) -> io::Result<String> {
    let path = root.join(CLUSTER_ID);
    match fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => return Err(io::Error::other(format!("{CLUSTER_ID} is empty"))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let id = format!("dev-{:016x}", rand::random::<u64>());
    write_whole(&path, &format!("{id}\n"))?;
    Ok(id)
}

/// The layout of the first start, which is this one if there was none.
fn layout(root: &Path, first: &Layout) -> io::Result<Layout> {
    let path = root.join(LAYOUT);
    match fs::read_to_string(&path) {
        Ok(text) => {
            serde_json::from_str(&text).map_err(|error| io::Error::other(format!("{LAYOUT}: {error}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            write_whole(&path, &serde_json::to_string(first)?)?;
            Ok(Layout { ..*first })
        }
        Err(error) => Err(error),
    }
}

/// Writes a file so that it is there with all of its text or not at all.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = files::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: u16, port: u16) -> Plan {
        Plan::new(nodes, port).expect("legal")
    }

    #[test]
    fn the_cluster_id_is_drawn_once_and_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || Data::open(Some(directory.path().join("c")), &plan(3, 7700)).expect("opened");
        let first = open().cluster_id().to_owned();
        assert!(first.starts_with("dev-"), "{first}");
        assert_eq!(open().cluster_id(), first);
        let other = tempfile::tempdir().expect("a directory");
        let other = Data::open(Some(other.path().to_owned()), &plan(3, 7700)).expect("opened");
        assert_ne!(other.cluster_id(), first);
    }

    #[test]
    fn a_directory_of_another_layout_is_refused_with_the_right_flags() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |plan: &Plan| Data::open(Some(directory.path().to_owned()), plan);
        open(&plan(3, 7700)).expect("opened");
        let text = open(&plan(1, 7800)).expect_err("refused").to_string();
        assert!(text.contains("start it with --nodes 3 --port 7700"), "{text}");
    }

    #[test]
    fn a_directory_that_is_a_file_is_refused_by_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = Data::open(Some(file.path().to_owned()), &plan(1, 7700)).expect_err("refused").to_string();
        assert!(
            text.starts_with(&format!("T1501 dev-directory: cannot use --data {}: ", file.path().display())),
            "{text}"
        );
    }

    #[test]
    fn a_temporary_directory_is_removed_at_the_end() {
        let data = Data::open(None, &plan(1, 7700)).expect("opened");
        let root = data.root().to_owned();
        assert!(root.join("node-1").is_dir());
        drop(data);
        assert!(!root.exists());
    }
}
