use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn budget(all: u64, one_connection: u64) -> Budget {
    Budget::new(MemoryLimits { all, one_connection })
}

#[test]
fn what_is_held_comes_back_however_it_ends() {
    let budget = budget(64 * MIB, 32 * MIB);
    let account = budget.account();
    let mut request = account.call(CALL_BYTES).unwrap();
    request.set(MIB).unwrap();
    let mut answer = account.answer(3 * MIB).unwrap();
    let piece = answer.split(MIB);
    answer.renew();
    assert_eq!((budget.held(), account.held(), account.untaken()), (4 * MIB, 4 * MIB, 3 * MIB));
    request.set(10).unwrap();
    drop(answer);
    assert_eq!((budget.held(), account.untaken()), (MIB + 10, MIB));
    drop((request, piece));
    assert_eq!((budget.held(), account.held()), (0, 0));

    // A call that ended without anybody writing its answer goes with its connection.
    let call = CallBytes::of(account.call(CALL_BYTES).unwrap());
    call.end();
    assert!(call.message(MIB).is_ok(), "it holds nothing any more");
    drop(call);
    assert_eq!(budget.held(), CALL_BYTES);
    drop(account);
    assert_eq!(budget.held(), 0);
}

#[test]
fn ended_calls_weigh_until_their_answers_are_written() {
    let account = budget(64 * MIB, 32 * MIB).account();
    let end = |calls: u64| (0..calls).for_each(|_| CallBytes::of(account.call(CALL_BYTES).unwrap()).end());
    end(2);
    assert!(account.written(false), "few are not worth a second look");
    assert_eq!(account.held(), 0);
    end(100);
    assert!(!account.written(false));
    assert_eq!(account.held(), 100 * CALL_BYTES);
    assert!(account.written(true));
    assert_eq!(account.held(), 0);
}

#[test]
fn nobody_is_shut_out_by_others() {
    let budget = budget(MIB, MIB);
    let greedy = budget.account();
    let _held = greedy.call(MIB).unwrap();
    assert_eq!(greedy.call(1).unwrap_err(), Short::Connection { limit: MIB });
    let modest = budget.account();
    let calls: Vec<_> =
        (0..CONNECTION_BYTES_FREE / CALL_BYTES).map(|_| modest.call(CALL_BYTES).unwrap()).collect();
    assert_eq!(modest.call(CALL_BYTES).unwrap_err(), Short::Node { limit: MIB });
    assert_eq!(budget.refused(), 2);
    // Heartbeats pass beside them, in small numbers and if they are small.
    let mut beat = modest.beat(CALL_BYTES).unwrap();
    beat.set(CALL_BYTES + 100).unwrap();
    assert!(beat.set(MIB).is_err());
    drop(calls);
    assert!(modest.call(CALL_BYTES).is_ok());
    drop(beat);
    let beats: Vec<_> = std::iter::from_fn(|| greedy.beat(CALL_BYTES).ok()).collect();
    assert_eq!(beats.len() as u64, 256 * KIB / CALL_BYTES);
}

#[tokio::test]
async fn requests_beyond_the_limit_go_on_in_the_order_in_which_they_came_and_one_always_does() {
    let account = budget(64 * MIB, MIB).account();
    let mut big = account.call(MIB).unwrap();
    let mut turns: Vec<_> = (0..4).map(|_| account.turn(Direction::Requests)).collect();
    // One may go on beyond the limit, or messages that have all come in part would wait for each other.
    assert!(turns[0].come().now_or_never().is_some());
    big.set(2 * MIB).unwrap();
    assert!(turns[0].come().now_or_never().is_some(), "it is still its turn");
    let mut waiting = Vec::new();
    let (sender, mut went) = tokio::sync::mpsc::unbounded_channel();
    for (place, mut turn) in turns.drain(1..).enumerate() {
        let sender = sender.clone();
        assert!(turn.come().now_or_never().is_none());
        waiting.push(tokio::spawn(async move {
            turn.come().await.unwrap();
            sender.send(place).unwrap();
        }));
    }
    tokio::task::yield_now().await;
    assert!(went.try_recv().is_err());
    assert_eq!(
        account.budget().held(),
        2 * MIB + u64::from(CONNECTION_WINDOW_BYTES),
        "what lies unread counts"
    );
    // The second gives up; the others go on in order when there is room.
    waiting[0].abort();
    tokio::task::yield_now().await;
    drop(big);
    assert_eq!((went.recv().await, went.recv().await), (Some(1), Some(2)));
    tripod_wait::until("nothing lies unread", || (account.budget().held() == 0).then_some(())).await;
}

#[tokio::test]
async fn answers_wait_for_answers_and_not_for_requests() {
    let account = budget(64 * MIB, MIB).account();
    let _request = account.call(MIB).unwrap();
    let call = CallBytes::of(account.beat(1).unwrap());
    let making = call.making().await.unwrap();
    let mut second = Box::pin(call.making());
    assert!((&mut second).now_or_never().is_none(), "one is made at a time");
    let first = making.made(2 * MIB).unwrap();
    assert!((&mut second).now_or_never().is_none(), "the first is not read");
    let mut third = account.turn(Direction::Answers);
    assert!(third.come().now_or_never().is_none());
    drop(first.take());
    // Not the third, although there is room: it came later.
    assert!(third.come().now_or_never().is_none());
    drop(second.await.unwrap());
    third.come().await.unwrap();
}

