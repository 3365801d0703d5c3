//! Messages as a test says that they come.

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::stop::{Phase, Stop};

/// For longer than anything is held.
const LONG: Duration = Duration::from_secs(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    name: &'static str,
    bytes: u64,
    patience: Option<Duration>,
}

/// Of no use without its client.
fn bound(name: &'static str) -> Said {
    Said { name, bytes: 1, patience: Some(LEFT_TIME) }
}

/// To be done in any case.
fn last(name: &'static str) -> Said {
    Said { patience: None, ..bound(name) }
}

#[derive(Debug, Clone, Copy)]
enum Comes {
    Whole(Said),
    /// Half of one, which does not go on in time.
    Half,
    /// The connection breaks.
    Break,
    /// What can never be read, however often it is looked at.
    Wrong,
}

#[derive(Debug)]
enum Trouble {
    Broken(io::Error),
    Wrong,
}

struct Script {
    comes: mpsc::UnboundedReceiver<Comes>,
    is_wrong: bool,
}

impl Messages<Said> for Script {
    type Error = Trouble;

    async fn message(&mut self) -> Result<Option<Said>, Trouble> {
        if self.is_wrong {
            return Err(Trouble::Wrong);
        }
        let broken = |kind: io::ErrorKind| Err(Trouble::Broken(kind.into()));
        match self.comes.recv().await {
            None => Ok(None),
            Some(Comes::Whole(said)) => Ok(Some(said)),
            Some(Comes::Half) => broken(io::ErrorKind::TimedOut),
            Some(Comes::Break) => broken(io::ErrorKind::ConnectionReset),
            Some(Comes::Wrong) => {
                self.is_wrong = true;
                Err(Trouble::Wrong)
            }
        }
    }

    fn bytes(said: &Said) -> u64 {
        said.bytes
    }

    fn patience(said: &Said) -> Result<Option<Duration>, Trouble> {
        Ok(said.patience)
    }

    fn broken(trouble: &Trouble) -> Option<&io::Error> {
        match trouble {
            Trouble::Broken(error) => Some(error),
            Trouble::Wrong => None,
        }
    }
}

/// A client, its messages at the port, and what stops that.
struct Line {
    client: mpsc::UnboundedSender<Comes>,
    ahead: Ahead<Script, Said>,
    stop: Stop,
}

impl Line {
    fn new() -> Self {
        let (client, comes) = mpsc::unbounded_channel();
        let (stop, stopping) = Stop::new();
        Self { client, ahead: Ahead::new(Script { comes, is_wrong: false }, stopping), stop }
    }

    fn come(&self, what: impl IntoIterator<Item = Comes>) {
        for what in what {
            self.client.send(what).expect("it is listened to");
        }
    }

    /// The client says all of it, and goes.
    fn gone_after(said: impl IntoIterator<Item = Said>) -> Ahead<Script, Said> {
        let line = Self::new();
        line.come(said.into_iter().map(Comes::Whole));
        line.ahead
    }
}

async fn next(ahead: &mut Ahead<Script, Said>) -> Option<&'static str> {
    let next = timeout(LONG, ahead.next()).await.expect("in time");
    next.expect("nothing is wrong").map(|said| said.name)
}

