//! Lists of revoked certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use tripod_proto::code::Code;
use tripod_tls::REVOKED_FILE;
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::parse_x509_pem;

use super::authority::{Authority, at, now};
use super::record::{ISSUED, Line, REVOKED, Record};
use super::{failed, store};
use crate::failure::Failure;

/// The number of the last list.
const NUMBER: &str = "crl-number";

impl Authority {
    /// Revokes certificates. Each of `whom` is the path of an identity, all of whose certificates that were issued here are
    /// meant, or the file of a certificate. Gives what was not revoked before.
    pub(crate) fn revoke(&self, whom: &[String]) -> Result<Vec<Line>, Failure> {
        let now_s = now().as_secs();
        let record = Record::open(self.directory())?;
        let known = record.read(REVOKED, now_s)?;
        let issued = record.read(ISSUED, now_s)?;
        let mut more: Vec<Line> = Vec::new();
        for one in whom {
            let found = if Path::new(one).is_file() {
                vec![self.issued_in(Path::new(one))?]
            } else {
                let of_path: Vec<Line> = issued.iter().filter(|line| line.path == *one).cloned().collect();
                if of_path.is_empty() {
                    let text = format!(
                        "`{one}` is no file, and no certificate of it that has not expired is known here; next: name the \
                         file of its certificate"
                    );
                    return Err(Failure::new(Code::PkiFailed, text));
                }
                of_path
            };
            for line in found {
                let is_same = |other: &Line| other.signer == line.signer && other.serial == line.serial;
                if !known.iter().chain(&more).any(is_same) {
                    more.push(Line { at_s: now_s, ..line });
                }
            }
        }
        record.add(REVOKED, &more, now_s)?;
        Ok(more)
    }

    /// Writes the lists of all issuers beside their keys, and into these files as well. Each says that a newer one is due
    /// after that time; until there is one it counts on. Gives how many certificates are in them.
    pub(crate) fn write_lists(&self, lifetime: Duration, files: &[PathBuf]) -> Result<usize, Failure> {
        let (directory, now) = (self.directory(), now());
        // Also for the number, and so that an older list is never written over a newer one.
        let record = Record::open(directory)?;
        let revoked = record.read(REVOKED, now.as_secs())?;
        let number = if directory.join(NUMBER).exists() {
            store::read(directory, NUMBER)?.trim().parse::<u64>().map_err(failed)?.saturating_add(1)
        } else {
            1
        };
        // First: no two lists ever have one number.
        store::write(directory, NUMBER, &format!("{number}\n"))?;
        let mut lists = String::new();
        for signer in self.signers() {
            let of_signer = revoked.iter().filter(|line| line.signer == signer);
            let params = CertificateRevocationListParams {
                this_update: at(now)?,
                next_update: at(now.saturating_add(lifetime))?,
                crl_number: SerialNumber::from(number),
                issuing_distribution_point: None,
                revoked_certs: of_signer.map(revoked_params).collect::<Result<_, _>>()?,
                key_identifier_method: KeyIdMethod::Sha256,
            };
            let list = params.signed_by(&self.issuer(signer)?).and_then(|list| list.pem()).map_err(failed)?;
            lists.push_str(&list);
        }
        store::write(directory, REVOKED_FILE, &lists)?;
        for file in files {
            let parent =
                file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or(REVOKED_FILE);
            store::write(parent, name, &lists)?;
        }
        drop(record);
        Ok(revoked.len())
    }

    /// The certificate in a file, if one of these issuers has signed it.
    fn issued_in(&self, file: &Path) -> Result<Line, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            let next = "name the file tls.crt of what is to be revoked";
            Failure::new(Code::PkiFailed, format!("{}: {why}; next: {next}", file.display()))
        };
        let pem = fs::read(file).map_err(|error| refused(&error))?;
        let (_, pem) = parse_x509_pem(&pem).map_err(|error| refused(&error))?;
        let certificate = pem.parse_x509().map_err(|error| refused(&error))?;
        for signer in self.signers() {
            let root = store::read(self.directory(), &format!("{signer}.crt"))?;
            let (_, root) = parse_x509_pem(root.as_bytes()).map_err(failed)?;
            let root = root.parse_x509().map_err(failed)?;
            let is_ours = certificate.issuer().as_raw() == root.subject().as_raw()
                && certificate.verify_signature(Some(root.public_key())).is_ok();
            if is_ours {
                return Ok(line_of(signer, &certificate));
            }
        }
        let text = format!("none of the issuers in {} has signed it", self.directory().display());
        Err(refused(&text))
    }
}

fn line_of(signer: &str, certificate: &X509Certificate<'_>) -> Line {
    let serial = certificate.raw_serial().iter().copied().skip_while(|byte| *byte == 0).collect();
    let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    Line {
        signer: signer.to_owned(),
        serial,
        not_after_s: u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0),
        at_s: 0,
        // It is there for whoever reads the list; a blank would end it.
        path: name.unwrap_or("-").replace(char::is_whitespace, "_"),
    }
}

fn revoked_params(line: &Line) -> Result<RevokedCertParams, Failure> {
    Ok(RevokedCertParams {
        serial_number: SerialNumber::from_slice(&line.serial),
        revocation_time: at(Duration::from_secs(line.at_s))?,
        reason_code: None,
        invalidity_date: None,
    })
}
