//! `tripod.v1.Tokens` over a real connection and a gateway in memory, through our own client.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::net::TcpListener;
use tonic::Code;
use tonic::service::interceptor::InterceptorLayer;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tripod_client::{Client, Config, Error, wire};
use tripod_gateway::Gateway;
use tripod_identity::Identity;
use tripod_port::CallerAddress;
use tripod_state::{Command, level};
use tripod_token::{Maker, Refused, View, verify};

/// What a port says of each call.
#[derive(Clone, Default)]
struct Said {
    from: Option<CallerAddress>,
    maker: Option<Arc<Maker>>,
}

struct Site {
    gateway: Gateway,
}

impl Site {
    async fn at(level: u32) -> Self {
        let (gateway, _backend) = Gateway::in_memory();
        let to = tripod_state::ids::FeatureLevel(level);
        let raise = level::Command::Raise { to, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
        Self { gateway }
    }

    /// A client at another port of the node, of whose calls that is said.
    async fn client(&self, said: Said) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = listener.local_addr().expect("bound").to_string();
        let layer = InterceptorLayer::new(move |mut request: tonic::Request<()>| {
            if let Some(from) = said.from {
                request.extensions_mut().insert(from);
            }
            if let Some(maker) = &said.maker {
                request.extensions_mut().insert(Arc::clone(maker));
            }
            Ok(request)
        });
        let server = Server::builder().layer(layer).add_routes(common::routes(&self.gateway));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Client::new(&Config::new(vec![endpoint])).expect("a good address")
    }

    /// What this node makes of a token.
    fn whose(&self, token: &str) -> Result<String, Refused> {
        let node: Identity = "spiffe://example.org/tripod/main/node/a".parse().expect("it is one");
        let (tokens, log_now) = self.gateway.tokens_here();
        let view = View { realm: node.realm, tokens, log_now };
        verify(token, &view, 0).map(|identity| identity.kind.to_string())
    }
}

fn request(kind: &str, job: &str, name: &str) -> wire::CreateTokenRequest {
    let (kind, job, name) = (kind.to_owned(), job.to_owned(), name.to_owned());
    wire::CreateTokenRequest { kind, job, name, by: "ops@host".to_owned(), ..Default::default() }
}

