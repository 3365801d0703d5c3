//! Which roots are believed.

use std::path::Path;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor};

use crate::fault::Fault;
use crate::limits::ROOTS_MAX;

/// Roots of one kind of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots(pub(crate) Vec<TrustAnchor<'static>>);

impl Roots {
    /// Those of a file's contents.
    ///
    /// # Errors
    /// There is none, there are too many, or one is no certificate.
    pub(crate) fn parse(path: &Path, pem: &[u8]) -> Result<Self, Fault> {
        let next = "write there the certificates of 1 to 8 roots as PEM";
        let mut roots = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| Fault::file(path, format_args!("is not PEM: {error}"), next))?;
            let root = webpki::anchor_from_trusted_cert(&certificate);
            let root = root.map_err(|error| Fault::file(path, format_args!("has no root: {error}"), next))?;
            if roots.len() == ROOTS_MAX {
                return Err(Fault::file(path, format_args!("has more than {ROOTS_MAX} roots"), next));
            }
            roots.push(root.to_owned());
        }
        if roots.is_empty() {
            return Err(Fault::file(path, "has no certificate", next));
        }
        Ok(Self(roots))
    }
}
