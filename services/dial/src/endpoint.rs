//! From a `HOST:PORT` to what a connection is made to.

use tonic::transport::{Endpoint, Error};

/// Who is connected to. What a connection is protected by will depend on it, and on nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// A node, at its client port.
    Node,
    /// A node, at its peer port.
    Peer,
    /// A worker, or an object store.
    Worker,
    /// A task's own server: in plain text whatever else is, as TensorFlow knows no other way.
    Task,
    /// Anything that is measured, for which all are set up alike.
    Measured,
}

impl Callee {
    fn scheme(self) -> &'static str {
        match self {
            Self::Node | Self::Peer | Self::Worker | Self::Task | Self::Measured => "http",
        }
    }
}

/// The endpoint at `address`, a `HOST:PORT`, with no settings yet. Nothing is connected to.
///
/// # Errors
/// The transport's: the text is no address.
pub fn endpoint(address: &str, callee: Callee) -> Result<Endpoint, Error> {
    Endpoint::from_shared(format!("{}://{address}", callee.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_where_its_address_says() {
        for address in ["10.0.0.1:7700", "[::1]:7701", "node-3:7702"] {
            let uri = endpoint(address, Callee::Node).unwrap().uri().to_string();
            assert_eq!(uri, format!("http://{address}/"));
        }
        assert!(endpoint("a b:7700", Callee::Task).is_err());
    }
}
