//! How an operator's token is made without one: by a file in a node's data directory, which nobody writes to but the node's user
//! and root. The command leaves a hash there, and the node proposes it; the secret is in no file of the node.
//!
//! Whoever may do that could as well replace the node. So it needs no other proof, and works before the cluster has anybody.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use tripod_local::files;
use tripod_state::ids::{DurationMs, TokenId};
use tripod_state::token::{Command, SecretHash};

/// What the command asks for.
const ASKED: &str = "auth-bootstrap.json";
/// What the node answers.
const ANSWERED: &str = "auth-bootstrap.answer.json";
/// Bytes of either.
const BYTES_MAX: u64 = 4 << 10;
/// What group and others may do to them: nothing.
const OTHERS: u32 = 0o077;

/// What is asked for, and what came of it, in one data directory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    data: PathBuf,
}

/// A token that is to be made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// As tokens show it.
    pub(crate) id: String,
    /// In hexadecimal.
    pub(crate) hash: String,
    /// Of the operator.
    pub(crate) name: String,
    pub(crate) lifetime_ms: u64,
    /// Who asks, for people.
    pub(crate) by: String,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) id: String,
    /// Milliseconds since 1970; `None`: it was refused.
    pub(crate) expires_ms: Option<u64>,
    /// Why it was refused, with its code.
    pub(crate) refused: String,
}

impl Asked {
    pub(crate) fn of(token: TokenId, hash: SecretHash) -> Self {
        let hash = hash.0.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        Self { id: token.to_string(), hash, name: String::new(), lifetime_ms: 0, by: String::new() }
    }

    /// The command to propose; `None`: it is none.
    pub(crate) fn command(&self) -> Option<Command> {
        let mut hash = [0; 32];
        if self.hash.len() != 64 || !self.hash.is_ascii() {
            return None;
        }
        for (byte, place) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(self.hash.get(place..place + 2)?, 16).ok()?;
        }
        Some(Command::Bootstrap {
            token: TokenId::parse(&self.id)?,
            hash: SecretHash(hash),
            name: self.name.clone(),
            lifetime_ms: DurationMs(self.lifetime_ms),
            by: self.by.clone(),
        })
    }
}

impl Place {
    pub(crate) fn of(data: &Path) -> Self {
        Self { data: data.to_owned() }
    }

    pub(crate) fn asked_file(&self) -> PathBuf {
        self.data.join(ASKED)
    }

    /// Leaves word for the node. What it answered to somebody before goes.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` if somebody else's word is there.
    pub(crate) fn ask(&self, asked: &Asked) -> io::Result<()> {
        if self.asked_file().try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let _ = fs::remove_file(self.data.join(ANSWERED));
        self.write(ASKED, &serde_json::to_vec(asked)?)
    }

    /// What the node is asked for, if anybody asks, and the user whose file that is: the node's, to whom root gives what it
    /// writes, or root. What others could have written is not read.
    ///
    /// # Errors
    /// The system's, or that it is nothing to go by.
    pub(crate) fn asked(&self) -> io::Result<Option<(Asked, u32)>> {
        self.read(ASKED)
    }

