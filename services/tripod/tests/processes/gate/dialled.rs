//! Calls as bytes, by somebody with a certificate, and what became of them.

use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::{ServiceExt as _, service_fn};
use tripod_proto::metadata::RAY_SESSION;
use tripod_tls::{ClientTls, Port, Tls};
use tripod_wait::scaled;

/// A call that has no answer by then waits, or streams: it was let through. Refusals wait for nothing.
const PATIENCE: Duration = Duration::from_secs(3);
/// For calls that are to be answered. Both on a machine of usual speed.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

/// A connection to one port, of somebody.
#[derive(Clone)]
pub(super) struct Dialled {
    channel: Channel,
    patience: Duration,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The code of gRPC; `None`: there was none in time.
    pub(super) code: Option<i32>,
    pub(super) text: String,
    /// The bytes of the answer.
    pub(super) answer: Vec<u8>,
}

/// A call.
#[derive(Debug, Clone, Default)]
pub(super) struct Call<'a> {
    pub(super) path: &'a str,
    pub(super) message: Vec<u8>,
    /// The job that its metadata name.
    pub(super) job: Option<&'a str>,
    /// As what its client names itself.
    pub(super) agent: Option<&'a str>,
    /// The session of the scheduler in which it is made.
    pub(super) session: Option<&'a str>,
}

impl Dialled {
    /// Connects to `HOST:PORT` with the certificate of a directory.
    pub(super) async fn to(address: &str, port: Port, directory: &Path) -> Result<Self, String> {
        let tls = ClientTls::new(&Tls::read(directory).expect("the files hold together"), port);
        let (host, _) = address.rsplit_once(':').expect("HOST:PORT");
        let (host, address) = (host.to_owned(), address.to_owned());
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let connect = service_fn(move |_: Uri| {
            let (tls, host, address) = (tls.clone(), host.clone(), address.clone());
            async move {
                let stream = TcpStream::connect(&address).await?;
                tls.connect_and_hear(stream, &host).await.map(TokioIo::new)
            }
        });
        let channel = endpoint.connect_with_connector(connect).await;
        let dialled = |channel| Self { channel, patience: scaled(LONG_PATIENCE) };
        channel.map(dialled).map_err(|error| format!("{error:?}"))
    }

    /// The same for calls of which some wait.
    pub(super) fn hasty(self) -> Self {
        Self { patience: scaled(PATIENCE), ..self }
    }

    /// Makes a call.
    pub(super) async fn call(&self, Call { path, message, job, agent, session }: Call<'_>) -> Said {
        let mut framed = vec![0];
        framed.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
        framed.extend(message);
        let mut request =
            Request::post(path).header("content-type", "application/grpc").header("te", "trailers");
        if let Some(job) = job {
            request = request.header("x-tripod-job", job);
        }
        if let Some(agent) = agent {
            request = request.header("user-agent", agent);
        }
        if let Some(session) = session {
            request = request.header(RAY_SESSION, session);
        }
        let request = request.body(Body::new(Full::from(framed))).expect("a request");
        let channel = self.channel.clone();
        let answered = async move {
            let answer = channel.oneshot(request).await.expect("the connection stands");
            if answer.headers().contains_key("grpc-status") {
                return said(answer.headers(), Vec::new());
            }
            match answer.into_body().collect().await {
                Ok(collected) => {
                    let trailers = collected.trailers().cloned().unwrap_or_default();
                    said(&trailers, collected.to_bytes().to_vec())
                }
                Err(status) => Said {
                    code: Some(status.code().into()),
                    text: status.message().to_owned(),
                    answer: Vec::new(),
                },
            }
        };
        let waits = Said { code: None, text: String::new(), answer: Vec::new() };
        timeout(self.patience, answered).await.unwrap_or(waits)
    }
}

fn said(headers: &HeaderMap, answer: Vec<u8>) -> Said {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Said {
        code: header("grpc-status").parse().ok(),
        text: header("grpc-message").replace("%20", " "),
        answer,
    }
}

impl Said {
    /// The message of an answer, behind its flag and length.
    pub(super) fn message(&self) -> &[u8] {
        self.answer.get(5..).unwrap_or_default()
    }

    /// Whether the gate has refused it, or who read its message for the gate.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.code, Some(7 | 16)) && self.text.starts_with("T1521 not-authorised: ")
    }

    /// Whether the port says that it serves no such call.
    pub(super) fn is_unknown(&self) -> bool {
        self.code == Some(12) && self.text == "no such call is served here"
    }
}
