//! Which beats are due, who waits for them, and what they were answered before.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::Status;

/// Beats of one batch; nodes take four times as many. More are told with the next one.
const BATCH_MAX: usize = 4096;
/// Beats that are kept at a time, of one client each.
pub const BEATS_MAX: usize = 4 * BATCH_MAX;

/// A client's heartbeat call. One client's beats are all alike, and another client's are not: the message
/// names the task and its life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beat {
    pub path: String,
    /// Uncompressed, without gRPC's frame.
    pub message: Bytes,
}

/// What a beat is answered.
pub type Verdict = Result<Bytes, Status>;

type Waiter = oneshot::Sender<Verdict>;

/// All beats of late.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: HashMap<Beat, Entry>,
}

#[derive(Debug)]
struct Entry {
    last_made: Instant,
    /// How long the client waits for an answer, if it says so.
    given: Option<Duration>,
    /// Made and not told since.
    is_due: bool,
    /// Whose beats are to be told.
    waiting: Vec<Waiter>,
    /// Whose beats are being told. `None` when none is.
    told: Option<Vec<Waiter>>,
    lease: Lease,
}

/// What a beat can be answered without the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// The same one has not been answered yet.
    None,
    /// What the same one was answered last.
    Answer(Bytes),
    /// The same one was refused last.
    Refused,
}

/// What is known of a beat that the cluster has taken last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taken {
    /// How long its client waits for an answer, if it says so.
    pub given: Option<Duration>,
    /// What it was answered.
    pub answer: Bytes,
}

impl Ledger {
    /// A client has made `beat`, and waits `given` for its verdict, which comes by the receiver. Without a verdict the beat
    /// was given up for others, and `None` says that there is no place for it.
    pub fn join(&mut self, beat: &Beat, given: Option<Duration>) -> Option<oneshot::Receiver<Verdict>> {
        if self.entries.len() >= BEATS_MAX && !self.entries.contains_key(beat) {
            // Whatever anybody makes up goes, and of those that the cluster has taken none does.
            self.entries.retain(|_, entry| entry.is_taken());
            if self.entries.len() >= BEATS_MAX {
                return None;
            }
        }
        let (waiter, verdict) = oneshot::channel();
        let now = Instant::now();
        let entry = self.entries.entry(beat.clone()).or_insert_with(|| Entry {
            last_made: now,
            given,
            is_due: false,
            waiting: Vec::new(),
            told: None,
            lease: Lease::None,
        });
        entry.last_made = now;
        entry.given = given;
        entry.is_due = true;
        // In a long outage every beat of a client is answered from the lease, and nobody waits any more.
        entry.waiting.retain(|waiter| !waiter.is_closed());
        entry.waiting.push(waiter);
        Some(verdict)
    }

    /// How long the client of a beat waits for an answer, if it says so.
    #[must_use]
    pub fn given(&self, beat: &Beat) -> Option<Duration> {
        self.entries.get(beat).and_then(|entry| entry.given)
    }

    /// Whether anything is to be told.
    #[must_use]
    pub fn has_due(&self) -> bool {
        self.entries.values().any(|entry| entry.is_due && entry.told.is_none())
    }

    /// Takes what is to be told now, first what the cluster has taken before. A beat that is just being told waits: its
    /// next telling would say nothing that this one does not.
    pub fn take_due(&mut self) -> Vec<Beat> {
        let mut due = Vec::new();
        for is_taken in [true, false] {
            let entries = self
                .entries
                .iter_mut()
                .filter(|(_, entry)| entry.is_due && entry.told.is_none() && entry.is_taken() == is_taken);
            for (beat, entry) in entries.take(BATCH_MAX - due.len()) {
                entry.is_due = false;
                entry.told = Some(std::mem::take(&mut entry.waiting));
                due.push(beat.clone());
            }
        }
        due
    }

    /// The cluster has judged a beat that was taken.
    pub fn judged(&mut self, beat: &Beat, verdict: &Verdict) {
        let Some(entry) = self.entries.get_mut(beat) else { return };
        entry.lease = match verdict {
            Ok(answer) => Lease::Answer(answer.clone()),
            Err(_) => Lease::Refused,
        };
        for waiter in entry.told.take().unwrap_or_default() {
            // Who was answered from the lease does not listen any more.
            let _ = waiter.send(verdict.clone());
        }
    }

