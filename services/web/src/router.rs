//! The paths and their answers.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use axum::{Json, Router};
use tripod_gateway::{Check, Gateway, Readiness};

use crate::bearer;
use crate::metrics::{self, NodeFigures, SnapshotsSeen};
use crate::ui::{self, Page};
use crate::view::View;

/// What is served for programs, and what for.
pub(crate) const PATHS: [(&str, &str); 5] = [
    ("/livez", "whether the process runs its requests"),
    ("/readyz", "whether the node serves; 503 with the reason if it does not"),
    ("/readyz?verbose", "the same, check by check"),
    ("/status", "the node&rsquo;s view of itself and the cluster, as JSON"),
    ("/metrics", "metrics, as Prometheus reads them"),
];

/// What a port answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Health, status and metrics, and the page for people.
    All,
    /// The first without the page.
    WithoutPage,
    /// The page alone, which leads to nothing else.
    PageOnly,
}

/// All paths, without a port: for `tripod-fuzz`, besides [`crate::serve`].
pub fn router(gateway: Gateway) -> Router {
    let figures = NodeFigures::default();
    let page = Page::new(gateway.clone(), 0, figures.viewers.clone(), true);
    router_with(gateway, figures, Parts::All, page)
}

/// The same for a node that also shows these, as far as `parts` goes.
pub(crate) fn router_with(gateway: Gateway, figures: NodeFigures, parts: Parts, page: Page) -> Router {
    let (seen, bearers) = (SnapshotsSeen::default(), figures.bearers.clone());
    let programs = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/metrics", get(move |gateway| metrics(gateway, seen.clone(), figures.clone())))
        .with_state(gateway);
    let router = match parts {
        Parts::All => programs.merge(ui::routes(page)),
        Parts::WithoutPage => programs.route("/", get(index)),
        Parts::PageOnly => ui::routes(page),
    };
    bearer::judged(router, bearers)
}

/// What a browser is shown that was given the address alone, of a node without a page.
async fn index() -> Html<String> {
    let line = |(path, what): &(&str, &str)| format!("<li><a href=\"{path}\">{path}</a>: {what}</li>\n");
    let paths: String = PATHS.iter().map(line).collect();
    Html(format!(
        "<!DOCTYPE html>\n<title>Tripod node</title>\n<p>This is a node of a Tripod cluster.</p>\n<ul>\n{paths}</ul>\n"
    ))
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(gateway): State<Gateway>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    // With any value, or none.
    let words = query.as_deref().unwrap_or_default().split('&');
    let in_detail = words.into_iter().any(|word| word.split('=').next() == Some("verbose"));
    let readiness = gateway.readiness().await;
    let code = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let text = if in_detail { verbose(&readiness) } else { brief(&readiness) };
    (code, text)
}

fn brief(readiness: &Readiness) -> String {
    match readiness.trouble() {
        None => "ok\n".to_owned(),
        Some(trouble) => format!("not ready: {trouble}\n"),
    }
}

/// A line for each check, as operators know it from etcd and Kubernetes.
fn verbose(readiness: &Readiness) -> String {
    let mut text = String::new();
    for Check { name, trouble } in &readiness.checks {
        match trouble {
            None => text.push_str(&format!("[+]{name} ok\n")),
            Some(trouble) => text.push_str(&format!("[-]{name}: {trouble}\n")),
        }
    }
    text.push_str(if readiness.is_ready() { "ready\n" } else { "not ready\n" });
    text
}

async fn status(State(gateway): State<Gateway>) -> Json<View> {
    Json(View::of(&gateway.admin().status(), gateway.waiting_calls(), gateway.is_insecure()))
}

async fn metrics(
    State(gateway): State<Gateway>,
    seen: SnapshotsSeen,
    figures: NodeFigures,
) -> impl IntoResponse {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::page(&gateway, &seen, figures).await)
}
