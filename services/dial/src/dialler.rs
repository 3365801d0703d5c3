//! From an address that somebody named to a connection.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint, Uri};
use tripod_tls::{ClientStream, ClientTls, Rewound};

use crate::host_port::{HostPort, bare, literal};
use crate::names::{LookUp, Names};
use crate::refused::Refused;
use crate::rule::{Named, Rule};
use crate::turns::{Turns, host_of};
use crate::workers;

/// Connections that are being made at a time.
const DIALS_MAX: usize = 256;
/// Of these, to one host.
const DIALS_TO_ONE_MAX: usize = 16;
/// How long a connection may take to be made, with all that comes before.
const DIAL_TIME: Duration = Duration::from_secs(3);

/// Judges addresses, and connects to them. Cheap to clone; clones count together.
#[derive(Debug, Clone)]
pub struct Dialler {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rule: Rule,
    names: Names,
    turns: Turns<IpAddr>,
}

impl Dialler {
    /// By that rule, and by names as this machine resolves them.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self::with_names(rule, Names::of_system())
    }

    /// The same with another way to look names up: for tests.
    #[must_use]
    pub fn looking_up(rule: Rule, look_up: LookUp) -> Self {
        Self::with_names(rule, Names::new(look_up))
    }

    fn with_names(rule: Rule, names: Names) -> Self {
        let turns = Turns::new(DIALS_MAX, DIALS_TO_ONE_MAX);
        Self { shared: Arc::new(Shared { rule, names, turns }) }
    }

    /// The `HOST:PORT` to be noted for a caller from `from` that says it listens there. A name is noted as the address
    /// that was judged, so that nobody has to look it up again; where everything is allowed, it stays.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn admit(&self, address: &str, from: Option<IpAddr>) -> Result<String, Refused> {
        let Some(place) = HostPort::of(address) else { return Err(Refused::Malformed(address.to_owned())) };
        Ok(match self.admit_name(place.host, from).await? {
            Some(found) => SocketAddr::new(found, place.port).to_string(),
            None => address.to_owned(),
        })
    }

    /// [`Self::admit`] of a host alone, whose port the cluster chooses.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn admit_host(&self, host: &str, from: Option<IpAddr>) -> Result<String, Refused> {
        let found = self.admit_name(bare(host), from).await?;
        Ok(found.map_or_else(|| host.to_owned(), |found| found.to_string()))
    }

    /// The address to be noted in the place of a name.
    async fn admit_name(&self, host: &str, from: Option<IpAddr>) -> Result<Option<IpAddr>, Refused> {
        let (rule, word) = (&self.shared.rule, Named::By(from));
        if let Some(address) = literal(host) {
            return rule.judge(address, host, word).map(|()| None);
        }
        if !rule.wants_addresses() {
            return Ok(None);
        }
        let may = self.addresses(host, word).await?;
        // The one that it comes from is the one that surely is its own.
        let own = from.map(|from| from.to_canonical()).filter(|from| may.contains(from));
        Ok(own.or_else(|| may.first().copied()))
    }

    /// Those addresses of a host that are connected to: never none.
    async fn addresses(&self, host: &str, word: Named) -> Result<Vec<IpAddr>, Refused> {
        let Shared { rule, names, .. } = &*self.shared;
        if let Some(address) = literal(host) {
            return rule.judge(address, host, word).map(|()| vec![address]);
        }
        let asker = match word {
            Named::By(Some(from)) => host_of(from).to_string(),
            _ => host.to_owned(),
        };
        let unknown = |cause| Refused::Unknown { named: host.to_owned(), cause };
        let found = names.addresses(host, asker).await.map_err(unknown)?;
        let mut may = Vec::new();
        let mut refused = None;
        for address in found {
            match rule.judge(address, host, word) {
                Ok(()) => may.push(address),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            Some(refused) if may.is_empty() => Err(refused),
            _ => Ok(may),
        }
    }

    /// Connects to an endpoint, `http://HOST:PORT`, and again when the connection was lost, each time to what is judged
    /// then.
    ///
    /// # Errors
    /// The transport's, with [`Refused`] among its reasons.
    pub async fn connect(&self, endpoint: Endpoint, word: Named) -> Result<Channel, tonic::transport::Error> {
        endpoint.connect_with_connector(Connector { dialler: self.clone(), word }).await
    }

    /// [`Self::connect`] to the port of a worker or an object store, by TLS if this process was told so.
    ///
    /// # Errors
    /// As [`Self::connect`], and that it proves to be nobody of that kind.
    pub async fn connect_to_worker(
        &self,
        endpoint: Endpoint,
        word: Named,
    ) -> Result<Channel, tonic::transport::Error> {
        let Some(tls) = workers::client() else { return self.connect(endpoint, word).await };
        let connector = Connector { dialler: self.clone(), word };
        endpoint.connect_with_connector(Protected { connector, tls: tls.clone() }).await
    }

    /// Connects to `HOST:PORT`, for protocols that frame their bytes themselves. Who wants the connection for longer than it
    /// lasts asks again, and the address is judged again.
    ///
    /// # Errors
    /// The system's, or one around [`Refused`].
    pub async fn stream(&self, address: &str, word: Named) -> io::Result<TcpStream> {
        let dialling = async {
            let malformed = || refused(Refused::Malformed(address.to_owned()));
            let place = HostPort::of(address).ok_or_else(malformed)?;
            let addresses = self.addresses(place.host, word).await.map_err(refused)?;
            let mut failed = None;
            for address in addresses {
                let _turn = self.shared.turns.take(host_of(address)).await;
                match TcpStream::connect((address, place.port)).await {
                    Ok(stream) => {
                        // Small messages must not wait for an acknowledgement of the one before.
                        stream.set_nodelay(true)?;
                        return Ok(stream);
                    }
                    Err(error) => failed = Some(error),
                }
            }
            Err(failed.unwrap_or_else(malformed))
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {DIAL_TIME:?}"));
        timeout(DIAL_TIME, dialling).await.map_err(late)?
    }
}

fn refused(why: Refused) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Makes connections for tonic.
#[derive(Debug, Clone)]
struct Connector {
    dialler: Dialler,
    word: Named,
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { dialler, word } = self.clone();
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        Box::pin(async move { dialler.stream(&address, word).await.map(TokioIo::new) })
    }
}

/// Makes protected ones.
#[derive(Debug, Clone)]
struct Protected {
    connector: Connector,
    tls: ClientTls,
}

impl tower::Service<Uri> for Protected {
    type Response = TokioIo<Rewound<ClientStream<TcpStream>>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { connector: Connector { dialler, word }, tls } = self.clone();
        let address = uri.authority().map(ToString::to_string).unwrap_or_default();
        Box::pin(async move {
            let stream = dialler.stream(&address, word).await?;
            let host = bare(uri.host().unwrap_or_default());
            tls.connect_and_hear(stream, host).await.map(TokioIo::new)
        })
    }
}

#[cfg(test)]
mod tests;
