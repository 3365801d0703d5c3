//! An address at which nobody listens.

use tokio::net::TcpSocket;

/// An address of loopback that refuses connections for as long as this lives. The one of a listener that has been dropped
/// refuses them until the system gives its port to somebody else, another test among them.
#[derive(Debug)]
pub struct Nobody(TcpSocket);

impl Nobody {
    /// Takes a port, and never listens on it.
    ///
    /// # Panics
    /// There is no free port.
    #[must_use]
    pub fn at_a_port() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        Self(socket)
    }

    /// `HOST:PORT`.
    ///
    /// # Panics
    /// The system does not say which port it is.
    #[must_use]
    pub fn address(&self) -> String {
        self.0.local_addr().expect("it is bound").to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn nobody_refuses_connections_and_keeps_its_port() {
        let nobody = Nobody::at_a_port();
        let address = nobody.address();
        let refused = TcpStream::connect(&address).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let taken = TcpListener::bind(&address).expect_err("it is nobody's");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        drop(nobody);
    }
}
