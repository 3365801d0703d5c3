//! Connections within a test: what listens and what connects meet by name, and no socket is involved.
//!
//! Under tokio's paused clock time passes only when nothing else can happen. It cannot know what is under way in a
//! socket, so a test with sockets has to wait in real time for whatever takes long: a silence, a lease, an outage. With
//! lines such a test takes no time at all, and what takes how long can be said exactly.
//!
//! Bytes take no time. A place can be frozen, as by `kill -STOP`: nothing goes to it or comes from it, and connections
//! are still made. It can be closed, as by `kill -9`: all its lines break, and who dials it is refused.
//!
//! What such a test says in its log it can look at, too: [`Log`].
//!
//! What this crate does not know: anything of Tripod.
//!
//! | module | what |
//! |---|---|
//! | `listening` | who listens at a place, and what becomes of its lines |
//! | `carry` | bytes from one end of a line to the other |
//! | `log` | what is said in the log of one thread |

mod carry;
mod listening;
mod log;

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{DuplexStream, duplex};
use tonic::transport::{Channel, Endpoint, Uri};

use crate::listening::Listening;
pub use crate::listening::{Arrivals, Frozen};
pub use crate::log::Log;

/// Bytes under way in each half of each direction: few, so that whoever does not read is noticed.
const LINE_BYTES: usize = 64 << 10;

/// How clients connect that have to be told.
pub type Connect = Arc<dyn Fn(Endpoint) -> Connecting + Send + Sync>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// All places of a test. Clones are the same places.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    listening: Arc<Mutex<BTreeMap<String, Listening>>>,
}

impl Lines {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens at a place until the result is dropped, or the place is closed.
    ///
    /// # Panics
    /// Somebody listens there.
    #[must_use]
    pub fn listen(&self, place: &str) -> Arrivals {
        let (listening, arrivals) = Listening::open();
        let before = self.listening.lock().insert(place.to_owned(), listening);
        assert!(before.is_none_or(|before| !before.is_open()), "two listen at {place}");
        arrivals
    }

    /// A line to a place.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn dial(&self, place: &str) -> io::Result<DuplexStream> {
        let listening = self.listening.lock();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listening = listening.get(place).ok_or_else(refused)?;
        let ((near, here), (there, far)) = (duplex(LINE_BYTES), duplex(LINE_BYTES));
        listening.enter(far).map_err(|_| refused())?;
        tokio::spawn(carry::between(here, there, listening.fate()));
        Ok(near)
    }

    /// A channel to the place that an endpoint names.
    ///
    /// # Errors
    /// As [`Self::dial`].
    pub async fn connect(&self, endpoint: Endpoint) -> Result<Channel, tonic::transport::Error> {
        endpoint.connect_with_connector(self.connector()).await
    }

    /// A channel to a place.
    ///
    /// # Panics
    /// The place is not `HOST:PORT`, or nobody listens there.
    pub async fn channel(&self, place: &str) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{place}")).expect("HOST:PORT");
        self.connect(endpoint).await.expect("somebody listens")
    }

    /// [`Self::connect`], for clients that connect by themselves.
    #[must_use]
    pub fn to_connect(&self) -> Connect {
        let lines = self.clone();
        Arc::new(move |endpoint| {
            let lines = lines.clone();
            Box::pin(async move { lines.connect(endpoint).await })
        })
    }

    /// Nothing goes to a place or comes from it until the result is dropped.
    ///
    /// # Panics
    /// Nobody listens there.
    #[must_use]
    pub fn freeze(&self, place: &str) -> Frozen {
        self.listening.lock().get(place).expect("somebody listens").freeze()
    }

    /// All lines to a place break, and nobody listens there any more.
    pub fn close(&self, place: &str) {
        if let Some(listening) = self.listening.lock().remove(place) {
            listening.close();
        }
    }

    fn connector(
        &self,
    ) -> impl tower::Service<
        Uri,
        Response = TokioIo<DuplexStream>,
        Error = io::Error,
        Future = std::future::Ready<io::Result<TokioIo<DuplexStream>>>,
    >
    + Send
    + 'static
    + use<> {
        let lines = self.clone();
        tower::service_fn(move |uri: Uri| {
            let place = uri.authority().map(ToString::to_string).unwrap_or_default();
            std::future::ready(lines.dial(&place).map(TokioIo::new))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    async fn pair(lines: &Lines) -> (DuplexStream, DuplexStream, Arrivals) {
        let mut arrivals = lines.listen("a:1");
        let near = lines.dial("a:1").expect("open");
        let far = arrivals.next().await.expect("a line");
        (near, far, arrivals)
    }

    async fn read(from: &mut DuplexStream) -> [u8; 2] {
        let mut bytes = [0; 2];
        from.read_exact(&mut bytes).await.expect("bytes");
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_go_both_ways_and_ends_are_told() {
        let (mut near, mut far, _arrivals) = pair(&Lines::new()).await;
        near.write_all(b"ab").await.expect("sent");
        assert_eq!(&read(&mut far).await, b"ab");
        far.write_all(b"cd").await.expect("sent");
        assert_eq!(&read(&mut near).await, b"cd");
        near.shutdown().await.expect("ended");
        assert_eq!(far.read(&mut [0]).await.expect("the end"), 0);
        far.write_all(b"ef").await.expect("the other half is open");
        assert_eq!(&read(&mut near).await, b"ef");
        drop(far);
        assert_eq!(near.read(&mut [0]).await.expect("the end"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_stops_who_writes() {
        let (mut near, far, _arrivals) = pair(&Lines::new()).await;
        let many = vec![0; LINE_BYTES * 4];
        assert!(timeout(LONG, near.write_all(&many)).await.is_err());
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_a_frozen_place_and_nothing_is_lost() {
        let lines = Lines::new();
        let (mut near, mut far, mut arrivals) = pair(&lines).await;
        let frozen = lines.freeze("a:1");
        near.write_all(b"ab").await.expect("sent");
        far.write_all(b"cd").await.expect("sent");
        assert!(timeout(LONG, far.read_u8()).await.is_err());
        assert!(timeout(LONG, near.read_u8()).await.is_err());
        let mut other = lines.dial("a:1").expect("the kernel takes it");
        other.write_all(b"ef").await.expect("sent");
        let mut late = arrivals.next().await.expect("a line");
        assert!(timeout(LONG, late.read_u8()).await.is_err());
        drop(frozen);
        assert_eq!((&read(&mut far).await, &read(&mut near).await), (b"ab", b"cd"));
        assert_eq!(&read(&mut late).await, b"ef");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_is_closed_breaks_its_lines_and_refuses_and_opens_again() {
        let lines = Lines::new();
        let (mut near, mut far, mut arrivals) = pair(&lines).await;
        lines.close("a:1");
        assert_eq!(near.read(&mut [0]).await.expect("the end"), 0);
        assert_eq!(far.read(&mut [0]).await.expect("the end"), 0);
        near.write_all(b"a").await.expect_err("broken");
        assert!(arrivals.next().await.is_none());
        assert_eq!(lines.dial("a:1").expect_err("refused").kind(), io::ErrorKind::ConnectionRefused);
        drop(pair(&lines).await);
        lines.dial("a:1").expect_err("nobody listens any more");
    }
}
