//! A served gateway, for the test programs of this crate.

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::Routes;
use tripod_gateway::Gateway;
use tripod_native::JobPorts;

/// Serves everything of this crate on a free port, until the test ends; gives its address.
pub(crate) async fn serve_native(gateway: &Gateway) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = listener.local_addr().expect("bound").to_string();
    let routes = tripod_native::add_to(
        Routes::default(),
        gateway,
        &watch::channel(JobPorts::default()).1,
        &watch::channel(None).1,
    );
    let incoming = TcpListenerStream::new(listener);
    tokio::spawn(tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(incoming));
    endpoint
}
