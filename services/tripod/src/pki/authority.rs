//! The two issuers of a cluster.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use time::OffsetDateTime;
use tripod_identity::{Identity, Kind, Realm};
use tripod_proto::code::Code;
use tripod_tls::{CERTIFICATE_FILE, CLIENT_ROOTS_FILE, KEY_FILE, ROOTS_FILE};

use super::record::{ISSUED, Line, Record};
use super::request::Request;
use super::{failed, store};
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

/// A certificate that is to be made.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) identity: Identity,
    /// It holds for these, too.
    pub(crate) hosts: &'a [String],
    pub(crate) lifetime: Duration,
    /// For a key that is elsewhere; `None`: for one that is made now.
    pub(crate) request: Option<Request>,
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

    /// Makes the files of somebody, in the directory `out`. What was asked for by a request has its key elsewhere.
    pub(crate) fn issue(&self, wanted: &Wanted<'_>, out: &Path) -> Result<Issued, Failure> {
        let Wanted { identity, hosts, lifetime, request } = wanted;
        let is_node = matches!(identity.kind, Kind::Node(_));
        let has_two = self.directory.join(format!("{CLIENT}.crt")).exists();
        let signer = if is_node || !has_two { PEER } else { CLIENT };
        let roots = store::read(&self.directory, &format!("{PEER}.crt"))?;
        let issuer = self.issuer(signer)?;
        let (mut params, not_after_ms) = params(*lifetime)?;
        params.subject_alt_names = CertificateParams::new(hosts.to_vec()).map_err(failed)?.subject_alt_names;
        params.subject_alt_names.push(SanType::URI(identity.to_string().try_into().map_err(failed)?));
        params.distinguished_name.push(DnType::CommonName, identity.kind.to_string());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if matches!(identity.kind, Kind::Node(_) | Kind::Worker(_) | Kind::Store(_)) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        params.use_authority_key_identifier_extension = true;
        let serial = serial();
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        // Workers and stores are servers of each other and of nodes, too.
        let judges_clients = is_node || matches!(identity.kind, Kind::Worker(_) | Kind::Store(_));
        let client_roots =
            (judges_clients && has_two).then(|| store::read(&self.directory, &format!("{CLIENT}.crt")));
        let client_roots = client_roots.transpose()?;
        store::directory(out)?;
        let (key, certificate) = match request {
            Some(request) => (None, params.signed_by(request.public_key(), &issuer).map_err(failed)?),
            None => {
                let key = KeyPair::generate().map_err(failed)?;
                let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
                (Some(key), certificate)
            }
        };
        // Before anybody has it: what is not recorded cannot be revoked by its name. And before anything is written where
        // files may be that hold together.
        let now_s = now().as_secs();
        let (signer, path) = (signer.to_owned(), identity.kind.to_string());
        let line = Line { signer, serial, not_after_s: not_after_ms / 1000, at_s: now_s, path };
        Record::open(&self.directory)?.add(ISSUED, &[line], now_s)?;
        let mut files = Vec::new();
        if let Some(key) = key {
            store::write(out, KEY_FILE, &key.serialize_pem())?;
            files.push(KEY_FILE);
        }
        store::write(out, ROOTS_FILE, &roots)?;
        if let Some(roots) = &client_roots {
            store::write(out, CLIENT_ROOTS_FILE, roots)?;
        }
        store::write(out, CERTIFICATE_FILE, &certificate.pem())?;
        files.extend([CERTIFICATE_FILE, ROOTS_FILE]);
        files.extend(client_roots.map(|_| CLIENT_ROOTS_FILE));
        Ok(Issued { identity: identity.clone(), files, not_after_ms })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The names of the issuers that there are.
    pub(super) fn signers(&self) -> impl Iterator<Item = &'static str> {
        [PEER, CLIENT].into_iter().filter(move |name| self.directory.join(format!("{name}.crt")).exists())
    }

    pub(super) fn issuer(&self, name: &str) -> Result<Issuer<'static, KeyPair>, Failure> {
        let certificate = store::read(&self.directory, &format!("{name}.crt"))?;
        let key =
            KeyPair::from_pem(&store::read(&self.directory, &format!("{name}.key"))?).map_err(failed)?;
        Issuer::from_ca_cert_pem(&certificate, key).map_err(failed)
    }
}

/// A number that no other certificate has: 16 bytes of chance, of which the first is no zero and has no sign.
fn serial() -> Vec<u8> {
    let mut serial: [u8; 16] = rand::random();
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial.to_vec()
}

/// A certificate that is valid from now on, and when it ends, in milliseconds since 1970.
fn params(lifetime: Duration) -> Result<(CertificateParams, u64), Failure> {
    let until = now().saturating_add(lifetime);
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = at(now().saturating_sub(BACKDATED))?;
    params.not_after = at(until)?;
    Ok((params, u64::try_from(until.as_millis()).unwrap_or(u64::MAX)))
}

