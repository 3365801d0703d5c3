//! Who has connected to a socket, and who listens at one.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tripod_proto::code::Code;

use crate::files::FILE_MODE;
use crate::user;

/// How many other users may be named for a socket.
pub const UIDS_MAX: usize = 64;

/// Of a socket that other users are to connect to.
const OPEN_MODE: u32 = 0o666;

/// Between two words to the operator about those who were refused.
const WORD_EVERY: Duration = Duration::from_secs(10);

/// The users whose processes a socket serves: this one, root, and those that were named. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers {
    own: u32,
    others: Arc<[u32]>,
    /// What the operator of the socket can do for somebody who was refused.
    next: &'static str,
    refused: Arc<Mutex<Refused>>,
}

#[derive(Debug, Default)]
struct Refused {
    count: u64,
    told: Option<Instant>,
}

/// A process of a user who is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// The user; `None`: the system does not say.
    uid: Option<u32>,
    serves: u32,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, serves) = (Code::NotPrivate, self.serves);
        match self.uid {
            Some(uid) => {
                write!(f, "{code}: this socket serves user {serves}, and this process is of user {uid}")
            }
            None => write!(
                f,
                "{code}: this socket serves user {serves}, and the system does not say whose this process is"
            ),
        }
    }
}

impl Peers {
    /// This user and root; `next` completes "next: run it as that user".
    #[must_use]
    pub fn own(next: &'static str) -> Self {
        Self::with(&[], next)
    }

    /// These users, too.
    #[must_use]
    pub fn with(others: &[u32], next: &'static str) -> Self {
        Self { own: user::own(), others: others.into(), next, refused: Arc::default() }
    }

    /// The mode of the socket: others need to be let in by the system before they can be looked at.
    #[must_use]
    pub fn socket_mode(&self) -> u32 {
        if self.others.is_empty() { FILE_MODE } else { OPEN_MODE }
    }

    /// Looks who has connected. Who is refused is told to the log, at most every ten seconds.
    ///
    /// # Errors
    /// [`Stranger`].
    pub fn admit(&self, stream: impl AsFd) -> Result<(), Stranger> {
        let uid = rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.uid.as_raw());
        if uid.is_some_and(|uid| uid == self.own || uid == user::ROOT || self.others.contains(&uid)) {
            return Ok(());
        }
        let stranger = Stranger { uid, serves: self.own };
        self.tell(stranger);
        Err(stranger)
    }

    fn tell(&self, stranger: Stranger) {
        let mut refused = self.refused.lock();
        refused.count += 1;
        if refused.told.is_none_or(|told| told.elapsed() >= WORD_EVERY) {
            refused.told = Some(Instant::now());
            let (count, next) = (refused.count, self.next);
            tracing::warn!(refused = count, "{stranger}; it was refused; next: run it as that user{next}");
        }
    }
}

/// Checks that the process that listens at the socket to which `stream` is connected is this user's or root's. It is what
/// holds when a path was replaced after it was looked at.
///
/// # Errors
/// It is not, or the system does not say.
pub fn check_listener(stream: impl AsFd) -> io::Result<()> {
    let (own, found) = (user::own(), rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw());
    if found == own || found == user::ROOT {
        return Ok(());
    }
    let text = format!(
        "{}: user {found} listens there, and this process is of user {own}: what it says is not believed",
        Code::NotPrivate
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::os::unix::process::CommandExt as _;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

    /// What the process of the other user is told: where to connect to, or to listen.
    const CONNECT: &str = "TRIPOD_TEST_CONNECT";
    const LISTEN: &str = "TRIPOD_TEST_LISTEN";
    const STRANGER: u32 = 12_345;

    /// This same test, as a process of another user; `None` if there cannot be one.
    fn as_another_user(test: &str, role: &str, socket: &std::path::Path) -> Option<Command> {
        if user::own() != user::ROOT {
            eprintln!("not root: there can be no process of another user");
            return None;
        }
        // The other user need not reach the directory of the build.
        let program = socket.with_file_name("program");
        fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("set");
        fs::set_permissions(socket.parent().expect("a directory"), Permissions::from_mode(0o777))
            .expect("set");
        let mut command = Command::new(program);
        command.args(["--exact", test, "--nocapture"]).env(role, socket).uid(STRANGER).stdin(Stdio::piped());
        Some(command)
    }

    #[test]
    fn a_process_of_another_user_is_refused_unless_it_was_named() {
        if let Some(socket) = std::env::var_os(CONNECT).map(PathBuf::from) {
            for _ in 0..2 {
                let _held = UnixStream::connect(&socket).expect("anybody may connect");
            }
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("s");
        let listener = UnixListener::bind(&socket).expect("bound");
        fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("set");
        let own = UnixStream::connect(&socket).expect("connected");
        Peers::own("").admit(&listener.accept().expect("accepted").0).expect("this user");
        check_listener(&own).expect("this user");
        let test = "peers::tests::a_process_of_another_user_is_refused_unless_it_was_named";
        let Some(mut command) = as_another_user(test, CONNECT, &socket) else { return };
        let mut child = command.spawn().expect("started");
        let peers = Peers::own("");
        let stranger = peers.admit(&listener.accept().expect("accepted").0).expect_err("refused");
        assert_eq!(stranger, Stranger { uid: Some(STRANGER), serves: 0 });
        assert!(
            stranger.to_string().starts_with("T1402 not-private: this socket serves user 0"),
            "{stranger}"
        );
        let named = Peers::with(&[STRANGER], "");
        named.admit(&listener.accept().expect("accepted").0).expect("named");
        assert!(child.wait().expect("ended").success());
    }

    #[test]
    fn a_listener_of_another_user_is_not_believed() {
        use std::io::Read as _;
        if let Some(socket) = std::env::var_os(LISTEN) {
            let _listener = UnixListener::bind(socket).expect("bound");
            println!("\nlistens");
            // Until the other process has seen it.
            _ = io::stdin().read(&mut [0]);
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("s");
        let test = "peers::tests::a_listener_of_another_user_is_not_believed";
        let Some(mut command) = as_another_user(test, LISTEN, &socket) else { return };
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let mut said = io::BufReader::new(child.stdout.take().expect("piped"));
        let listens = io::BufRead::lines(&mut said).map_while(Result::ok).any(|line| line == "listens");
        assert!(listens, "it ended before it listened");
        let stream = UnixStream::connect(&socket).expect("connected");
        let text = check_listener(&stream).expect_err("refused").to_string();
        assert!(text.contains("user 12345 listens there"), "{text}");
        drop(child.stdin.take());
        assert!(child.wait().expect("ended").success());
    }
}
