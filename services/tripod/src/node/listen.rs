//! Opening ports, with errors that name the flag, the address and the next step.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};
use tripod_local::{NotPrivate, Peers, check_place};
use tripod_port::Listener;
use tripod_proto::code::Code;

use crate::failure::Failure;

/// Opens the port that `flag` names.
pub(crate) async fn tcp(flag: &str, address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let next = match error.kind() {
            io::ErrorKind::AddrInUse => "another process listens there; end it or choose another port",
            io::ErrorKind::AddrNotAvailable => "this machine has no such address; choose one of its own",
            io::ErrorKind::PermissionDenied => "the port needs a privilege; choose one above 1023",
            io::ErrorKind::InvalidInput => "write it as HOST:PORT",
            _ => "check the address",
        };
        Failure::new(Code::ListenFailed, format!("cannot listen on {flag} {address}: {error}; {next}"))
    })
}

/// Opens a unix socket for processes of this user, of root, and of the users `uids`. A socket file that a killed process
/// left behind is replaced; anything else at that path is not.
pub(crate) fn unix(path: &Path, uids: &[u32]) -> Result<Listener, Failure> {
    let fail = |why: &dyn std::fmt::Display| {
        Failure::told(
            Code::ListenFailed,
            format!("cannot listen on --client-socket {}: {why}", path.display()),
        )
    };
    match check_place(path) {
        // Whoever could replace the socket could be taken for this node.
        Err(error @ NotPrivate::Refused { .. }) => return Err(fail(&error)),
        // What is wrong is told when it cannot be made.
        Ok(()) | Err(NotPrivate::Io { .. }) => {}
    }
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(fail(&"a file that is no socket is there; choose another path"));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(fail(&"another process listens there; end it or choose another path"));
        }
        std::fs::remove_file(path).map_err(|error| fail(&error))?;
    }
    let peers = Peers::with(uids, ", or name it with --socket-uids");
    let listener = UnixListener::bind(path).map_err(|error| fail(&error))?;
    std::fs::set_permissions(path, Permissions::from_mode(peers.socket_mode()))
        .map_err(|error| fail(&error))?;
    Ok(Listener::Unix(listener, peers))
}

#[cfg(test)]
mod tests {
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
