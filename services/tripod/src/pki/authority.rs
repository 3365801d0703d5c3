//! The two issuers of a cluster.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use time::OffsetDateTime;
use tripod_identity::{Identity, Kind, Realm};
use tripod_proto::code::Code;
use tripod_tls::{CERTIFICATE_FILE, CLIENT_ROOTS_FILE, KEY_FILE, ROOTS_FILE};

use super::store;
use crate::failure::Failure;

/// Signs nodes.
const PEER: &str = "peer-ca";
/// Signs everybody else.
const CLIENT: &str = "client-ca";
/// What all identities begin with.
const REALM: &str = "realm";
/// Machines whose clocks are behind by so much believe a new certificate.
const BACKDATED: Duration = Duration::from_mins(5);

/// A directory with the keys that sign for a cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    directory: PathBuf,
    realm: Realm,
}

/// A certificate that was made.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) identity: Identity,
    pub(crate) files: Vec<&'static str>,
    /// In milliseconds since 1970.
    pub(crate) not_after_ms: u64,
}

impl Authority {
    /// Makes the issuers of a cluster: one for nodes and one for clients, or one for both.
    pub(crate) fn init(
        directory: &Path,
        realm: Realm,
        one_ca: bool,
        lifetime: Duration,
    ) -> Result<Self, Failure> {
        store::directory(directory)?;
        let made = directory.join(format!("{PEER}.key"));
        if made.exists() {
            let text = format!(
                "{} is there, and every certificate that it has signed would be worth nothing; next: choose another directory",
                made.display()
            );
            return Err(Failure::new(Code::PkiFailed, text));
        }
        store::write(directory, REALM, &format!("{realm}\n"))?;
        let names: &[&str] = if one_ca { &[PEER] } else { &[CLIENT, PEER] };
        for name in names {
            let mut params = params(lifetime)?.0;
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            params.distinguished_name.push(DnType::CommonName, format!("tripod {} {name}", realm.cluster));
            let key = KeyPair::generate().map_err(failed)?;
            let certificate = params.self_signed(&key).map_err(failed)?;
            store::write(directory, &format!("{name}.crt"), &certificate.pem())?;
            store::write(directory, &format!("{name}.key"), &key.serialize_pem())?;
        }
        Ok(Self { directory: directory.to_owned(), realm })
    }

    /// The issuers that were made in a directory.
    pub(crate) fn open(directory: &Path) -> Result<Self, Failure> {
        let text = store::read(directory, REALM)?;
        // Any identity of it shows whether it is one.
        let identity: Result<Identity, _> = format!("{}/node/n", text.trim()).parse();
        let identity = identity.map_err(|why| {
            let path = directory.join(REALM);
            Failure::new(
                Code::PkiFailed,
                format!("{} is damaged: {why}; next: restore the directory", path.display()),
            )
        })?;
        Ok(Self { directory: directory.to_owned(), realm: identity.realm })
    }

    pub(crate) fn realm(&self) -> &Realm {
        &self.realm
    }

    /// The identity with this path behind the cluster.
    pub(crate) fn identity(&self, path: &str) -> Result<Identity, Failure> {
        let identity = format!("{}/{path}", self.realm).parse::<Identity>();
        identity.map_err(|why: tripod_identity::Refused| {
            Failure::new(Code::ValueIllegal, format!("`{path}`: {why}"))
        })
    }

