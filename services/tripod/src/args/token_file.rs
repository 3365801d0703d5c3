//! The file of the token that this process shows to nodes.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tripod_proto::code::Code;
use tripod_token::{TOKEN_BYTES_MAX, TokenText};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::logging::number;
use crate::secret_file;

/// How often a process that goes on looks whether there is another token in its file.
const READ_EVERY: Duration = Duration::from_secs(60);

/// From now on the calls of this process say whose they are, by the token of that file.
///
/// # Errors
/// The file cannot be read, others may read it, or it holds something else; or there is no TLS to show it by.
pub(crate) fn bear(path: &Path, tls_dir: Option<&Path>) -> Result<(), Failure> {
    let token = read(path)?;
    if tls_dir.is_none() {
        let text = "--token-file: a token is shown to nodes over TLS only; add --tls-dir DIR, or leave the token out";
        return Err(Failure::new(Code::TokenPlain, text));
    }
    tripod_dial::bear(&token).map_err(|error| refused(path, &error.to_string()))
}

/// Shows what is in the file from then on, once a minute: a token lives for a day, and an agent for longer. Never ends.
pub(crate) async fn keep_current(path: PathBuf) {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        let from = path.clone();
        let token = tokio::task::spawn_blocking(move || read(&from)).await;
        let shown = match token {
            Ok(Ok(token)) => tripod_dial::bear(&token).map_err(|error| refused(&path, &error.to_string())),
            Ok(Err(failure)) => Err(failure),
            // The runtime ends.
            Err(_) => return,
        };
        if let Err(failure) = shown {
            tracing::warn!(code = number(failure.code()), %failure, "the token before is shown on");
        }
    }
}

fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let file = secret_file::open(path).map_err(|why| refused(path, &why))?;
    let mut text = Zeroizing::new(String::new());
    let most = TOKEN_BYTES_MAX as u64 + 2;
    file.take(most).read_to_string(&mut text).map_err(|error| refused(path, &error.to_string()))?;
    let text = Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned());
    match TokenText::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(refused(path, &format!("it does not hold a token: {error}"))),
    }
}

fn refused(path: &Path, why: &str) -> Failure {
    let path = path.display();
    Failure::new(
        Code::TokenFile,
        format!("--token-file {path} cannot be used: {why}; `tripod auth token create --out FILE` makes one"),
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use tripod_state::token::Kind;

    use super::*;

    #[test]
    fn a_token_is_read_from_a_file_that_nobody_else_reads() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("token");
        let token = TokenText::draw(Kind::Viewer).expect("random bits").write();
        let told = |mode: u32, text: &str| {
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            read(&path).map(|text| text.to_string())
        };
        assert_eq!(told(0o600, &token).as_deref(), Ok(token.as_str()));
        assert_eq!(told(0o400, &format!("{}\n", *token)).as_deref(), Ok(token.as_str()));
        for mode in [0o640, 0o604, 0o660, 0o644] {
            let failure = told(mode, &token).expect_err("others may read it");
            assert_eq!(failure.code(), Code::TokenFile);
            assert!(failure.to_string().contains("`chmod 600 "), "{failure}");
        }
        for text in ["", "trp_viewer", &format!("{} x", *token), &"a".repeat(1 << 20)] {
            let failure = told(0o600, text).expect_err("it is no token").to_string();
            assert!(!failure.contains(token.as_str()), "a text is not repeated");
        }
        assert_eq!(read(&place.path().join("none")).expect_err("missing").code(), Code::TokenFile);
        told(0o600, &token).expect("legal");
        assert_eq!(bear(&path, None).expect_err("in plain text").code(), Code::TokenPlain);
    }
}
