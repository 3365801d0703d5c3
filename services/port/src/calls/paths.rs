//! The paths that a client has named, by their numbers.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use tonic::Status;

use super::bounds::{PATH_BYTES, PATHS_MAX};
use super::refused;
use crate::direct::Direct;
use crate::followed::Followed;
use crate::manner::Known;

/// What is known of one.
#[derive(Debug)]
pub(super) struct Path {
    /// As requests for it have it, with the stream's authority.
    pub(super) uri: Uri,
    pub(super) known: Known,
    pub(super) direct: Option<Direct>,
}

/// Those of one stream.
#[derive(Debug)]
pub(super) struct Paths {
    /// Of the stream itself.
    base: Uri,
    named: Vec<Path>,
    bytes: usize,
}

impl Paths {
    pub(super) fn new(base: Uri) -> Self {
        Self { base, named: Vec::new(), bytes: 0 }
    }

    /// # Errors
    /// It is none, or one too many.
    pub(super) fn name(&mut self, path: &str, services: &Followed) -> Result<(), Status> {
        if self.named.len() >= PATHS_MAX {
            let many = format_args!("a stream names {PATHS_MAX} paths at most; open another one");
            return Err(refused::misused(many));
        }
        let wrong = || refused::misused(format_args!("{path:?} is no path such as /package.Service/Method"));
        if !path.starts_with('/') {
            return Err(wrong());
        }
        let parsed = PathAndQuery::from_maybe_shared(Bytes::copy_from_slice(path.as_bytes()));
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(parsed.map_err(|_| wrong())?);
        let uri = Uri::from_parts(parts).map_err(|_| wrong())?;
        let (known, direct) = services.find(uri.path());
        self.bytes += PATH_BYTES + path.len();
        self.named.push(Path { known, direct: direct.cloned(), uri });
        Ok(())
    }

    /// That with a number.
    ///
    /// # Errors
    /// None has been named with it.
    pub(super) fn find(&self, number: u32) -> Result<&Path, Status> {
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| self.named.get(place)).ok_or_else(|| {
            let named = self.named.len();
            refused::misused(format_args!(
                "an op is of path {number}, and {named} are named; name its path in the same frame or before"
            ))
        })
    }

    /// What they weigh.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