#[test]
fn a_node_without_room_refuses_the_answer_and_the_request_that_would_wait() {
    let budget = budget(2 * MIB, MIB);
    let account = budget.account();
    let _held = account.call(MIB).unwrap();
    assert_eq!(account.answer(2 * MIB).unwrap_err(), Short::Node { limit: 2 * MIB });
    let mut turns = [account.turn(Direction::Requests), account.turn(Direction::Requests)];
    assert_eq!(turns[0].come().now_or_never(), Some(Ok(())));
    assert_eq!(turns[1].come().now_or_never(), Some(Err(Short::Node { limit: 2 * MIB })));
}

#[test]
fn answers_of_which_nothing_is_taken_for_a_period_are_known() {
    let account = budget(64 * MIB, 64 * MIB).account();
    let mut read = account.answer(2 * MIB).unwrap();
    let unread = account.answer(MIB).unwrap();
    assert_eq!(account.next_period(), 0);
    let piece = read.split(MIB);
    read.renew();
    drop(piece);
    assert_eq!(account.next_period(), MIB, "of the other something was taken");
    drop(unread);
    assert_eq!(account.next_period(), MIB);
    drop(read);
    assert_eq!(account.next_period(), 0);
}

#[test]
fn what_many_threads_hold_is_within_the_limit_and_who_waits_is_always_woken() {
    const TIMES: usize = 2_000;
    let budget = budget(64 * MIB, MIB);
    let account = budget.account();
    let sum = AtomicU64::new(0);
    let hold = |bytes: u64| {
        let Ok(charge) = account.call(bytes) else { return };
        assert!(sum.fetch_add(bytes, Ordering::SeqCst) + bytes <= MIB);
        std::thread::yield_now();
        sum.fetch_sub(bytes, Ordering::SeqCst);
        drop(charge);
    };
    let wait = |direction| {
        let mut turn = account.turn(direction);
        runtime().block_on(turn.come()).unwrap();
        std::thread::yield_now();
    };
    std::thread::scope(|threads| {
        for bytes in [MIB, MIB / 2, MIB / 3] {
            threads.spawn(move || (0..TIMES).for_each(|_| hold(bytes)));
        }
        for _ in 0..3 {
            threads.spawn(move || (0..TIMES).for_each(|_| wait(Direction::Requests)));
            threads.spawn(move || (0..TIMES).for_each(|_| wait(Direction::Answers)));
        }
        threads.spawn(|| {
            for _ in 0..TIMES {
                let mut answer = account.answer(MIB).unwrap();
                let _ = account.next_period();
                let piece = answer.split(KIB);
                answer.renew();
                drop((answer, piece));
            }
        });
    });
    assert_eq!((account.held(), budget.held(), account.next_period()), (0, 0, 0));
}

fn account_of(budget: &Budget, name: &str) -> Account {
    budget.account().named(name)
}

#[test]
fn connections_of_one_identity_share_what_it_may_and_others_have_the_rest() {
    let budget = budget(100 * MIB, 50 * MIB);
    let limit = budget.limits().one_identity();
    assert_eq!(limit, 75 * MIB);
    let ours: Vec<_> = (0..3).map(|_| account_of(&budget, "ours")).collect();
    let mut held = vec![ours[0].call(40 * MIB).unwrap(), ours[1].call(35 * MIB).unwrap()];
    // Each of them alone could hold more, and so could the node.
    for account in &ours {
        assert_eq!(account.call(MIB).unwrap_err(), Short::Identity { limit }, "a call");
        assert_eq!(account.answer(MIB).unwrap_err(), Short::Identity { limit }, "an answer");
    }
    assert_eq!(held[1].set(36 * MIB), Err(Short::Identity { limit }), "the rest of a message");
    assert_eq!(budget.held(), 75 * MIB, "what was refused is not held");

    let theirs = account_of(&budget, "theirs");
    let of_theirs = theirs.call(20 * MIB).expect("another identity");
    let unnamed = budget.account();
    drop(unnamed.call(5 * MIB).expect("nobody that is known"));
    // What a client needs for one task passes all the same, and heartbeats do.
    let calls: Vec<_> =
        (0..CONNECTION_BYTES_FREE / CALL_BYTES).map(|_| ours[2].call(CALL_BYTES).unwrap()).collect();
    let beat = ours[2].beat(CALL_BYTES).unwrap();

    drop(calls);
    drop(beat);
    drop(held.pop());
    let again = ours[2].call(35 * MIB).expect("what one connection gives back another one has");
    drop((again, of_theirs, held));
    assert_eq!(budget.held(), 0);
    assert!(account_of(&budget, "ours").call(50 * MIB).is_ok(), "nothing of it is left");
}

