//! Bounds. What comes from a file or from the other side of a connection is never longer.

use std::time::Duration;

/// How long a handshake may take, from the first byte that is waited for.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// How often files are looked at again. Mounted secrets are replaced without a sign that could be waited for.
pub const RELOAD_EVERY: Duration = Duration::from_secs(40);
/// Bytes of a file. Eight roots and a chain need some tens of thousands.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;
/// Certificates of one's own chain, and of the other side's.
pub(crate) const CHAIN_MAX: usize = 6;
/// Roots of one file: some of two generations.
pub(crate) const ROOTS_MAX: usize = 8;
/// Lists of revoked certificates: one of each root.
pub(crate) const REVOCATION_LISTS_MAX: usize = 8;
/// URIs in a certificate: one is needed.
pub(crate) const URIS_MAX: usize = 16;
/// Addresses and outcomes of which it is remembered when they were logged last.
pub(crate) const LOGGED_MAX: usize = 1024;
/// A failed handshake of an address is logged once in this time for each outcome.
pub(crate) const LOG_EVERY: Duration = Duration::from_mins(1);
