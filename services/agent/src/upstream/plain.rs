//! Connections to nodes for protocols that frame their bytes themselves.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Upstream;

/// Bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection, over whatever.
pub(crate) type Plain = Box<dyn Stream>;

impl Upstream {
    /// Connects to an address that a node has told, as nodes are reached.
    ///
    /// # Errors
    /// Nobody takes the connection in time.
    pub(crate) async fn plain(&self, address: &str) -> io::Result<Plain> {
        if let Some(dial) = &self.shared.reach.0 {
            return Ok(Box::new(dial(address)?));
        }
        let connected = timeout(self.timing().connect_limit, TcpStream::connect(address)).await;
        let stream =
            connected.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))??;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
