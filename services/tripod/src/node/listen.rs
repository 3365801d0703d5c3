//! Opening ports, with errors that name the flag, the address and the next step.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};
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

/// Opens a unix socket. A socket file that a killed process left behind is replaced; anything else at
/// that path is not.
pub(crate) fn unix(path: &Path) -> Result<UnixListener, Failure> {
    let fail = |why: &dyn std::fmt::Display| {
        Failure::new(
            Code::ListenFailed,
            format!("cannot listen on --client-socket {}: {why}", path.display()),
        )
    };
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(fail(&"a file that is no socket is there; choose another path"));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(fail(&"another process listens there; end it or choose another path"));
        }
        std::fs::remove_file(path).map_err(|error| fail(&error))?;
    }
    UnixListener::bind(path).map_err(|error| fail(&error))
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
        drop(unix(&path).expect("free"));
        let open = unix(&path).expect("nobody listens any more");
        assert!(unix(&path).expect_err("in use").to_string().contains("another process listens there"));
        drop(open);
        let file = directory.path().join("notes");
        std::fs::write(&file, "mine").expect("written");
        assert!(unix(&file).expect_err("a file").to_string().contains("no socket"));
        assert!(file.exists());
    }
}
