//! Streams of calls, as anybody sees them from outside: whether a node takes them, and how many it has open.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tripod_calls::Reason;
use tripod_load::connect;
use tripod_wait::deadline;

/// Pause between two looks at what has become of a stream.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// More than a page of metrics has.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// What stands before the figure.
const OPEN: &str = "tripod_call_streams ";

/// Whether calls can be made by streams at this client address. A build of before streams says that it knows none.
///
/// # Errors
/// Nobody answers there in time, or the stream was refused in another way.
pub async fn takes_streams(address: &str) -> Result<bool> {
    let stream = connect::stream(&connect::lazy(address)?)?;
    let found = async {
        loop {
            if stream.is_ready() {
                return Ok(true);
            }
            match stream.end() {
                Some(Reason::NotServed) => return Ok(false),
                Some(reason) => bail!("a stream of calls to {address} has ended: {reason}"),
                None => sleep(LOOK_PAUSE).await,
            }
        }
    };
    timeout(deadline(), found).await.with_context(|| format!("{address} says nothing of streams of calls"))?
}

/// How many streams of calls a node has open, as its page of metrics at this address says; none if it knows no streams.
///
/// # Errors
/// There is no page, or it does not come in time.
pub async fn open_streams(http: &str) -> Result<u64> {
    let page = timeout(deadline(), page(http)).await;
    let page = page.with_context(|| format!("no page of metrics comes from {http}"))??;
    Ok(told(&page))
}

async fn page(http: &str) -> Result<String> {
    let stream = TcpStream::connect(http).await;
    let mut stream = stream.with_context(|| format!("nobody listens at {http}"))?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {http}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.with_context(|| format!("cannot ask {http}"))?;
    let mut page = Vec::new();
    let read = stream.take(PAGE_BYTES_MAX).read_to_end(&mut page).await;
    read.with_context(|| format!("cannot read what {http} answers"))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn told(page: &str) -> u64 {
    let figure = page.lines().find_map(|line| line.strip_prefix(OPEN));
    figure.and_then(|figure| figure.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tonic::service::Routes;
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;

    use super::*;

    #[tokio::test]
    async fn what_knows_no_streams_is_told_from_what_nobody_answers_at() {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = incoming.local_addr().expect("its address").to_string();
        let serving =
            tokio::spawn(Server::builder().add_routes(Routes::default()).serve_with_incoming(incoming));
        assert!(!takes_streams(&address).await.expect("it answers"));
        serving.abort();
        // Its port is closed when the task has ended.
        drop(serving.await);
        assert!(takes_streams(&address).await.is_err());
    }

    #[test]
    fn the_figure_is_that_of_streams_and_of_nothing_whose_name_is_longer() {
        let page = "HTTP/1.1 200 OK\r\n\r\n# TYPE tripod_call_streams gauge\ntripod_call_streams_ended_total{reason=\"bye\"} 7\n\
                    tripod_call_streams 3\n";
        assert_eq!(told(page), 3);
        assert_eq!(told("tripod_members 3\n"), 0, "a build of before streams");
    }
}
