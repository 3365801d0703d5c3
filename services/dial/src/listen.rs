//! The ports of workers and object stores, which are dialled as [`Callee::Worker`](crate::Callee::Worker).

use std::io;

use tokio::net::{TcpListener, ToSocketAddrs};
use tonic::transport::server::TcpIncoming;

/// The connections of such a port, for a gRPC server.
pub type Incoming = TcpIncoming;

/// Listens at `address`.
///
/// # Errors
/// The system's. What to do next is known to whoever chose the address, and told by them.
pub async fn listen(address: impl ToSocketAddrs) -> io::Result<Incoming> {
    let listener = TcpListener::bind(address).await?;
    // Without that an answer waits 40 ms for the kernel to find something to send it along with.
    Ok(TcpIncoming::from(listener).with_nodelay(Some(true)))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;
    use tonic::codegen::tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn what_a_worker_answers_is_sent_at_once() {
        let mut incoming = listen("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(incoming.local_addr().unwrap()).await.unwrap();
        let accepted = incoming.next().await.unwrap().unwrap();
        assert!(accepted.nodelay().unwrap());
    }
}