/// Since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time so long after the beginning of 1970.
pub(super) fn at(since: Duration) -> Result<OffsetDateTime, Failure> {
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let beyond = |_| Failure::new(Code::ValueIllegal, "no certificate lasts so long");
    OffsetDateTime::from_unix_timestamp(seconds).map_err(beyond)
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
                let wanted =
                    Wanted { identity: identity.clone(), hosts: &hosts, lifetime: DAY, request: None };
                let issued = authority.issue(&wanted, &out).expect("made");
                let tls = Tls::read(&out).unwrap_or_else(|fault| panic!("{fault}"));
                assert_eq!(tls.identity(), identity);
                assert_eq!(tls.not_after(), issued.not_after_ms / 1000);
                let is_told = issued.files.contains(&CLIENT_ROOTS_FILE);
                assert_eq!(is_told, ["node/n1", "job/a/worker"].contains(&path) && !one_ca, "{path}");
            }
            assert_eq!(authority.identity("node/N1").expect_err("refused").code(), Code::ValueIllegal);
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_recorded_leaves_the_files_before_it_whole() {
        let root = tempfile::tempdir().expect("a directory");
        let (ca, out) = (root.path().join("ca"), root.path().join("n1"));
        let authority = Authority::init(&ca, realm(), false, DAY * 3650).expect("made");
        let identity = authority.identity("node/n1").expect("legal");
        let wanted = Wanted { identity, hosts: &["10.0.0.1".to_owned()], lifetime: DAY, request: None };
        authority.issue(&wanted, &out).expect("made");
        let serial = Tls::read(&out).expect("whole").serial();
        std::fs::write(ca.join(ISSUED), "damaged\n").expect("written");
        let text = authority.issue(&wanted, &out).expect_err("not recorded").to_string();
        assert!(text.contains("issued is damaged in line 1"), "{text}");
        assert_eq!(Tls::read(&out).expect("still whole").serial(), serial);
    }

    #[test]
    fn keys_stay_where_they_were_made_and_certificates_come_to_them() {
        let root = tempfile::tempdir().expect("a directory");
        let (ca, own, signed) = (root.path().join("ca"), root.path().join("own"), root.path().join("signed"));
        let authority = Authority::init(&ca, realm(), false, DAY * 3650).expect("made");
        let file = root.path().join("n1.csr");
        Request::make("node/n1", &own, &file).expect("made");
        let again = Request::make("node/n1", &own, &file).expect_err("the key may be in use");
        assert!(again.to_string().contains("tls.key is there"), "{again}");
        let asked = std::fs::read(&file).expect("a request");
        let unsigned = Request::make("node/n1", &signed, &file).expect_err("--ca was forgotten").to_string();
        assert!(unsigned.contains("n1.csr is there") && unsigned.contains("with --ca DIR"), "{unsigned}");
        assert!(!signed.join(KEY_FILE).exists(), "nothing was made");
        assert_eq!(std::fs::read(&file).expect("it is still there"), asked);
        let wrong = Request::read(&file, "node/n2").expect_err("not what it asks for");
        assert!(
            wrong.to_string().contains("asks for a certificate of node/n1, and not of node/n2"),
            "{wrong}"
        );
        let request = Some(Request::read(&file, "node/n1").expect("well-formed"));
        let hosts = ["10.0.0.1".to_owned()];
        let identity = authority.identity("node/n1").expect("legal");
        let wanted = Wanted { identity: identity.clone(), hosts: &hosts, lifetime: DAY, request };
        let issued = authority.issue(&wanted, &signed).expect("signed");
        assert!(!issued.files.contains(&KEY_FILE) && !signed.join(KEY_FILE).exists());
        for name in issued.files {
            std::fs::copy(signed.join(name), own.join(name)).expect("copied");
        }
        assert_eq!(Tls::read(&own).expect("a whole").identity(), identity);
        // Who changed a byte does not have the key.
        let text = std::fs::read_to_string(&file).expect("text");
        let middle = text.len() / 2;
        let other = if text.as_bytes()[middle] == b'A' { "B" } else { "A" };
        let spoilt = format!("{}{other}{}", &text[..middle], &text[middle + 1..]);
        std::fs::write(&file, spoilt).expect("written");
        assert!(Request::read(&file, "node/n1").is_err());
    }

    #[test]
    fn who_is_revoked_is_in_the_list_of_their_issuer_by_name_or_by_file_and_once() {
        let root = tempfile::tempdir().expect("a directory");
        let authority = Authority::init(&root.path().join("ca"), realm(), false, DAY * 3650).expect("made");
        let make = |path: &str, out: &str| {
            let identity = authority.identity(path).expect("legal");
            let wanted = Wanted { identity, hosts: &[], lifetime: DAY, request: None };
            authority.issue(&wanted, &root.path().join(out)).expect("made");
        };
        make("operator/ann", "ann-1");
        make("operator/ann", "ann-2");
        make("operator/bob", "bob");
        make("node/n1", "n1");
        let revoke = |whom: &[&str]| {
            let whom: Vec<String> = whom.iter().map(|one| (*one).to_owned()).collect();
            authority.revoke(&whom).map(|lines| lines.into_iter().map(|line| line.path).collect::<Vec<_>>())
        };
        let file = |name: &str| root.path().join(name).join(CERTIFICATE_FILE).display().to_string();
        assert_eq!(revoke(&["operator/ann"]).expect("both"), ["operator/ann", "operator/ann"]);
        let n1 = file("n1");
        assert_eq!(revoke(&[&n1, "operator/ann", &n1]).expect("one is new"), ["node/n1"]);
        assert_eq!(revoke(&["operator/eve"]).expect_err("nobody").code(), Code::PkiFailed);
        let others = Authority::init(&root.path().join("others"), realm(), false, DAY).expect("made");
        let text = others.revoke(&[file("bob")]).expect_err("not theirs").to_string();
        assert!(text.contains("none of the issuers in"), "{text}");
        let copy = root.path().join("n1/crl.pem");
        assert_eq!(authority.write_lists(DAY, std::slice::from_ref(&copy)).expect("written"), 3);
        let lists = std::fs::read_to_string(&copy).expect("text");
        assert_eq!(lists.matches("BEGIN X509 CRL").count(), 2, "one of each issuer");
        assert!(Tls::read(&root.path().join("n1")).is_err(), "its own certificate is revoked");
        std::fs::copy(&copy, root.path().join("bob/crl.pem")).expect("copied");
        assert!(Tls::read(&root.path().join("bob")).is_ok());
    }
}