#[test]
fn an_identity_never_has_less_than_one_connection() {
    let budget = budget(100 * MIB, 90 * MIB);
    assert_eq!(budget.limits().one_identity(), 90 * MIB);
    assert!(account_of(&budget, "ours").call(90 * MIB).is_ok());
    assert_eq!(MemoryLimits::none().one_identity(), u64::MAX);
}

#[test]
fn a_node_without_room_gives_the_identity_back_what_it_refused() {
    let budget = budget(100 * MIB, 50 * MIB);
    let theirs: Vec<_> = (0..2).map(|_| budget.account()).collect();
    let of_theirs = [theirs[0].call(50 * MIB).unwrap(), theirs[1].call(40 * MIB).unwrap()];
    let ours = account_of(&budget, "ours");
    for _ in 0..10 {
        assert_eq!(ours.call(20 * MIB).unwrap_err(), Short::Node { limit: 100 * MIB });
    }
    drop(of_theirs);
    assert!(ours.call(50 * MIB).is_ok(), "ten refusals would be 200 MiB");
}

#[tokio::test]
async fn what_lies_unread_while_a_request_waits_is_the_identitys_too() {
    let window = u64::from(CONNECTION_WINDOW_BYTES);
    let budget = budget(100 * MIB, 50 * MIB);
    let (one, other) = (account_of(&budget, "ours"), account_of(&budget, "ours"));
    let _full = one.call(50 * MIB).unwrap();
    let mut turns = [one.turn(Direction::Requests), one.turn(Direction::Requests)];
    assert_eq!(turns[0].come().now_or_never(), Some(Ok(())), "one always goes on");
    assert!(turns[1].come().now_or_never().is_none());
    assert_eq!(budget.held(), 50 * MIB + window);
    let limit = budget.limits().one_identity();
    assert_eq!(other.call(10 * MIB).unwrap_err(), Short::Identity { limit });
    drop(turns);
    assert_eq!(budget.held(), 50 * MIB);
    assert!(other.call(10 * MIB).is_ok());
}

#[tokio::test]
async fn what_was_held_before_its_client_proved_a_name_comes_back_from_where_it_was_held() {
    let window = u64::from(CONNECTION_WINDOW_BYTES);
    let budget = budget(100 * MIB, 50 * MIB);
    let unnamed = budget.account();
    let before = unnamed.call(30 * MIB).unwrap();
    let ended_before = CallBytes::of(unnamed.call(10 * MIB).unwrap());
    let _full = unnamed.call(10 * MIB).unwrap();
    let mut turns = [unnamed.turn(Direction::Requests), unnamed.turn(Direction::Requests)];
    assert_eq!(turns[0].come().now_or_never(), Some(Ok(())), "one always goes on");
    assert!(turns[1].come().now_or_never().is_none(), "what lies unread is held for nobody known");
    assert_eq!(budget.held(), 50 * MIB + window);

    let named = unnamed.named("ours");
    let other = account_of(&budget, "ours");
    drop((turns, before));
    ended_before.end();
    let ended_since = CallBytes::of(named.call(5 * MIB).unwrap());
    ended_since.end();
    // Only what was held since counts for the identity, and until the answer is written.
    let limit = budget.limits().one_identity();
    assert_eq!(limit, 75 * MIB);
    let rest = other.call(50 * MIB).expect("within its connection's limit");
    let third = account_of(&budget, "ours");
    assert_eq!(third.call(21 * MIB).unwrap_err(), Short::Identity { limit });
    drop(third.call(20 * MIB).expect("all but what has ended and is not written"));
    assert!(named.written(true));
    drop(third.call(25 * MIB).expect("it is written"));
    drop((rest, ended_before, ended_since));
    assert_eq!(budget.held(), 10 * MIB, "the one that fills it");
}

#[test]
fn what_ended_goes_with_its_connection_for_whomever_it_was_held() {
    let budget = budget(100 * MIB, 50 * MIB);
    let unnamed = budget.account();
    let [one, other] = [account_of(&budget, "ours"), account_of(&budget, "ours")];
    CallBytes::of(unnamed.call(10 * MIB).unwrap()).end();
    let named = unnamed.named("ours");
    CallBytes::of(named.call(20 * MIB).unwrap()).end();
    drop((unnamed, named));
    assert_eq!(budget.held(), 0);
    let held = [one.call(50 * MIB), other.call(25 * MIB)];
    assert!(held.iter().all(Result::is_ok), "nothing is held for the identity: {held:?}");
}

#[test]
fn a_connection_has_one_name() {
    let budget = budget(100 * MIB, 50 * MIB);
    let account = account_of(&budget, "first");
    let held = account.named("second").call(50 * MIB).unwrap();
    let limit = budget.limits().one_identity();
    assert_eq!(account_of(&budget, "first").call(26 * MIB).unwrap_err(), Short::Identity { limit });
    assert!(account_of(&budget, "second").call(50 * MIB).is_ok());
    drop(held);
    assert_eq!(budget.held(), 0);
}
