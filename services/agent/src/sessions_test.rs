use std::time::Duration;

use tripod_port::CallerAddress;

use super::*;
use crate::config::Timing;
use crate::upstream::Reach;

/// Sessions that need no cluster, the last of them in use.
fn sessions(ids: &[u128], span: usize, max: usize, own: usize) -> Arc<Sessions> {
    let (upstream, _) = Upstream::new(vec!["127.0.0.1:1".into()], Timing::default(), Reach::default());
    let sessions = Sessions::bounded(upstream, span, max, own);
    let open =
        ids.iter().map(|id| Session { id: SessionId(*id), pace: Pace::Prompt, numbers: Numbers::new(span) });
    sessions.open.lock().extend(open);
    sessions
}

fn one() -> CallerConnection {
    CallerConnection::default()
}

async fn take(sessions: &Arc<Sessions>) -> (Flight, String) {
    let flight = sessions.take(one(), Pace::Prompt).await.expect("open");
    let stamp = flight.stamp().to_string();
    (flight, stamp)
}

#[tokio::test]
async fn calls_share_a_session_and_tell_the_lowest_number_that_is_out() {
    let sessions = sessions(&[7], 10, 10, 0);
    let (first, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.1.1");
    let (second, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.2.1");
    drop(second);
    let (third, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.3.1", "the first is held");
    drop(first);
    let (fourth, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.4.3");
    let frame = fourth.stamp().of_frame();
    assert_eq!((frame.session, frame.sequence, frame.acknowledged_below), (7, 4, 3));
    drop((third, fourth));
    assert_eq!(take(&sessions).await.1, "7.5.5");
}

#[tokio::test]
async fn a_session_whose_span_is_used_up_is_left_to_the_call_that_is_held_in_it() {
    let sessions = sessions(&[8, 7], 3, 100, 0);
    let (held, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.1.1");
    for _ in 0..2 {
        drop(take(&sessions).await);
    }
    for number in 1..=20 {
        assert_eq!(take(&sessions).await.1, format!("8.{number}.{number}"));
    }
    assert_eq!(sessions.count(), 2);
    drop(held);
    assert_eq!(sessions.count(), 1, "nothing is held in the other one any more");
    assert_eq!(take(&sessions).await.1, "8.21.21");
}

#[tokio::test]
async fn a_session_that_was_left_goes_on_when_the_one_in_use_cannot() {
    let sessions = sessions(&[8, 7], 2, 100, 0);
    let (oldest, _) = take(&sessions).await;
    let (newer, _) = take(&sessions).await;
    let (other, stamp) = take(&sessions).await;
    assert_eq!(stamp, "8.1.1");
    drop(oldest);
    let (another, stamp) = take(&sessions).await;
    assert_eq!(stamp, "8.2.1");
    let (last, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.3.2");
    drop((newer, other, another, last));
    assert_eq!(sessions.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_the_bound_waits_for_another_ones_end() {
    let sessions = sessions(&[7], 10, 1, 0);
    let (first, _) = take(&sessions).await;
    let mut second = Box::pin(sessions.take(one(), Pace::Prompt));
    assert!(tokio::time::timeout(Duration::from_secs(60), &mut second).await.is_err());
    drop(first);
    assert_eq!(second.await.expect("free again").stamp().to_string(), "7.2.2");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_uses_all_numbers_leaves_others_their_own() {
    let sessions = sessions(&[7], 100, 2, 1);
    let mut greedy = Vec::new();
    for _ in 0..3 {
        greedy.push(take(&sessions).await);
    }
    let waits = tokio::time::timeout(Duration::from_secs(60), sessions.take(one(), Pace::Prompt)).await;
    assert!(waits.is_err(), "its own number and the common ones are out");
    let other = CallerConnection::from(CallerAddress::default());
    let taken = sessions.take(other, Pace::Prompt).await.expect("its own");
    assert_eq!(taken.stamp().to_string(), "7.4.1");
    drop((greedy, taken));
    assert!(sessions.own.lock().is_empty(), "nothing is kept of who has no calls");
}

#[tokio::test]
async fn a_session_that_is_lost_goes_once_and_the_others_stay() {
    let sessions = sessions(&[8, 7], 10, 10, 0);
    let (first, _) = take(&sessions).await;
    let (second, stamp) = take(&sessions).await;
    assert_eq!(stamp, "7.2.1");
    first.lost();
    assert_eq!(sessions.count(), 1);
    let (third, stamp) = take(&sessions).await;
    assert_eq!(stamp, "8.1.1");
    second.lost();
    assert_eq!(sessions.count(), 1);
    third.lost();
    assert_eq!(sessions.count(), 0);
}

#[tokio::test]
async fn there_are_never_more_sessions_left_than_calls_that_are_held() {
    let ids: Vec<u128> = (1..=7).collect();
    let sessions = sessions(&ids, 2, 100, 0);
    // Every second call is held: each session is used up by one that is held and one that is not.
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(take(&sessions).await.0);
        drop(take(&sessions).await);
    }
    assert!(sessions.count() <= held.len() + 1, "{} with {} held", sessions.count(), held.len());
    while let Some(flight) = held.pop() {
        drop(flight);
        assert!(sessions.count() <= held.len() + 1, "{} with {} held", sessions.count(), held.len());
    }
}

#[tokio::test]
async fn calls_that_wait_for_others_do_not_keep_prompt_ones_from_telling_what_is_answered() {
    let sessions = sessions(&[7], 10, 100, 0);
    let numbers = Numbers::new(10);
    sessions.open.lock().push(Session { id: SessionId(8), pace: Pace::Held, numbers });
    let poll = sessions.take(one(), Pace::of(Kind::Poll)).await.expect("open");
    assert_eq!(poll.stamp().to_string(), "8.1.1");
    for number in 1..=20 {
        assert_eq!(take(&sessions).await.1, format!("7.{number}.{number}"));
    }
    drop(poll);
    assert_eq!(sessions.count(), 2, "each is in use");
    let barrier = sessions.take(one(), Pace::of(Kind::Barrier)).await.expect("open");
    assert_eq!(barrier.stamp().to_string(), "8.2.2");
}
