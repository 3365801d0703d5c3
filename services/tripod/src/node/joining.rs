//! How a node that is not one of the first gets its id: from the cluster, once.
//!
//! The node writes down a number before it asks, and asks again with the same one if it was interrupted before
//! it could write its identity. When it has started, the identity in its data directory says who it is, and
//! the number goes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use tripod_client::{Client, Config, Error, wire};
use tripod_proto::code::Code;
use tripod_raft::Owner;
use tripod_state::ids::{FeatureLevel, NodeId};

use crate::cmd::leader::leader;
use crate::failure::Failure;
use crate::node::retry::PAUSE;

const NOTE: &str = "joining";
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Who the node on this data directory is: as it wrote down at its first start, or as the cluster of the
/// `members` says now. Asks until somebody answers. Then: where the members reach it, and the highest feature
/// level that it supports.
pub(crate) async fn owner(
    data: &Path,
    members: &[String],
    (peer, level_max): (String, FeatureLevel),
) -> Result<Owner, Failure> {
    if let Some(owner) = known(data)? {
        return Ok(owner);
    }
    let token = note(data).map_err(|error| unwritten(data, &error))?;
    let client = Client::new(&Config { endpoints: members.to_vec(), timeout: ASK_TIMEOUT })?;
    let request = wire::JoinRequest { peer_address: peer, token, supports_level: level_max.0 };
    loop {
        let asked = match leader(&client).await {
            Ok((_, endpoint)) => Client::join(&endpoint, &request, ASK_TIMEOUT).await.map_err(Asked::of),
            Err(failure) => Err(Asked::Later(failure)),
        };
        match asked {
            Ok(wire::JoinResponse { cluster_id, node_id }) => {
                tracing::info!(cluster = cluster_id, node = node_id, "the cluster gave this node an id");
                return Ok(Owner { cluster_id, node: NodeId(node_id) });
            }
            Err(Asked::Later(failure)) => tracing::warn!(%failure, "this node could not join yet"),
            Err(Asked::Refused(reason)) => {
                return Err(Failure::told(
                    Code::JoinRefused,
                    format!("this node may not join the cluster: {reason}"),
                ));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Who the node on this data directory is, if one was started there.
pub(crate) fn known(data: &Path) -> Result<Option<Owner>, Failure> {
    tripod_raft::owner(data).map_err(|error| Failure::told(Code::NodeEnded, error.to_string()))
}

/// The node has started, and its identity is written.
pub(crate) fn done(data: &Path) {
    match fs::remove_file(data.join(NOTE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            // It does no harm: the identity comes first.
            tracing::warn!(%error, "the note of joining could not be removed");
        }
        _ => {}
    }
}

/// Why there is no id yet.
enum Asked {
    Later(Failure),
    Refused(String),
}

impl Asked {
    fn of(error: Error) -> Self {
        match &error {
            // Elections and other people's changes end.
            Error::Refused { reason, .. } if reason == "not-leader" || reason == "change-in-progress" => {
                Self::Later(error.into())
            }
            Error::Refused { .. } | Error::Config(_) => Self::Refused(error.to_string()),
            Error::Unavailable { .. } | Error::OutcomeUnknown { .. } => Self::Later(error.into()),
        }
    }
}

/// The number of this node's note; written now unless it is there.
fn note(data: &Path) -> io::Result<u64> {
    let path = data.join(NOTE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let number = u64::from_str_radix(text.trim(), 16);
            // An earlier life may have ended before it had made the name durable.
            File::open(data)?.sync_all()?;
            return number.map_err(|_| {
                io::Error::new(ErrorKind::InvalidData, format!("{} is no note", path.display()))
            });
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    if !data.is_dir() {
        fs::create_dir(data)?;
    }
    let token: u64 = rand::random_range(1..=u64::MAX);
    let temporary = data.join("joining.tmp");
    let mut file = File::create(&temporary)?;
    writeln!(file, "{token:016x}")?;
    file.sync_all()?;
    fs::rename(&temporary, &path)?;
    File::open(data)?.sync_all()?;
    Ok(token)
}

fn unwritten(data: &Path, error: &io::Error) -> Failure {
    Failure::told(
        Code::JoinNote,
        format!(
            "T4203 join-note: cannot write down in {} that this node joins: {error}; make the directory's parent, and \
             make it writable for the user that this node runs as",
            data.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stays_the_same_until_the_node_has_started() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let token = note(&data).expect("written");
        assert_eq!(note(&data).expect("read"), token);
        done(&data);
        done(&data);
        assert_ne!(note(&data).expect("written"), token);
    }

    #[test]
    fn a_note_that_is_none_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(NOTE), "x").expect("written");
        let told = unwritten(directory.path(), &note(directory.path()).expect_err("refused")).to_string();
        assert!(told.starts_with("T4203 join-note: ") && told.contains("is no note"), "{told}");
    }
}