    /// Says what came of it, and takes the question away.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn answer(&self, answered: &Answered) -> io::Result<()> {
        self.write(ANSWERED, &serde_json::to_vec(answered)?)?;
        fs::remove_file(self.asked_file())
    }

    /// What the node has answered, which goes.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn take_answer(&self) -> io::Result<Option<Answered>> {
        let Some((answered, _)) = self.read(ANSWERED)? else { return Ok(None) };
        fs::remove_file(self.data.join(ANSWERED))?;
        Ok(Some(answered))
    }

    /// What is looked at is what is read, and not what lies at the path a moment later.
    fn read<T: for<'a> Deserialize<'a>>(&self, name: &str) -> io::Result<Option<(T, u32)>> {
        let path = self.data.join(name);
        // A link is not followed, and nobody waits for who might write into a pipe.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let file = match fs::File::options().read(true).custom_flags(flags.bits()).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let found = file.metadata()?;
        let owner = fs::metadata(&self.data)?.uid();
        let is_private = found.is_file() && found.mode() & OTHERS == 0 && [owner, 0].contains(&found.uid());
        if !is_private {
            let text = format!("{} is not a file of the node's user alone", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let said = serde_json::from_slice(&bytes).map_err(io::Error::from)?;
        Ok(Some((said, found.uid())))
    }

    /// A file that is there whole or not at all, for the node's user also if root writes it. The directory is that user's: what
    /// lies there under the name of the unfinished file may be a link to anything, and root writes to no file that it has not made.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (path, temporary) = (self.data.join(name), self.data.join(format!("{name}.tmp")));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = files::options().write(true).create_new(true).open(&temporary)?;
        let owner = fs::metadata(&self.data)?;
        if file.metadata()?.uid() != owner.uid() {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn asked() -> Asked {
        let asked = Asked::of(TokenId(7), SecretHash([0xa5; 32]));
        Asked { name: "alice".to_owned(), lifetime_ms: 1_000, by: "root@n1".to_owned(), ..asked }
    }

    #[test]
    fn a_node_reads_what_was_asked_and_the_command_what_was_answered_once() {
        let data = tempfile::tempdir().expect("a directory");
        let place = Place::of(data.path());
        assert!(place.asked().expect("readable").is_none());
        place.ask(&asked()).expect("asked");
        assert_eq!(place.ask(&asked()).expect_err("it waits").kind(), io::ErrorKind::AlreadyExists);
        let (found, uid) = place.asked().expect("readable").expect("it is there");
        assert_eq!(uid, fs::metadata(data.path()).expect("it is there").uid(), "whose file it is");
        let Some(Command::Bootstrap { token, hash, name, .. }) = found.command() else { panic!("it is one") };
        assert_eq!((token, hash, name.as_str()), (TokenId(7), SecretHash([0xa5; 32]), "alice"));
        let answered = Answered { id: TokenId(7).to_string(), expires_ms: Some(9), refused: String::new() };
        place.answer(&answered).expect("answered");
        assert!(place.asked().expect("readable").is_none());
        assert_eq!(place.take_answer().expect("readable"), Some(answered));
        assert_eq!(place.take_answer().expect("readable"), None);
    }

    #[test]
    fn what_others_could_have_written_is_not_read() {
        let data = tempfile::tempdir().expect("a directory");
        let place = Place::of(data.path());
        place.ask(&asked()).expect("asked");
        fs::set_permissions(place.asked_file(), Permissions::from_mode(0o620)).expect("set");
        assert_eq!(place.asked().expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
        fs::remove_file(place.asked_file()).expect("removed");
        let elsewhere = data.path().join("elsewhere");
        fs::write(&elsewhere, serde_json::to_vec(&asked()).expect("JSON")).expect("written");
        std::os::unix::fs::symlink(&elsewhere, place.asked_file()).expect("linked");
        assert!(place.asked().is_err(), "a link is not followed");
    }

    #[test]
    fn what_a_link_in_the_place_of_an_unfinished_file_leads_to_stays_as_it_was() {
        let data = tempfile::tempdir().expect("a directory");
        let elsewhere = data.path().join("elsewhere");
        fs::write(&elsewhere, "of root").expect("written");
        fs::set_permissions(&elsewhere, Permissions::from_mode(0o644)).expect("set");
        for name in [ASKED, ANSWERED] {
            std::os::unix::fs::symlink(&elsewhere, data.path().join(format!("{name}.tmp"))).expect("linked");
        }
        let place = Place::of(data.path());
        place.ask(&asked()).expect("asked");
        assert!(place.asked().expect("readable").is_some(), "it is a file of its own");
        let answered = Answered { id: TokenId(7).to_string(), expires_ms: Some(9), refused: String::new() };
        place.answer(&answered).expect("answered");
        assert_eq!(place.take_answer().expect("readable"), Some(answered));
        assert_eq!(fs::read_to_string(&elsewhere).expect("readable"), "of root");
        assert_eq!(fs::metadata(&elsewhere).expect("it is there").mode() & 0o777, 0o644);
        // One that was left behind by a process that was killed is no obstacle.
        fs::write(data.path().join(format!("{ASKED}.tmp")), "half").expect("written");
        place.ask(&asked()).expect("asked");
    }

    #[test]
    fn a_hash_or_an_id_that_is_none_is_no_command() {
        for (id, hash) in
            [("x", "a5".repeat(32)), ("aaaaaaaaaaaah", "é".repeat(32)), ("aaaaaaaaaaaah", "a5".repeat(31))]
        {
            assert!(Asked { id: id.to_owned(), hash, ..asked() }.command().is_none());
        }
    }
}
