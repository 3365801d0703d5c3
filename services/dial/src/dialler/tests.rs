use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use tripod_wait::within;

use super::*;
use crate::allow::Allow;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// Another address of this machine, in the place of another machine.
const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

/// Listens, and tells whether anybody came.
struct Trap(TcpListener);

impl Trap {
    /// At a port of both addresses, so that only the address tells them apart.
    fn pair() -> (Self, Self) {
        loop {
            let here = TcpListener::bind((HERE, 0)).unwrap();
            let port = here.local_addr().unwrap().port();
            if let Ok(elsewhere) = TcpListener::bind((ELSEWHERE, port)) {
                return (Self(here), Self(elsewhere));
            }
        }
    }

    fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// A connection that was made waits here from then on.
    fn is_sprung(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        self.0.accept().is_ok()
    }
}

/// A list that has none of the test's addresses, so that only what is the caller's own may be named.
fn strict() -> Rule {
    Rule { allow: "10.0.0.0/8".parse().unwrap(), flag: "--dial-allow", here_only: false }
}

fn names(answers: &'static [&'static [IpAddr]]) -> (Dialler, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let look_up: LookUp = Arc::new(move |_| {
        let answer = answers.get(counted.fetch_add(1, Ordering::Relaxed)).or(answers.last());
        Ok(answer.expect("there is one").to_vec())
    });
    (Dialler::looking_up(strict(), look_up), asked)
}

async fn connect(dialler: &Dialler, address: &str, word: Named) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let connected = within("a connection or a refusal", dialler.connect(endpoint, word)).await;
    connected.map_err(|error| {
        let error: &dyn std::error::Error = &error;
        let causes = std::iter::successors(Some(error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    })
}

#[tokio::test]
async fn an_address_of_somebody_else_gets_no_connection() {
    let (own, trap) = Trap::pair();
    let dialler = Dialler::new(strict());
    let refused = connect(&dialler, &trap.address(), Named::By(Some(HERE))).await.unwrap_err();
    assert!(refused.contains("T6305"), "{refused}");
    let refused = dialler.admit(&trap.address(), Some(HERE)).await.unwrap_err();
    assert!(matches!(refused, Refused::NotYours { .. }), "{refused}");
    assert!(!trap.is_sprung());
    connect(&dialler, &own.address(), Named::By(Some(HERE))).await.unwrap();
    assert!(own.is_sprung());
}

#[tokio::test]
async fn a_stream_goes_by_the_same_rules() {
    let (own, trap) = Trap::pair();
    let dialler = Dialler::new(strict());
    let named = Named::By(Some(HERE));
    let refused = within("a refusal", dialler.stream(&trap.address(), named)).await.unwrap_err();
    let why = refused.get_ref().and_then(|cause| cause.downcast_ref::<Refused>());
    assert!(matches!(why, Some(Refused::NotYours { .. })), "{refused}");
    assert!(!trap.is_sprung());
    within("a stream", dialler.stream(&own.address(), named)).await.unwrap();
    assert!(own.is_sprung());
}

#[tokio::test]
async fn of_a_name_only_those_addresses_are_connected_to_that_may_be() {
    let (trap, own) = Trap::pair();
    let (dialler, _) = names(&[&[HERE, ELSEWHERE]]);
    let named = format!("both.example:{}", trap.port());
    let word = Named::By(Some(ELSEWHERE));
    connect(&dialler, &named, word).await.unwrap();
    assert!(own.is_sprung() && !trap.is_sprung());
    assert_eq!(dialler.admit(&named, Some(ELSEWHERE)).await.unwrap(), own.address());

    let (dialler, _) = names(&[&[HERE]]);
    let refused = connect(&dialler, &named, word).await.unwrap_err();
    assert!(refused.contains("both.example") && refused.contains("127.0.0.1"), "{refused}");
    assert!(!trap.is_sprung());
}

/// Whoever owns a name can have it mean another machine from one moment to the next.
#[tokio::test]
async fn what_was_judged_is_what_is_connected_to() {
    let (trap, own) = Trap::pair();
    let (dialler, asked) = names(&[&[ELSEWHERE], &[HERE]]);
    let noted = dialler.admit(&format!("turns.example:{}", own.port()), Some(ELSEWHERE)).await.unwrap();
    connect(&dialler, &noted, Named::Noted).await.unwrap();
    assert!(own.is_sprung() && !trap.is_sprung());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let host = dialler.admit_host("turns.example", Some(ELSEWHERE)).await;
    assert!(host.is_err(), "it means somebody else by now: {host:?}");
}

#[tokio::test]
async fn where_everything_is_allowed_a_name_is_noted_as_it_is() {
    let look_up: LookUp = Arc::new(|name| panic!("{name} is looked up"));
    let dialler = Dialler::looking_up(Rule { allow: Allow::Any, ..strict() }, look_up);
    assert_eq!(dialler.admit("gpu5:1", Some(HERE)).await.unwrap(), "gpu5:1");
    assert_eq!(dialler.admit_host("gpu5", Some(HERE)).await.unwrap(), "gpu5");
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_refused_whoever_says_it() {
    let dialler = Dialler::new(Rule::any());
    for address in ["", "unix:/run/sock", "127.0.0.1:0", "127.0.0.1", "0.0.0.0:80", "[::]:80", "[ff02::1]:80"]
    {
        assert!(dialler.admit(address, None).await.is_err(), "{address}");
    }
}
