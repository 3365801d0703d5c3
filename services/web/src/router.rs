//! The paths and the server.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tripod_gateway::{Consistency, Gateway};

use crate::metrics;
use crate::view::View;

/// How long a probe may wait for a read when no leader is known; probes themselves give up after a
/// second by default.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves the http port until `shutdown` resolves.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router(gateway)).with_graceful_shutdown(shutdown).await
}

fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .with_state(gateway)
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, String) {
    match unready(&gateway).await {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

/// Why this node cannot serve now.
async fn unready(gateway: &Gateway) -> Option<String> {
    if gateway.status().leader.is_some() {
        return None;
    }
    let read = gateway.read(Consistency::Linearizable, |_| ());
    match tokio::time::timeout(PROBE_TIMEOUT, read).await {
        Ok(Ok(())) => None,
        Ok(Err(outage)) => Some(outage.to_string()),
        Err(_) => Some(format!(
            "no leader is known in term {} and none appeared within {} ms",
            gateway.status().term,
            PROBE_TIMEOUT.as_millis()
        )),
    }
}

async fn status(State(gateway): State<Gateway>) -> Json<View> {
    Json(View::of(&gateway.status(), gateway.waiting_calls()))
}

async fn metrics(State(gateway): State<Gateway>) -> impl IntoResponse {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::text(&gateway.status(), gateway.waiting_calls()))
}
