//! The connections between nodes, as an argument.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A boxed future, so that the traits here can be used behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Both directions of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// A network that is not the operating system's.
pub trait Network: Send + Sync + 'static {
    /// Connects to `HOST:PORT`. Whoever calls gives up after a while and drops the future.
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;

    /// Listens on `HOST:PORT`, on behalf of the node that calls.
    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>>;
}

/// An address that is listened on, until it is dropped.
pub trait Listener: Send + 'static {
    /// The next connection. Dropping the future loses none.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
}
