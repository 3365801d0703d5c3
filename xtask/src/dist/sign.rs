//! By whom a release was made: the list of its hashes is signed as minisign does it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use minisign::{PublicKey, SecretKey, SecretKeyBox};

use super::release::Release;
use crate::cargo::SIGNING_PASSWORD as PASSWORD;

/// What follows the name of a file in that of its signature.
pub(crate) const SUFFIX: &str = ".minisig";
/// What others may do to the key: nothing.
const OTHERS: u32 = 0o077;

/// Signs with one key.
pub(crate) struct Signer {
    key: SecretKey,
    public: PublicKey,
}

impl Signer {
    /// The key in a file, as `minisign -G` or `minisign -GW` makes it.
    ///
    /// # Errors
    /// It is no such file, others may use it, or the password is not its own.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        Self::with_password(file, std::env::var(PASSWORD).ok())
    }

    fn with_password(file: &Path, password: Option<String>) -> Result<Self> {
        let shown = file.display();
        let read = || format!("cannot read {shown}");
        if fs::metadata(file).with_context(read)?.mode() & OTHERS != 0 {
            bail!("others may use {shown}, which signs releases; `chmod 600 {shown}`");
        }
        let text = fs::read_to_string(file).with_context(read)?;
        let unusable = || format!("{shown} is no secret key of minisign, or {PASSWORD} is not its password");
        let key = SecretKeyBox::from_string(&text).with_context(unusable)?;
        let key = match password {
            // Asks nobody: who makes a release may not be there.
            Some(password) => key.into_secret_key(Some(password)),
            None => key.into_unencrypted_secret_key(),
        };
        let key = key.with_context(unusable)?;
        let public = PublicKey::from_secret_key(&key).with_context(unusable)?;
        Ok(Self { key, public })
    }

    /// The signature of some bytes, as the text of its file. It says of which release they are.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn sign(&self, bytes: &[u8], release: &Release) -> Result<String> {
        let trusted = format!("{} of commit time {}", release.full_name(), release.epoch_s);
        let signed =
            minisign::sign(Some(&self.public), &self.key, bytes, Some(&trusted), Some("signature of tripod"));
        Ok(signed.context("cannot sign")?.into_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Cursor;
    use std::os::unix::fs::PermissionsExt as _;

    use minisign::{KeyPair, SignatureBox};

    use super::super::release::sample;
    use super::*;

    #[test]
    fn s60_whoever_has_the_public_key_can_tell_what_was_signed_from_what_was_changed() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("key");
        let holds = |public: &PublicKey, signature: &str, bytes: &[u8]| {
            let signature = SignatureBox::from_string(signature).unwrap();
            minisign::verify(public, &signature, Cursor::new(bytes), true, false, false).is_ok()
        };
        let pair = KeyPair::generate_unencrypted_keypair().unwrap();
        fs::write(&file, pair.sk.to_box(None).unwrap().into_string()).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let Err(error) = Signer::with_password(&file, None) else { panic!("others may read it") };
        assert!(error.to_string().contains("`chmod 600 "), "{error}");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let signature = Signer::with_password(&file, None).unwrap().sign(b"sums", &sample()).unwrap();
        assert!(
            signature.contains("trusted comment: tripod-0.1.0-linux-x86_64 of commit time 1700000000"),
            "{signature}"
        );
        assert!(holds(&pair.pk, &signature, b"sums"));
        assert!(!holds(&pair.pk, &signature, b"summs"));
        assert!(
            !holds(&pair.pk, &signature.replace("x86_64", "x86_65"), b"sums"),
            "what it says is signed, too"
        );
        let other = KeyPair::generate_unencrypted_keypair().unwrap();
        assert!(!holds(&other.pk, &signature, b"sums"));

        let locked = KeyPair::generate_encrypted_keypair(Some("secret".into())).unwrap();
        fs::write(&file, locked.sk.to_box(None).unwrap().into_string()).unwrap();
        assert!(Signer::with_password(&file, Some("secret".into())).is_ok());
        for wrong in [None, Some("wrong".into())] {
            let Err(error) = Signer::with_password(&file, wrong) else { panic!("taken") };
            assert!(error.to_string().contains(PASSWORD), "{error}");
        }
        let builds = crate::cargo::cargo(&["build"]);
        assert!(builds.get_envs().any(|(name, value)| name == PASSWORD && value.is_none()), "builds know it");
    }
}
