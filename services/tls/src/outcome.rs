//! How handshakes end.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, Error, OtherError};

/// How a handshake ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Ok,
    /// It began in plain text: refused in strict mode, and served in permissive mode.
    Plain,
    NoCertificate,
    UnknownCa,
    /// Or not valid yet.
    Expired,
    Revoked,
    /// No name of this cluster, more than one, or one of a kind that has no place here.
    BadName,
    /// A certificate of a server where a client's is needed, or the other way round.
    BadUsage,
    BadAlpn,
    Timeout,
    /// The other side refused our certificate.
    Alert,
    /// Anything else: the other side went away, or speaks another version.
    Failed,
}

impl Outcome {
    /// All of them, in the order of their labels in metrics.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::Plain,
        Self::NoCertificate,
        Self::UnknownCa,
        Self::Expired,
        Self::Revoked,
        Self::BadName,
        Self::BadUsage,
        Self::BadAlpn,
        Self::Timeout,
        Self::Alert,
        Self::Failed,
    ];

    /// Its label in metrics and logs.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Plain => "plain",
            Self::NoCertificate => "no_certificate",
            Self::UnknownCa => "unknown_ca",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::BadName => "bad_name",
            Self::BadUsage => "bad_usage",
            Self::BadAlpn => "bad_alpn",
            Self::Timeout => "timeout",
            Self::Alert => "alert",
            Self::Failed => "failed",
        }
    }

    /// That of a handshake which failed so.
    pub(crate) fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut {
            return Self::Timeout;
        }
        let inner = error.get_ref();
        if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<Refused>()) {
            return refused.outcome;
        }
        inner.and_then(|inner| inner.downcast_ref::<Error>()).map_or(Self::Failed, of_rustls)
    }
}

fn of_rustls(error: &Error) -> Outcome {
    match error {
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::NoCertificatesPresented => Outcome::NoCertificate,
        Error::NoApplicationProtocol => Outcome::BadAlpn,
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => Outcome::BadAlpn,
        Error::AlertReceived(_) => Outcome::Alert,
        _ => Outcome::Failed,
    }
}

fn of_certificate(error: &CertificateError) -> Outcome {
    match error {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Outcome::Expired,
        CertificateError::Revoked => Outcome::Revoked,
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            Outcome::BadUsage
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Outcome::BadName
        }
        CertificateError::Other(other) => {
            other.0.downcast_ref::<Refused>().map_or(Outcome::Failed, |refused| refused.outcome)
        }
        CertificateError::UnknownIssuer => Outcome::UnknownCa,
        _ => Outcome::Failed,
    }
}

/// Why a certificate, or a connection, was refused by this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Refused {}

impl Refused {
    pub(crate) fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self { outcome, text: text.into() }
    }
}

/// What the other side is told is what there is an alert for.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let plain = match refused.outcome {
            Outcome::Expired => CertificateError::Expired,
            Outcome::Revoked => CertificateError::Revoked,
            Outcome::UnknownCa => CertificateError::UnknownIssuer,
            Outcome::BadUsage => CertificateError::InvalidPurpose,
            _ => CertificateError::Other(OtherError(Arc::new(refused))),
        };
        Self::InvalidCertificate(plain)
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// What TLS has against a connection, if an error has that among its reasons: in words for whoever looks after this side.
#[must_use]
pub fn refusal(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(refused.text.clone());
        }
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(words(error));
        }
        // What an error of the system wraps is not among its sources.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            next = Some(inner);
            continue;
        }
        next = error.source();
    }
    None
}

fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => other.to_string(),
        Error::InvalidCertificate(why) => match of_certificate(why) {
            Outcome::Expired => "the server's certificate has expired, or is not valid yet".to_owned(),
            Outcome::Revoked => "the server's certificate is revoked".to_owned(),
            Outcome::UnknownCa => "the server's certificate is not signed by a root of ca.crt".to_owned(),
            Outcome::BadUsage => "the server's certificate is not one for servers".to_owned(),
            _ => format!("the server's certificate does not hold: {why}"),
        },
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => {
                "the server refused this certificate: it has expired, or is not valid yet".to_owned()
            }
            AlertDescription::CertificateRevoked => {
                "the server refused this certificate: it is revoked".to_owned()
            }
            AlertDescription::UnknownCA => {
                "the server refused this certificate: no root that it believes has signed it".to_owned()
            }
            AlertDescription::UnsupportedCertificate => {
                "the server refused this certificate: it is not one for clients".to_owned()
            }
            AlertDescription::CertificateRequired => "the server wants a certificate".to_owned(),
            AlertDescription::CertificateUnknown => {
                "the server refused this certificate: it names nobody who may connect there".to_owned()
            }
            AlertDescription::NoApplicationProtocol => {
                "the server speaks another protocol at that port".to_owned()
            }
            other => format!("the server ended the handshake: {other:?}"),
        },
        Error::InvalidMessage(_) => "the server does not speak TLS at that port".to_owned(),
        other => other.to_string(),
    }
}
