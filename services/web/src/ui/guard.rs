//! What is refused before anything is looked at, and what every answer says of itself.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tripod_gateway::Consistency;
use tripod_proto::code::Code;
use tripod_state::State as Replicated;

use crate::ui::Page;

/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 1_024;
/// Nothing from elsewhere, nothing inside the page that runs, and no page around it.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
const ALL: [(HeaderName, &str); 3] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
];

/// A refusal, in words.
pub(crate) fn refuse(status: StatusCode, code: Code, why: &str) -> Response {
    // Whatever was sent in it must not be an order to the terminal that it is printed on.
    let text = format!("{code}: {}\n", why.escape_debug());
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// Lets through what may be asked, and marks what is answered.
pub(crate) async fn check(State(page): State<Page>, request: Request, next: Next) -> Response {
    let mut response = match legal(&request) {
        Err(refused) => refused,
        Ok(host) if is_ours(&page, &host).await => next.run(request).await,
        Ok(host) => {
            let why = format!(
                "no member of this cluster is called `{host}`; open the page by the address of the node"
            );
            refuse(StatusCode::MISDIRECTED_REQUEST, Code::UiHost, &why)
        }
    };
    let headers = response.headers_mut();
    for (name, value) in ALL {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The host that is asked, if the request is one that may be made.
fn legal(request: &Request<Body>) -> Result<String, Response> {
    let refused = |status, why: &str| Err(refuse(status, Code::UiRequest, why));
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "the page only shows: ask with GET");
    }
    if request.uri().query().is_some_and(|query| query.len() > QUERY_BYTES_MAX) {
        return refused(StatusCode::URI_TOO_LONG, "a query has 1024 bytes at most");
    }
    match host(request) {
        Some(host) => Ok(host),
        None => refused(StatusCode::BAD_REQUEST, "the request names no host, or none that can be read"),
    }
}

/// The host that the request was sent to, without a port.
fn host(request: &Request<Body>) -> Option<String> {
    let mut named = request.headers().get_all(HOST).iter();
    let (first, others) = (named.next(), named.next());
    let text = match (first, others, request.uri().host()) {
        (Some(first), None, _) => first.to_str().ok()?,
        (None, None, Some(host)) => host,
        _ => return None,
    };
    let host = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => text.rsplit_once(':').map_or(text, |(host, _)| host),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// Whether nobody else can have pointed that name here: an address is nobody's to point anywhere, and the rest is what members
/// announce.
async fn is_ours(page: &Page, host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() || host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let of = |address: &str| address.rsplit_once(':').map_or(address, |(host, _)| host).to_ascii_lowercase();
    let announced = |state: &Replicated| {
        let members = state.members().into_iter();
        members
            .flat_map(|(_, at)| [of(&at.client), of(&at.http), at.job_host.to_ascii_lowercase()])
            .any(|known| known == host)
    };
    page.gateway().read(Consistency::Local, announced).await.unwrap_or(false)
}
