//! Whether a certificate holds.

use std::time::Duration;

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use tripod_identity::{Identity, Kind, Realm};
use webpki::{
    Cert, CertRevocationList, EndEntityCert, Error, ExpirationPolicy, KeyUsage, RevocationCheckDepth,
    RevocationOptionsBuilder, UnknownStatusPolicy, VerifiedPath,
};

use crate::limits::{CHAIN_MAX, URIS_MAX};
use crate::outcome::{Outcome, Refused};
use crate::roots::Roots;
use crate::signatures::algorithms;

/// The usages of certificates, as they stand in them: 1.3.6.1.5.5.7.3.1 and .2.
const SERVER: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 1];
const CLIENT: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 2];

/// Which side of a connection a certificate is shown by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// Whom a certificate must be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Node,
    /// Anybody but a node.
    Client,
}

/// What certificates are judged by.
pub(crate) struct Judge<'a> {
    /// Of which cluster a certificate must be; `None`: of whichever its root is.
    pub(crate) realm: Option<&'a Realm>,
    pub(crate) revoked: &'a [CertRevocationList<'static>],
    pub(crate) now: UnixTime,
}

/// Certificates as the other side sent them.
#[derive(Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(crate) leaf: &'a CertificateDer<'a>,
    pub(crate) between: &'a [CertificateDer<'a>],
}

/// What is now.
pub(crate) fn now() -> UnixTime {
    UnixTime::now()
}

impl Judge<'_> {
    /// Whom a chain proves somebody to be.
    ///
    /// # Errors
    /// It does not hold.
    pub(crate) fn identity(
        &self,
        chain: Chain<'_>,
        roots: &Roots,
        side: Side,
        whose: Whose,
    ) -> Result<Identity, Refused> {
        if chain.between.len() >= CHAIN_MAX {
            let text = format!("the certificate has more than {CHAIN_MAX} with it");
            return Err(Refused::new(Outcome::UnknownCa, text));
        }
        let leaf = EndEntityCert::try_from(chain.leaf);
        let leaf = leaf
            .map_err(|error| Refused::new(Outcome::Failed, format!("the certificate is damaged: {error}")))?;
        self.holds(&leaf, chain.between, &roots.0, side)?;
        let identity = identity_in(&leaf)?;
        let identity = match self.realm {
            Some(realm) => identity.within(realm),
            None => Ok(identity),
        };
        let identity = identity.map_err(|why| Refused::new(Outcome::BadName, why.to_string()))?;
        if matches!(identity.kind, Kind::Node(_)) != (whose == Whose::Node) {
            let text = match whose {
                Whose::Node => format!("the certificate is of {}, which is not a node", identity.kind),
                Whose::Client => {
                    format!("the certificate is of {}, but its root is one of clients", identity.kind)
                }
            };
            return Err(Refused::new(Outcome::BadName, text));
        }
        Ok(identity)
    }

    fn holds(
        &self,
        leaf: &EndEntityCert<'_>,
        between: &[CertificateDer<'_>],
        roots: &[TrustAnchor<'static>],
        side: Side,
    ) -> Result<(), Refused> {
        let usage = KeyUsage::required(match side {
            Side::Server => SERVER,
            Side::Client => CLIENT,
        });
        let is_unrevoked = |path: &VerifiedPath<'_>| self.check_revoked(path, usage);
        let held = leaf.verify_for_usage(
            algorithms().all,
            roots,
            between,
            self.now,
            usage,
            None,
            Some(&is_unrevoked),
        );
        held.map(|_| ()).map_err(|error| refused(&error, side))
    }

    /// Whether no list revokes a certificate of a path that holds apart from that. Each list is asked alone: of several of one
    /// issuer's name `webpki` takes the first, and refuses everything if another key of that name has signed it, as it has
    /// while an issuer is replaced by one of the same name.
    fn check_revoked(&self, path: &VerifiedPath<'_>, usage: KeyUsage) -> Result<(), Error> {
        let roots = [path.anchor().to_owned()];
        let between: Vec<_> = path.intermediate_certificates().map(Cert::der).collect();
        let leaf = path.end_entity();
        self.revoked.iter().try_for_each(|list| {
            let lists = [list];
            // Not every root has a list. An old list still says who was revoked; that a newer one is due is no reason to
            // keep everybody out.
            let options = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
                options
                    .with_depth(RevocationCheckDepth::Chain)
                    .with_status_policy(UnknownStatusPolicy::Allow)
                    .with_expiration_policy(ExpirationPolicy::Ignore)
                    .build()
            });
            match leaf.verify_for_usage(algorithms().all, &roots, &between, self.now, usage, options, None) {
                Err(error) if !is_of_another_key(&error) => Err(error),
                _ => Ok(()),
            }
        })
    }
}

/// Whether a list says nothing of a path, because none of its keys has signed it. The path itself holds, so its own signatures
/// do, too; the variants without `Crl` are of paths that are tried besides.
fn is_of_another_key(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCrlSignatureForPublicKey
            | Error::InvalidSignatureForPublicKey
            | Error::UnsupportedCrlSignatureAlgorithmForPublicKeyContext(_)
            | Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_)
    )
}

fn refused(error: &Error, side: Side) -> Refused {
    let seconds = |time: &UnixTime| Duration::from_secs(time.as_secs());
    match error {
        Error::CertExpired { time, not_after } => {
            let since = seconds(time).saturating_sub(seconds(not_after));
            Refused::new(Outcome::Expired, format!("the certificate expired {since:?} ago"))
        }
        Error::CertNotValidYet { time, not_before } => {
            let until = seconds(not_before).saturating_sub(seconds(time));
            Refused::new(Outcome::Expired, format!("the certificate is not valid for another {until:?}"))
        }
        Error::CertRevoked => Refused::new(Outcome::Revoked, "the certificate is revoked"),
        Error::RequiredEkuNotFoundContext(_) | Error::EmptyEkuExtension => {
            let side = match side {
                Side::Server => "servers",
                Side::Client => "clients",
            };
            Refused::new(Outcome::BadUsage, format!("the certificate is not one for {side}"))
        }
        Error::CaUsedAsEndEntity => Refused::new(Outcome::BadUsage, "the certificate is one of a root"),
        other => {
            let text = format!("no root that is believed has signed the certificate: {other}");
            Refused::new(Outcome::UnknownCa, text)
        }
    }
}

/// The one identity in a certificate.
pub(crate) fn identity_in(leaf: &EndEntityCert<'_>) -> Result<Identity, Refused> {
    let bad = |text: String| Refused::new(Outcome::BadName, text);
    let mut uris = leaf.valid_uri_names();
    let identity = Identity::of_uris(uris.by_ref().take(URIS_MAX)).map_err(|why| bad(why.to_string()))?;
    if uris.next().is_some() {
        return Err(bad(format!("the certificate has more than {URIS_MAX} URIs")));
    }
    Ok(identity)
}
