//! What a process proves itself with, and whom it believes.

use std::path::Path;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use tripod_identity::{Identity, Kind};
use webpki::{CertRevocationList, EndEntityCert, OwnedCertRevocationList};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::chain::{self, Chain, Judge, Side, Whose};
use crate::fault::Fault;
use crate::files::{CERTIFICATE_FILE, CLIENT_ROOTS_FILE, Files, KEY_FILE, REVOKED_FILE, ROOTS_FILE};
use crate::limits::{CHAIN_MAX, REVOCATION_LISTS_MAX};
use crate::outcome::Outcome;
use crate::roots::Roots;

/// Files that hold together.
#[derive(Debug)]
pub(crate) struct Material {
    /// The own chain and key.
    pub(crate) own: Arc<CertifiedKey>,
    pub(crate) identity: Identity,
    pub(crate) node_roots: Roots,
    pub(crate) client_roots: Roots,
    pub(crate) revoked: Vec<CertRevocationList<'static>>,
    /// When the own certificate ends, in seconds since 1970.
    pub(crate) not_after: u64,
    /// Its number, in hexadecimal.
    pub(crate) serial: String,
    /// By which other files are told from these.
    pub(crate) digest: u128,
}

impl Material {
    /// What a directory's files are.
    ///
    /// # Errors
    /// One of them is not what it should be, or they do not fit each other.
    pub(crate) fn read(directory: &Path) -> Result<Self, Fault> {
        Self::parse(&Files::read(directory)?)
    }

    pub(crate) fn parse(files: &Files) -> Result<Self, Fault> {
        let path = |name| files.directory.join(name);
        let node_roots = Roots::parse(&path(ROOTS_FILE), &files.roots)?;
        let client_roots = match &files.client_roots {
            Some(pem) => Roots::parse(&path(CLIENT_ROOTS_FILE), pem)?,
            None => node_roots.clone(),
        };
        let revoked = revoked(&path(REVOKED_FILE), files.revoked.as_deref().unwrap_or_default())?;
        let certificate = path(CERTIFICATE_FILE);
        let chain = certificates(&certificate, &files.certificate)?;
        let own = pair(&certificate, &path(KEY_FILE), chain, &files.key)?;
        let leaf = &own.cert[0];
        let damaged = |error: &dyn std::fmt::Display| {
            Fault::file(&certificate, format_args!("is damaged: {error}"), REMAKE)
        };
        let entity = EndEntityCert::try_from(leaf).map_err(|error| damaged(&error))?;
        let identity = chain::identity_in(&entity).map_err(|refused| {
            Fault::file(&certificate, format_args!("cannot be used: {refused}"), REMAKE)
        })?;
        let (_, parsed) = X509Certificate::from_der(leaf).map_err(|error| damaged(&error))?;
        check_dates(
            &certificate,
            parsed.validity().not_before.timestamp(),
            parsed.validity().not_after.timestamp(),
        )?;
        let not_after = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
        let serial = parsed.raw_serial_as_string();
        let material = Self {
            identity,
            not_after,
            serial,
            node_roots,
            client_roots,
            revoked,
            digest: files.digest(),
            own: Arc::clone(&own),
        };
        material.check_own(&certificate)?;
        Ok(material)
    }

    /// Whether the own certificate would be believed by a process with the same files.
    fn check_own(&self, path: &Path) -> Result<(), Fault> {
        let judge = self.judge();
        let chain = Chain { leaf: &self.own.cert[0], between: &self.own.cert[1..] };
        let judged = if matches!(self.identity.kind, Kind::Node(_)) {
            let server = judge.identity(chain, &self.node_roots, Side::Server, Whose::Node);
            server.and_then(|_| judge.identity(chain, &self.node_roots, Side::Client, Whose::Node))
        } else if self.client_roots == self.node_roots {
            // A client has the roots of nodes, which need not be those that its own certificate has.
            match judge.identity(chain, &self.client_roots, Side::Client, Whose::Client) {
                Err(refused) if refused.outcome == Outcome::UnknownCa => return Ok(()),
                judged => judged,
            }
        } else {
            judge.identity(chain, &self.client_roots, Side::Client, Whose::Client)
        };
        match judged {
            Ok(_) => Ok(()),
            Err(refused) => Err(Fault::file(path, format_args!("cannot be used: {refused}"), REMAKE)),
        }
    }

    /// What others are judged by, now.
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { realm: Some(&self.identity.realm), revoked: &self.revoked, now: chain::now() }
    }
}

/// Whether a certificate's time has come, and is not over; in seconds since 1970.
fn check_dates(path: &Path, not_before: i64, not_after: i64) -> Result<(), Fault> {
    let now = i64::try_from(chain::now().as_secs()).unwrap_or(i64::MAX);
    if now < not_before {
        let why = format!("is not valid for another {} s", not_before - now);
        return Err(Fault::expired(path, why, "check this machine's clock"));
    }
    if now > not_after {
        return Err(Fault::expired(path, format!("expired {} s ago", now - not_after), REMAKE));
    }
    Ok(())
}

const REMAKE: &str = "make it anew by `tripod pki node` or `tripod pki operator`, or have your issuer do so";

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let mut chain = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate =
            certificate.map_err(|error| Fault::file(path, format_args!("is not PEM: {error}"), REMAKE))?;
        if chain.len() == CHAIN_MAX {
            return Err(Fault::file(path, format_args!("has more than {CHAIN_MAX} certificates"), REMAKE));
        }
        chain.push(certificate);
    }
    if chain.is_empty() {
        return Err(Fault::file(path, "has no certificate", REMAKE));
    }
    Ok(chain)
}

fn pair(
    certificate: &Path,
    path: &Path,
    chain: Vec<CertificateDer<'static>>,
    pem: &[u8],
) -> Result<Arc<CertifiedKey>, Fault> {
    let unusable =
        |error: &dyn std::fmt::Display| Fault::file(path, format_args!("has no key: {error}"), REMAKE);
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| unusable(&error))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = provider.key_provider.load_private_key(key).map_err(|error| unusable(&error))?;
    let own = CertifiedKey::new(chain, key);
    own.keys_match().map_err(|_| {
        let next = "copy both from where they were made together";
        Fault::file(path, format_args!("is not the key of {}", certificate.display()), next)
    })?;
    Ok(Arc::new(own))
}

pub(crate) fn revoked(path: &Path, pem: &[u8]) -> Result<Vec<CertRevocationList<'static>>, Fault> {
    let next = "write there the lists of revoked certificates as PEM, or remove it";
    let mut lists = Vec::new();
    for list in CertificateRevocationListDer::pem_slice_iter(pem) {
        let list = list.map_err(|error| Fault::file(path, format_args!("is not PEM: {error}"), next))?;
        if lists.len() == REVOCATION_LISTS_MAX {
            return Err(Fault::file(path, format_args!("has more than {REVOCATION_LISTS_MAX} lists"), next));
        }
        let list = OwnedCertRevocationList::from_der(&list);
        lists.push(
            list.map_err(|error| Fault::file(path, format_args!("has no list: {error}"), next))?.into(),
        );
    }
    if lists.is_empty() && !pem.is_empty() {
        // Whoever meant to revoke somebody must hear that nobody is.
        return Err(Fault::file(path, "has no list", next));
    }
    Ok(lists)
}
