//! How a connection to a node is made.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tripod_dial::{Dialler, Named};

/// Bytes in both directions.
pub trait Bytestream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytestream for S {}

/// Connects to a `HOST:PORT`: over TCP, unless a test brings a network of its own.
pub type Dial = Arc<dyn Fn(String) -> Dialling + Send + Sync>;
/// A connection that is being made.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn Bytestream>>> + Send>>;

/// Where nodes listen is noted when they register, by the node that saw them come.
pub(crate) fn by(dialler: &Dialler) -> Dial {
    let dialler = dialler.clone();
    Arc::new(move |address| {
        let dialler = dialler.clone();
        Box::pin(async move {
            let stream = dialler.stream(&address, Named::Noted).await?;
            Ok(Box::new(stream) as Box<dyn Bytestream>)
        })
    })
}