fn refusal<T>(outcome: Result<T, Error>) -> (Code, String, String) {
    match outcome {
        Err(Error::Refused { code, reason, message, .. }) => (code, reason, message),
        Err(other) => panic!("not refused: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

async fn revoke(client: &Client, id: &str) -> Result<(), Error> {
    client.revoke_token(&wire::RevokeTokenRequest { id: id.to_owned(), by: "ops@host".to_owned() }).await
}

#[tokio::test]
async fn a_token_is_made_believed_listed_without_its_secret_and_revoked() {
    let site = Site::at(11).await;
    let client = site.client(Said::default()).await;
    let operator = client.create_token(&request("operator", "", "alice")).await.expect("made");
    let agent = client.create_token(&request("agent", "train", "")).await.expect("made");
    assert_eq!(site.whose(&operator.token).as_deref(), Ok("operator/alice"));
    assert_eq!(site.whose(&agent.token).as_deref(), Ok("job/train/agent"));

    let listed = client.tokens().await.expect("listed");
    assert_eq!(listed.len(), 2);
    let secret = operator.token.split('_').nth(3).expect("the fourth part");
    assert!(!format!("{listed:?}").contains(secret));
    let of = |id: &str| listed.iter().find(|token| token.id == id).expect("it is there").clone();
    let known = of(&operator.id);
    assert_eq!(
        (known.kind.as_str(), known.name.as_str(), known.standing.as_str()),
        ("operator", "alice", "valid")
    );
    assert_eq!(known.by, "ops@host");
    assert_eq!(known.expires_ms - known.created_ms, 24 * 3600 * 1000, "a day, unless it is said");

    revoke(&client, &agent.id).await.expect("revoked");
    revoke(&client, &agent.id).await.expect("again: no change");
    assert_eq!(site.whose(&agent.token), Err(Refused));
    assert_eq!(site.whose(&operator.token).as_deref(), Ok("operator/alice"));
    let listed = client.tokens().await.expect("listed");
    let known = listed.iter().find(|token| token.id == agent.id).expect("it is there");
    assert_eq!((known.standing.as_str(), known.revoked_by.as_str()), ("revoked", "ops@host"));
    let (code, reason, text) = refusal(revoke(&client, "aaaaaaaaaaaaa").await);
    assert_eq!((code, reason.as_str()), (Code::NotFound, "token-unknown"));
    assert!(text.starts_with("T1533 token-unknown: "), "{text}");
}

#[tokio::test]
async fn more_tokens_than_one_answer_holds_come_in_several() {
    let site = Site::at(11).await;
    let client = site.client(Said::default()).await;
    let (viewer, mut made) = (request("viewer", "", "bob"), BTreeSet::new());
    for _ in 0..1_010 {
        assert!(made.insert(client.create_token(&viewer).await.expect("made").id));
    }
    let listed: Vec<String> =
        client.tokens().await.expect("listed").into_iter().map(|token| token.id).collect();
    assert_eq!(listed.len(), made.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made);
}

#[tokio::test]
async fn what_makes_no_token_is_refused_with_the_next_command() {
    let site = Site::at(11).await;
    let client = site.client(Said::default()).await;
    for (request, reason) in [
        (request("owner", "", "alice"), "token-invalid"),
        (request("operator", "", ""), "token-invalid"),
        (request("agent", "", ""), "token-invalid"),
        (request("agent", "Train", ""), "job-name-invalid"),
        (wire::CreateTokenRequest { task: Some(u32::MAX), ..request("task", "train", "") }, "token-invalid"),
        (wire::CreateTokenRequest { lifetime_ms: 3_600_001, ..request("join", "", "") }, "limit-exceeded"),
        (wire::CreateTokenRequest { lifetime_ms: u64::MAX, ..request("viewer", "", "a") }, "limit-exceeded"),
    ] {
        let (_, told, text) = refusal(client.create_token(&request).await);
        assert_eq!(told, reason, "{text}");
    }
    for id in ["", "x", "AAAAAAAAAAAAA", "zzzzzzzzzzzzz", &"a".repeat(1 << 16)] {
        let (code, _, text) = refusal(revoke(&client, id).await);
        assert_eq!(code, Code::InvalidArgument, "{text}");
    }
    assert!(client.tokens().await.expect("listed").is_empty());
}

#[tokio::test]
async fn below_its_level_there_are_no_tokens() {
    let site = Site::at(10).await;
    let client = site.client(Said::default()).await;
    let (code, reason, text) = refusal(client.create_token(&request("viewer", "", "bob")).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "level-too-low"));
    assert!(text.contains("feature level 11"), "{text}");
}

#[tokio::test]
async fn s30_a_token_is_told_in_plain_text_to_this_host_and_to_no_other() {
    let site = Site::at(11).await;
    let from = |address: &str| Some(CallerAddress::at(address.parse().expect("an address")));
    let far = site.client(Said { from: from("10.0.0.7"), maker: None }).await;
    let (code, reason, text) = refusal(far.create_token(&request("viewer", "", "bob")).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "token-plain"));
    assert!(text.starts_with("T1534 token-plain: "), "{text}");
    assert!(far.tokens().await.expect("ids are no secret").is_empty(), "none was made");
    let near = site.client(Said { from: from("127.0.0.3"), maker: None }).await;
    near.create_token(&request("viewer", "", "bob")).await.expect("made");
}

#[tokio::test]
async fn s32_an_owner_makes_sees_and_revokes_tokens_of_its_jobs_and_no_others() {
    let site = Site::at(11).await;
    let operator = Maker::Operator { name: "operator/alice".to_owned() };
    let owner = Maker::Owner { name: "operator/bob".to_owned(), jobs: BTreeSet::from(["train".to_owned()]) };
    let alice = site.client(Said { maker: Some(Arc::new(operator)), from: None }).await;
    let bob = site.client(Said { maker: Some(Arc::new(owner)), from: None }).await;
    let of_alice = alice.create_token(&request("operator", "", "alice")).await.expect("made");
    alice.create_token(&request("task", "eval", "")).await.expect("made");
    let of_train = bob.create_token(&request("task", "train", "")).await.expect("made");
    for beyond in [
        request("operator", "", "bob"),
        request("viewer", "", "bob"),
        request("join", "", ""),
        request("task", "eval", ""),
    ] {
        let (code, reason, text) = refusal(bob.create_token(&beyond).await);
        assert_eq!((code, reason.as_str()), (Code::PermissionDenied, "token-beyond"), "{text}");
    }
    let seen = bob.tokens().await.expect("listed");
    assert_eq!(seen.iter().map(|token| token.id.as_str()).collect::<Vec<_>>(), [of_train.id.as_str()]);
    assert_eq!(seen[0].by, "operator/bob", "what was proved counts, and not what the call says");
    assert_eq!(alice.tokens().await.expect("listed").len(), 3);
    let (code, _, _) = refusal(revoke(&bob, &of_alice.id).await);
    assert_eq!(code, Code::NotFound, "of what is not theirs owners learn nothing");
    assert!(site.whose(&of_alice.token).is_ok());
    revoke(&bob, &of_train.id).await.expect("revoked");
    assert_eq!(site.whose(&of_train.token), Err(Refused));
}
