//! Why an address is not connected to.

use std::net::IpAddr;

use tripod_proto::code::Code;

/// Why an address is not connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not written as an address is, or its port is 0.
    #[error("{code}: `{0}` is no HOST:PORT that can be connected to; next: name where you listen", code = Code::DialRefused)]
    Malformed(String),
    #[error(
        "{code}: no address is found for `{named}`: {cause}; next: name an address instead, or see how this machine resolves \
         names", code = Code::DialRefused
    )]
    Unknown { named: String, cause: String },
    /// Whatever the flag says.
    #[error("{code}: {address} is the address of no machine; next: name where you listen", code = Code::DialRefused)]
    Never { address: IpAddr },
    #[error(
        "{code}: {named} is not connected to for a caller from {from}: it is not the caller's own address, \
         and {flag} does not have it; next: name the address that you come from, or start the nodes with {flag} {address}",
        code = Code::DialRefused
    )]
    NotYours { named: String, address: IpAddr, from: String, flag: &'static str },
    #[error(
        "{code}: {named} is not connected to: nobody who comes from there named it, and {flag} does not have it; \
         next: start the nodes with {flag} {address}",
        code = Code::DialRefused
    )]
    NotListed { named: String, address: IpAddr, flag: &'static str },
}
