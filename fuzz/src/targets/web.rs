//! Requests of probes, of collectors of metrics, and of whoever finds the HTTP port.

use axum::body::Body;
use axum::http::Request;
use tower::ServiceExt as _;
use tripod_state::level;

use crate::node::Node;
use crate::source::Source;
use crate::target::Target;
use crate::{mutate, runtime};

/// A path with a query, and a method before it.
pub(crate) const REQUESTS: Target = Target { name: "web", what: "requests to the HTTP port", generate, run };

const METHODS: &[&str] = &["GET", "GET", "GET", "POST", "HEAD", "OPTIONS", "PURGE"];
const PATHS: &[&str] =
    &["/livez", "/readyz", "/status", "/metrics", "/", "/readyz/", "//readyz", "/readyz%3Fverbose"];
const QUERIES: &[&str] =
    &["verbose", "verbose=1", "=", "&&", "verbose&verbose", "a=b&verbose=", "%", "%zz", "exclude=leader"];

fn generate(source: &mut Source) -> Vec<u8> {
    let mut text = format!("{} {}", source.pick(METHODS), source.pick(PATHS));
    for place in 0..source.below(4) {
        text.push(if place == 0 { '?' } else { '&' });
        text.push_str(QUERIES[source.below(QUERIES.len())]);
    }
    let mut bytes = text.into_bytes();
    if source.one_in(2) {
        mutate::mutate(source, &mut bytes);
    }
    bytes
}

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (method, uri) = text.split_once(' ').unwrap_or(("GET", &text));
    // What is no request at all never comes past the parser of HTTP.
    let Ok(request) =
        Request::builder().method(method).uri(uri).header("host", "node.localhost").body(Body::empty())
    else {
        return;
    };
    runtime::run(async {
        let node = Node::start(level::NEWEST).await;
        let response =
            tripod_web::router(node.gateway.clone()).oneshot(request).await.expect("it always answers");
        // What is streamed does not end.
        if response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            return;
        }
        let bytes = axum::body::to_bytes(response.into_body(), 16 << 20).await.expect("it is small");
        assert!(std::str::from_utf8(&bytes).is_ok(), "an answer is no text");
    });
}
