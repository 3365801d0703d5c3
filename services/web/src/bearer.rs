//! The token that a request shows, if it shows one.

use std::net::{IpAddr, Ipv4Addr};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tripod_gateway::Bearers;
use tripod_tls::Presented;

/// By what a request has come, among its extensions.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) from: IpAddr,
    /// Of a connection that may be protected.
    pub(crate) presented: Option<Presented>,
}

impl Arrived {
    /// Whether nobody on the way can have read it.
    fn is_private(&self) -> bool {
        self.from.is_loopback() || self.presented.as_ref().is_some_and(Presented::is_encrypted)
    }
}

/// The same paths, whose requests are refused if they show a token that is not believed. Without one they are answered as always: a
/// path is shown to everybody or to nobody.
pub(crate) fn judged(router: Router, bearers: Option<Bearers>) -> Router {
    match bearers {
        Some(bearers) => router.layer(from_fn_with_state(bearers, judge)),
        None => router,
    }
}

async fn judge(State(bearers): State<Bearers>, request: Request, next: Next) -> Response {
    let arrived = request.extensions().get::<Arrived>();
    let is_private = arrived.is_some_and(Arrived::is_private);
    let from = arrived.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |arrived| arrived.from);
    match bearers.check(request.headers(), is_private, from) {
        Ok(()) => next.run(request).await,
        Err(text) => {
            let headers = [(WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, headers, format!("{text}\n")).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use axum::http::header::AUTHORIZATION;
    use axum::routing::get;
    use tower::ServiceExt as _;
    use tripod_gateway::Gateway;
    use tripod_state::ids::DurationMs;
    use tripod_state::token::{Bearer, Command as Token, Kind};
    use tripod_state::{Command, level};
    use tripod_token::{REFUSED, TokenText};

    use super::*;

    #[tokio::test]
    async fn s30_a_wrong_token_is_refused_and_without_one_a_path_is_answered() {
        let (gateway, _backend) = Gateway::in_memory();
        let text = TokenText::draw(Kind::Viewer).expect("random bits");
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        let create = Token::Create {
            token: text.id,
            hash: text.secret.hash(text.id),
            bearer: Bearer { kind: Kind::Viewer, job: None, task: None, name: "bob".to_owned() },
            lifetime_ms: DurationMs(60_000),
            by: String::new(),
        };
        for command in [Command::Level(raise), Command::Token(create)] {
            gateway.submit(command).await.expect("no outage").expect("not refused");
        }
        let node: tripod_identity::Identity = "spiffe://example.org/tripod/main/node/a".parse().expect("one");
        let bearers = Bearers::new(&gateway, node.realm, false);
        let router = judged(Router::new().route("/metrics", get(|| async { "shown" })), Some(bearers));
        let ask = async |shown: Option<String>, from: &str| {
            let mut request = Request::builder().uri("/metrics");
            if let Some(shown) = shown {
                request = request.header(AUTHORIZATION, shown);
            }
            let mut request = request.body(Body::empty()).expect("a request");
            let from = from.parse().expect("an address");
            request.extensions_mut().insert(Arrived { from, presented: None });
            let response = router.clone().oneshot(request).await.expect("answered");
            let status = response.status();
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        let shown = (StatusCode::OK, "shown".to_owned());
        let refused = (StatusCode::UNAUTHORIZED, format!("{REFUSED}\n"));
        let right = Some(format!("Bearer {}", *text.write()));
        assert_eq!(ask(None, "10.0.0.7").await, shown);
        assert_eq!(ask(Some("Basic YTpi".to_owned()), "10.0.0.7").await, shown);
        assert_eq!(ask(right.clone(), "127.0.0.1").await, shown);
        assert_eq!(ask(Some("Bearer eyJhbGciOiJub25lIn0.e30.".to_owned()), "10.0.0.7").await, shown);
        assert_eq!(ask(Some("Bearer trp_x".to_owned()), "127.0.0.1").await, refused);
        assert_eq!(ask(right, "10.0.0.7").await, refused, "others can have read it");
    }
}
