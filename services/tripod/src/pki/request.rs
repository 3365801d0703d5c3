//! Requests for certificates: the key stays where it was made, and the issuers where they are.

use std::fs;
use std::path::Path;

use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, DnValue, KeyPair,
    PublicKey,
};
use tripod_proto::code::Code;
use tripod_tls::KEY_FILE;

use super::{failed, store};
use crate::failure::Failure;

/// Bytes of a request; one with a key of RSA and a dozen names has two KiB.
const BYTES_MAX: u64 = 64 << 10;

/// A request of somebody who has shown that the key is theirs.
#[derive(Debug)]
pub(crate) struct Request(CertificateSigningRequestParams);

impl Request {
    /// Makes a key in the directory `out`, and writes a request for it. `path` says whose it is to be.
    pub(crate) fn make(path: &str, out: &Path, file: &Path) -> Result<(), Failure> {
        let key_file = out.join(KEY_FILE);
        if key_file.exists() {
            let text = format!(
                "{} is there, and perhaps in use; next: name another directory by --out, and put its files in the place of \
                 those when they are complete",
                key_file.display()
            );
            return Err(Failure::new(Code::PkiFailed, text));
        }
        // Whoever forgets --ca means to sign it. What is no file, as the standard output, has nothing to lose.
        if file.is_file() {
            let text = format!(
                "{} is there, and perhaps a request that is to be signed; next: sign it by the same command with --ca DIR, or \
                 name another file by --csr",
                file.display()
            );
            return Err(Failure::new(Code::PkiFailed, text));
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, path);
        let key = KeyPair::generate().map_err(failed)?;
        let request = params.serialize_request(&key).and_then(|request| request.pem()).map_err(failed)?;
        store::directory(out)?;
        store::write(out, KEY_FILE, &key.serialize_pem())?;
        let written = fs::write(file, request);
        written.map_err(|error| {
            let next = "check that its directory may be written";
            Failure::new(Code::PkiFailed, format!("cannot write {}: {error}; next: {next}", file.display()))
        })
    }

    /// Reads a request of `path`, and checks that whoever made it has the key.
    pub(crate) fn read(file: &Path, path: &str) -> Result<Self, Failure> {
        let unusable = |why: &dyn std::fmt::Display| {
            let next = "make it by --csr without --ca, or by another program as PEM (PKCS #10)";
            Failure::new(Code::PkiFailed, format!("{} is no request: {why}; next: {next}", file.display()))
        };
        let size = fs::metadata(file).map_err(|error| unusable(&error))?.len();
        if size > BYTES_MAX {
            return Err(unusable(&format_args!("it has more than {BYTES_MAX} bytes")));
        }
        let text = fs::read_to_string(file).map_err(|error| unusable(&error))?;
        let request = CertificateSigningRequestParams::from_pem(&text).map_err(|error| unusable(&error))?;
        // Requests of other programs have other names there, which say nothing.
        match request.params.distinguished_name.get(&DnType::CommonName) {
            Some(DnValue::Utf8String(named)) if named.contains('/') && named != path => {
                let text = format!(
                    "{} asks for a certificate of {named}, and not of {path}; next: name what it asks for, or another file",
                    file.display()
                );
                Err(Failure::new(Code::FlagsConflict, text))
            }
            _ => Ok(Self(request)),
        }
    }

    pub(super) fn public_key(&self) -> &PublicKey {
        &self.0.public_key
    }
}
