//! Opening the ports of a node.

use std::path::Path;

use tokio::net::TcpListener;
use tripod_local::Peers;
use tripod_port::{Binder, Listener};
use tripod_proto::code::Code;

use crate::failure::Failure;

/// Opens the port that `flag` names.
pub(crate) async fn tcp(flag: &'static str, address: &str) -> Result<TcpListener, Failure> {
    let opened = named(flag).tcp(address).await;
    opened.map_err(|error| Failure::new(Code::ListenFailed, error.to_string()))
}

/// Opens a unix socket for processes of this user, of root, and of the users `uids`.
pub(crate) fn unix(path: &Path, uids: &[u32]) -> Result<Listener, Failure> {
    let peers = Peers::with(uids, ", or name it with --socket-uids");
    let opened = named("--client-socket").unix(&path.display().to_string(), path, peers);
    opened.map_err(|error| Failure::told(Code::ListenFailed, error.to_string()))
}

fn named(flag: &'static str) -> Binder {
    Binder { flag, others: "another process", form: "HOST:PORT" }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_port_in_use_is_named_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = taken.local_addr().expect("bound").to_string();
        let text = tcp("--http", &address).await.expect_err("in use").to_string();
        assert!(
            text.starts_with(&format!("T1401 listen-failed: cannot listen on --http {address}: ")),
            "{text}"
        );
        assert!(text.ends_with("another process listens there; end it or choose another port"), "{text}");
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced_but_a_file_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tripod.sock");
        drop(unix(&path, &[]).expect("free"));
        let open = unix(&path, &[]).expect("nobody listens any more");
        assert!(unix(&path, &[]).expect_err("in use").to_string().contains("another process listens there"));
        drop(open);
        let file = directory.path().join("notes");
        std::fs::write(&file, "mine").expect("written");
        assert!(unix(&file, &[]).expect_err("a file").to_string().contains("no socket"));
        assert!(file.exists());
    }

    #[tokio::test]
    async fn a_socket_is_for_its_owner_and_where_others_could_replace_it_there_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let mode = || std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        drop(unix(&path, &[]).expect("free"));
        assert_eq!(mode(), 0o600);
        drop(unix(&path, &[12_345]).expect("free again"));
        assert_eq!(mode(), 0o666, "who connects is looked at");
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("set");
        let refused = unix(&path, &[]).expect_err("refused");
        assert_eq!(refused.code(), Code::NotPrivate);
        assert!(refused.to_string().contains("cannot listen on --client-socket"), "{refused}");
    }
}