    /// A beat that was taken got no verdict: it is due again.
    pub fn not_judged(&mut self, beat: &Beat) {
        let Some(entry) = self.entries.get_mut(beat) else { return };
        if let Some(told) = entry.told.take() {
            entry.waiting.extend(told);
            entry.is_due = true;
        }
    }

    /// How a beat stands that the cluster has taken last.
    #[must_use]
    pub fn taken(&self, beat: &Beat) -> Option<Taken> {
        self.entries.get(beat).and_then(Entry::taken)
    }

    /// The beats that the cluster has taken last, of those that clients have made within `age`; in an order that is the same
    /// as long as they are.
    #[must_use]
    pub fn taken_of_late(&self, age: Duration) -> Vec<(Beat, Taken)> {
        let of_late = self.entries.iter().filter(|(_, entry)| entry.last_made.elapsed() < age);
        let taken = of_late.filter_map(|(beat, entry)| Some((beat.clone(), entry.taken()?)));
        let mut taken: Vec<_> = taken.collect();
        taken.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        taken
    }

    /// What a beat can be answered without the cluster.
    #[must_use]
    pub fn lease(&self, beat: &Beat) -> Lease {
        self.entries.get(beat).map_or(Lease::None, |entry| entry.lease.clone())
    }

    /// Forgets beats that nobody has made for `age`, unless they are still to be told.
    pub fn forget_older(&mut self, age: Duration) {
        self.entries
            .retain(|_, entry| entry.is_due || entry.told.is_some() || entry.last_made.elapsed() < age);
    }
}

impl Entry {
    fn taken(&self) -> Option<Taken> {
        match &self.lease {
            Lease::Answer(answer) => Some(Taken { given: self.given, answer: answer.clone() }),
            Lease::None | Lease::Refused => None,
        }
    }