    /// Makes the files of somebody, in the directory `out`. Its certificate holds for these hosts, too.
    pub(crate) fn issue(
        &self,
        identity: Identity,
        hosts: &[String],
        lifetime: Duration,
        out: &Path,
    ) -> Result<Issued, Failure> {
        let is_node = matches!(identity.kind, Kind::Node(_));
        let has_two = self.directory.join(format!("{CLIENT}.crt")).exists();
        let signer = if is_node || !has_two { PEER } else { CLIENT };
        let roots = store::read(&self.directory, &format!("{PEER}.crt"))?;
        let issuer = self.issuer(signer)?;
        let (mut params, not_after_ms) = params(lifetime)?;
        params.subject_alt_names = CertificateParams::new(hosts.to_vec()).map_err(failed)?.subject_alt_names;
        params.subject_alt_names.push(SanType::URI(identity.to_string().try_into().map_err(failed)?));
        params.distinguished_name.push(DnType::CommonName, identity.kind.to_string());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if matches!(identity.kind, Kind::Node(_) | Kind::Worker(_) | Kind::Store(_)) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        store::directory(out)?;
        let mut files = vec![KEY_FILE, CERTIFICATE_FILE, ROOTS_FILE];
        store::write(out, ROOTS_FILE, &roots)?;
        if is_node && has_two {
            store::write(out, CLIENT_ROOTS_FILE, &store::read(&self.directory, &format!("{CLIENT}.crt"))?)?;
            files.push(CLIENT_ROOTS_FILE);
        }
        store::write(out, KEY_FILE, &key.serialize_pem())?;
        store::write(out, CERTIFICATE_FILE, &certificate.pem())?;
        Ok(Issued { identity, files, not_after_ms })
    }

    fn issuer(&self, name: &str) -> Result<Issuer<'static, KeyPair>, Failure> {
        let certificate = store::read(&self.directory, &format!("{name}.crt"))?;
        let key =
            KeyPair::from_pem(&store::read(&self.directory, &format!("{name}.key"))?).map_err(failed)?;
        Issuer::from_ca_cert_pem(&certificate, key).map_err(failed)
    }
}

/// A certificate that is valid from now on, and when it ends, in milliseconds since 1970.
fn params(lifetime: Duration) -> Result<(CertificateParams, u64), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = |since: Duration| {
        OffsetDateTime::from_unix_timestamp(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    };
    let until = now.saturating_add(lifetime);
    let beyond = |_| Failure::new(Code::ValueIllegal, "no certificate lasts so long");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = at(now.saturating_sub(BACKDATED)).map_err(beyond)?;
    params.not_after = at(until).map_err(beyond)?;
    Ok((params, u64::try_from(until.as_millis()).unwrap_or(u64::MAX)))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::PkiFailed, format!("the certificate could not be made: {error}"))
}

#[cfg(test)]
mod tests {
    use tripod_tls::Tls;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn realm() -> Realm {
        "spiffe://example.org/tripod/prod/node/n".parse::<Identity>().expect("legal").realm
    }

    #[test]
    fn what_is_made_is_what_a_process_takes() {
        for one_ca in [false, true] {
            let root = tempfile::tempdir().expect("a directory");
            let ca = root.path().join("ca");
            Authority::init(&ca, realm(), one_ca, DAY * 3650).expect("made");
            let again = Authority::init(&ca, realm(), one_ca, DAY).expect_err("they are there");
            assert_eq!(again.code(), Code::PkiFailed);
            let authority = Authority::open(&ca).expect("there");
            let hosts = ["10.0.0.1".to_owned(), "n1.example.org".to_owned()];
            for path in ["node/n1", "operator/ann", "viewer/v", "job/a/agent", "job/a/task/3", "job/a/worker"]
            {
                let out = root.path().join(path);
                let identity = authority.identity(path).expect("legal");
                let issued = authority.issue(identity.clone(), &hosts, DAY, &out).expect("made");
                let tls = Tls::read(&out).unwrap_or_else(|fault| panic!("{fault}"));
                assert_eq!(tls.identity(), identity);
                assert_eq!(tls.not_after(), issued.not_after_ms / 1000);
                let is_told = issued.files.contains(&CLIENT_ROOTS_FILE);
                assert_eq!(is_told, path == "node/n1" && !one_ca);
            }
            assert_eq!(authority.identity("node/N1").expect_err("refused").code(), Code::ValueIllegal);
        }
    }
}
