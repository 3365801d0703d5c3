//! Connections whose other side is gone without a word.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;

/// A connection on which nothing was heard for so long is asked whether it is there,
const REST_TIME: Duration = Duration::from_secs(20);
/// again after this,
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// and is taken for lost after so many questions in vain.
const PROBES_MAX: u32 = 4;
/// So long a client may take nothing of what was sent to it, before the connection ends.
const UNREAD_TIME: Duration = Duration::from_secs(120);

/// Has connections that a listener accepts from now on end when their machine does not answer for 40 s, or when they take
/// nothing for two minutes. The system does it: it goes on while this process is paused, so that a pause of ours ends
/// nobody's connection, as pings of HTTP/2 would (their answers lie unread in the socket while their time runs out).
pub fn end_when_lost(listener: &TcpListener) {
    let socket = SockRef::from(listener);
    let keepalive =
        TcpKeepalive::new().with_time(REST_TIME).with_interval(PROBE_EVERY).with_retries(PROBES_MAX);
    // Linux hands them on to each socket that is accepted.
    let set =
        socket.set_tcp_keepalive(&keepalive).and_then(|()| socket.set_tcp_user_timeout(Some(UNREAD_TIME)));
    if let Err(error) = set {
        tracing::warn!(%error, "connections of lost machines stay until the system gives them up");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn f6_accepted_connections_end_when_their_machine_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        end_when_lost(&listener);
        let address = listener.local_addr().unwrap();
        let _client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), REST_TIME);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), PROBE_EVERY);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), PROBES_MAX);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNREAD_TIME));
    }
}