/// Whether its client is seen to have gone for so long.
async fn is_left(ahead: &mut Ahead<Script, Said>, patience: Option<Duration>) -> bool {
    timeout(LONG, ahead.left(patience)).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn while_its_client_is_there_nothing_is_given_up_and_what_was_read_ahead_has_its_turn() {
    let mut line = Line::new();
    line.come([bound("a"), bound("b"), last("c")].map(Comes::Whole));
    assert_eq!(next(&mut line.ahead).await, Some("a"));
    assert!(!is_left(&mut line.ahead, Some(Duration::ZERO)).await, "it has not gone");
    line.come([Comes::Whole(bound("d"))]);
    for name in ["b", "c", "d"] {
        assert_eq!(next(&mut line.ahead).await, Some(name));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_of_no_use_without_its_client_is_given_up_a_while_after_that_has_gone_and_nothing_else() {
    let mut ahead = Line::gone_after([bound("a"), bound("b"), last("c"), bound("d")]);
    assert_eq!(next(&mut ahead).await, Some("a"));
    let began = Instant::now();
    assert!(is_left(&mut ahead, Some(LEFT_TIME)).await);
    assert!((LEFT_TIME..LEFT_TIME * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!((next(&mut ahead).await, next(&mut ahead).await), (Some("c"), None));
    let mut ahead = Line::gone_after([last("a")]);
    assert_eq!(next(&mut ahead).await, Some("a"));
    assert!(!is_left(&mut ahead, None).await, "it is to be done");
}

#[tokio::test(start_paused = true)]
async fn before_that_it_has_its_turn_as_long_as_its_own_patience_lasts() {
    let asked = Said { patience: Some(Duration::ZERO), ..bound("b") };
    let mut ahead = Line::gone_after([bound("a"), asked, bound("c")]);
    assert_eq!(next(&mut ahead).await, Some("a"));
    let is_seen = timeout(LEFT_TIME / 2, ahead.left(Some(LEFT_TIME))).await;
    assert!(is_seen.is_err(), "its time is not over");
    assert_eq!(next(&mut ahead).await, Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_answer_has_gone() {
    let mut line = Line::new();
    line.come([bound("a"), bound("b"), last("c")].map(Comes::Whole));
    assert_eq!(next(&mut line.ahead).await, Some("a"));
    line.ahead.lost();
    assert!(is_left(&mut line.ahead, Some(LEFT_TIME)).await);
    assert_eq!(next(&mut line.ahead).await, Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_slow_over_a_message_has_not_gone_and_one_whose_connection_breaks_has() {
    let mut line = Line::new();
    line.come([Comes::Whole(bound("a")), Comes::Half]);
    assert_eq!(next(&mut line.ahead).await, Some("a"));
    assert!(!is_left(&mut line.ahead, Some(Duration::ZERO)).await);
    line.come([Comes::Break]);
    assert!(is_left(&mut line.ahead, Some(Duration::ZERO)).await);
    // A machine that is lost is no slow one, though the system's word for it is the same.
    #[cfg(target_os = "linux")]
    assert!(!is_slow(&io::Error::from_raw_os_error(110)));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_when_its_turn_has_come() {
    let mut line = Line::new();
    line.come([Comes::Whole(bound("a")), Comes::Whole(bound("b")), Comes::Wrong]);
    assert_eq!(next(&mut line.ahead).await, Some("a"));
    assert!(!is_left(&mut line.ahead, Some(Duration::ZERO)).await);
    assert_eq!(next(&mut line.ahead).await, Some("b"));
    assert!(matches!(line.ahead.next().await, Err(Trouble::Wrong)));
}

#[tokio::test(start_paused = true)]
async fn beyond_so_many_messages_or_bytes_no_more_are_read() {
    let many = std::iter::repeat_n(last("b"), WAITING_MAX);
    let long = Said { bytes: WAITING_BYTES_MAX, ..last("b") };
    for said in [many.collect::<Vec<_>>(), vec![long]] {
        let mut ahead = Line::gone_after([bound("a")].into_iter().chain(said));
        assert_eq!(next(&mut ahead).await, Some("a"));
        assert!(!is_left(&mut ahead, Some(Duration::ZERO)).await, "it is not seen behind what waits");
        assert_eq!(next(&mut ahead).await, Some("b"));
        assert!(is_left(&mut ahead, Some(Duration::ZERO)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn when_the_port_stops_nothing_that_waits_is_begun_and_nobody_counts_as_gone() {
    let Line { client, mut ahead, stop } = Line::new();
    for said in [bound("a"), last("b")] {
        client.send(Comes::Whole(said)).expect("it is listened to");
    }
    assert_eq!(next(&mut ahead).await, Some("a"));
    assert!(!is_left(&mut ahead, Some(Duration::ZERO)).await);
    stop.enter(Phase::Leaving);
    drop(client);
    assert!(!is_left(&mut ahead, Some(Duration::ZERO)).await, "the port ends it");
    assert_eq!(next(&mut ahead).await, None);
}