    /// Whether the cluster has taken the same one last.
    fn is_taken(&self) -> bool {
        matches!(self.lease, Lease::Answer(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(task: u8) -> Beat {
        Beat { path: "/Heartbeat".into(), message: Bytes::copy_from_slice(&[task]) }
    }

    /// One of many.
    fn made_up(number: usize) -> Beat {
        let message = Bytes::copy_from_slice(&number.to_le_bytes());
        Beat { path: "/Heartbeat".into(), message }
    }

    fn ok() -> Verdict {
        Ok(Bytes::from_static(b"ok"))
    }

    #[tokio::test]
    async fn a_verdict_answers_who_was_told_of_and_leaves_a_lease() {
        let mut ledger = Ledger::default();
        let mut first = ledger.join(&beat(1), None).expect("a place");
        assert!(ledger.has_due());
        assert_eq!(ledger.take_due(), [beat(1)]);
        let mut second = ledger.join(&beat(1), None).expect("a place");
        assert!(!ledger.has_due() && ledger.take_due().is_empty(), "it is being told");

        ledger.judged(&beat(1), &ok());
        assert_eq!(first.try_recv().expect("answered").expect("well"), "ok");
        assert!(second.try_recv().is_err(), "this one was made after the other was told");
        assert_eq!(ledger.lease(&beat(1)), Lease::Answer(Bytes::from_static(b"ok")));
        assert_eq!(ledger.take_due(), [beat(1)]);
        ledger.judged(&beat(1), &ok());
        assert_eq!(second.try_recv().expect("answered").expect("well"), "ok");
    }

    #[tokio::test]
    async fn a_batch_is_bounded_and_the_rest_stays_due() {
        let mut ledger = Ledger::default();
        let verdicts: Vec<_> = (0..=BATCH_MAX).map(|task| ledger.join(&made_up(task), None)).collect();
        assert_eq!(ledger.take_due().len(), BATCH_MAX);
        assert!(ledger.has_due());
        assert_eq!(ledger.take_due().len(), 1);
        drop(verdicts);
    }

    #[tokio::test]
    async fn an_error_ends_the_lease() {
        let mut ledger = Ledger::default();
        let _first = ledger.join(&beat(1), None);
        ledger.take_due();
        ledger.judged(&beat(1), &ok());
        let mut next = ledger.join(&beat(1), None).expect("a place");
        ledger.take_due();
        ledger.judged(&beat(1), &Err(Status::aborted("in error")));
        assert_eq!(next.try_recv().expect("answered").expect_err("in error").code(), tonic::Code::Aborted);
        assert_eq!(ledger.lease(&beat(1)), Lease::Refused);
        assert_eq!(ledger.lease(&beat(2)), Lease::None);
    }

    #[tokio::test]
    async fn beats_that_nobody_waits_for_any_more_are_told_once() {
        let mut ledger = Ledger::default();
        for _ in 0..100 {
            drop(ledger.join(&beat(1), None));
        }
        assert_eq!(ledger.entries[&beat(1)].waiting.len(), 1, "the closed ones are gone");
        assert_eq!(ledger.take_due(), [beat(1)]);
        ledger.not_judged(&beat(1));
        assert_eq!(ledger.take_due(), [beat(1)], "no verdict: due again");
        ledger.judged(&beat(1), &ok());
        assert!(ledger.take_due().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_clients_are_forgotten_but_not_what_is_to_be_told() {
        let age = Duration::from_secs(60);
        let mut ledger = Ledger::default();
        drop((ledger.join(&beat(1), None), ledger.join(&beat(2), None)));
        ledger.take_due();
        ledger.judged(&beat(1), &ok());
        ledger.not_judged(&beat(2));
        tokio::time::advance(age).await;
        ledger.forget_older(age);
        assert_eq!(ledger.entries.keys().collect::<Vec<_>>(), [&beat(2)]);
    }

    #[tokio::test]
    async fn who_makes_beats_up_takes_no_place_and_no_turn_of_those_that_the_cluster_has_taken() {
        let mut ledger = Ledger::default();
        let _verdict = ledger.join(&beat(1), None);
        ledger.take_due();
        ledger.judged(&beat(1), &ok());
        let mut first = ledger.join(&made_up(0), None).expect("a place");
        for number in 1..=BEATS_MAX {
            assert!(ledger.join(&made_up(number), None).is_some(), "beside one that was taken there is room");
            assert!(ledger.entries.len() <= BEATS_MAX);
        }
        assert_eq!(first.try_recv().expect_err("given up"), oneshot::error::TryRecvError::Closed);
        assert_eq!(ledger.lease(&beat(1)), Lease::Answer(Bytes::from_static(b"ok")));
        for number in 0..BATCH_MAX {
            drop(ledger.join(&made_up(number), None));
        }
        let mut again = ledger.join(&beat(1), None).expect("it has its place");
        let told = ledger.take_due();
        assert_eq!((told.len(), &told[0]), (BATCH_MAX, &beat(1)));
        ledger.judged(&beat(1), &ok());
        assert!(again.try_recv().expect("answered").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_of_late_is_told_in_one_order() {
        let (age, mut ledger) = (Duration::from_secs(10), Ledger::default());
        let given = Some(Duration::from_secs(5));
        drop(ledger.join(&beat(9), given));
        ledger.take_due();
        ledger.judged(&beat(9), &ok());
        tokio::time::advance(age).await;
        for task in [3, 1, 2, 4] {
            drop(ledger.join(&beat(task), given));
        }
        ledger.take_due();
        for task in [2, 3, 1] {
            ledger.judged(&beat(task), &ok());
        }
        ledger.judged(&beat(4), &Err(Status::aborted("in error")));
        let taken = ledger.taken_of_late(age);
        assert_eq!(taken.iter().map(|(beat, _)| beat).collect::<Vec<_>>(), [&beat(1), &beat(2), &beat(3)]);
        let answer = Bytes::from_static(b"ok");
        assert!(taken.iter().all(|(_, taken)| *taken == Taken { given, answer: answer.clone() }));
        assert_eq!(ledger.taken(&beat(4)), None, "it was refused");
        assert!(ledger.taken(&beat(9)).is_some(), "it is known, however long ago it was made");
    }

    #[tokio::test]
    async fn there_are_as_many_beats_as_there_may_be() {
        let mut ledger = Ledger::default();
        for number in 0..BEATS_MAX {
            drop(ledger.join(&made_up(number), None));
            if number % BATCH_MAX == BATCH_MAX - 1 {
                ledger.take_due().iter().for_each(|beat| ledger.judged(beat, &ok()));
            }
        }
        assert!(ledger.join(&made_up(BEATS_MAX), None).is_none());
        assert!(ledger.join(&made_up(7), None).is_some(), "one that is there");
    }
}
