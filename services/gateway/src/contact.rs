//! Whether this node is in contact with the rest of the cluster.
//!
//! A node that is cut off from the others still hears its clients, but nobody hears of them from it: after
//! their heartbeat timeout the leader on the other side gives them up. It cannot tell this from a cluster
//! without a quorum, in which nobody else could do more for them. So it only tells that contact is lost; what
//! is made of that must be good in both cases.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tripod_port::{Contact, ContactSwitch};
use tripod_raft::ProposeError;
use tripod_state::ids::LogIndex;

use crate::backend::Replica;

/// For this long nothing may be heard that was to be: some elections, and a quarter of the common heartbeat timeout of 10 s,
/// so that a client whose last heartbeat was half of that ago can be heard elsewhere in time.
const PATIENCE: Duration = Duration::from_millis(2500);
/// For this long no question may be answered by a node whose commands are: it may have applied nothing for so long.
const QUESTION_PATIENCE: Duration = Duration::from_secs(15);
/// After whatever was heard, before a question is asked.
const PAUSE: Duration = Duration::from_millis(500);
/// After a question that was answered, before the next one is asked in any case.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a question may take before it is asked anew, perhaps of another leader.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two looks at the time.
const TICK: Duration = Duration::from_millis(100);

/// Asks the cluster, for as long as anybody listens. Must be called within a tokio runtime.
pub(crate) fn keep(backend: Arc<dyn Replica>) -> Contact {
    let (contact, switch) = Contact::by_hand();
    tokio::spawn(async move {
        tokio::select! {
            () = ask_on(backend.as_ref(), &switch) => {}
            () = switch.unwatched() => {}
        }
    });
    contact
}

type Question<'a> = Pin<Box<dyn Future<Output = Option<Result<LogIndex, ProposeError>>> + Send + 'a>>;

fn ask(backend: &dyn Replica) -> Question<'_> {
    Box::pin(async { timeout(ANSWER_TIMEOUT, backend.read_barrier()).await.ok() })
}

/// How long nothing was heard, while this process ran.
struct Silence {
    /// Of anything.
    all: Duration,
    /// Of answers to questions.
    questions: Duration,
    looked: Instant,
    /// The contact that counts already.
    last_contact: Option<Instant>,
}

impl Silence {
    fn new() -> Self {
        Self { all: Duration::ZERO, questions: Duration::ZERO, looked: Instant::now(), last_contact: None }
    }

    /// Whether anything was heard since the last look.
    fn look(&mut self, last_contact: Option<Instant>) -> bool {
        // A process that was stopped heard nobody, which does not count.
        let passed = self.looked.elapsed().min(TICK * 2);
        self.looked = Instant::now();
        self.all += passed;
        self.questions += passed;
        let is_heard = last_contact > self.last_contact;
        if is_heard {
            self.last_contact = last_contact;
            self.all = Duration::ZERO;
        }
        is_heard
    }

    fn answered(&mut self) {
        (self.all, self.questions, self.looked) = (Duration::ZERO, Duration::ZERO, Instant::now());
    }

    fn is_lost(&self) -> bool {
        // Nothing was to be heard in the pause.
        self.all >= PAUSE + PATIENCE || self.questions >= QUESTION_PATIENCE
    }

    fn is_to_ask(&self) -> bool {
        self.all >= PAUSE || self.questions >= PAUSE_MAX
    }
}

/// Hears what this node is told when it has a quorum, and asks when it is told nothing. Returns when the node stops.
async fn ask_on(backend: &dyn Replica, switch: &ContactSwitch) {
    let mut question = Some(ask(backend));
    let mut silence = Silence::new();
    // What never was cannot be lost: a node that starts waits for the others.
    let mut was_heard = false;
    loop {
        let answer = match &mut question {
            Some(asked) => tokio::select! {
                biased;
                answer = asked => Some(answer),
                () = sleep(TICK) => None,
            },
            None => {
                sleep(TICK).await;
                None
            }
        };
        let mut is_heard = silence.look(backend.last_contact());
        match answer {
            None => {}
            Some(Some(Ok(_))) => {
                silence.answered();
                is_heard = true;
                question = None;
            }
            Some(Some(Err(ProposeError::Stopped(_)))) => return,
            Some(Some(Err(_)) | None) => {
                sleep(TICK).await;
                question = Some(ask(backend));
            }
        }
        if question.is_none() && silence.is_to_ask() {
            question = Some(ask(backend));
        }
        if silence.is_lost() {
            if was_heard && !switch.is_lost() {
                tracing::warn!("no contact with the cluster; clients are asked to go to other nodes");
                switch.lose();
            }
        } else if is_heard {
            if switch.is_lost() {
                tracing::info!("in contact with the cluster again");
            }
            switch.find();
            was_heard = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use parking_lot::Mutex;
    use tokio::sync::watch;
    use tripod_raft::{Applied, Leadership};
    use tripod_state::{Envelope, State};

    use super::*;
    use crate::backend::Future as Told;
    use crate::gateway::Gateway;

    /// A node that answers questions or not, and is told something or not.
    #[derive(Default)]
    struct Busy {
        answers: AtomicBool,
        last_contact: Mutex<Option<Instant>>,
    }

    impl Replica for Busy {
        fn read_barrier(&self) -> Told<Result<LogIndex, ProposeError>> {
            if self.answers.load(Ordering::SeqCst) {
                return Box::pin(std::future::ready(Ok(LogIndex(1))));
            }
            Box::pin(std::future::pending())
        }

        fn last_contact(&self) -> Option<Instant> {
            *self.last_contact.lock()
        }

        fn propose(&self, _: Envelope) -> Told<Result<Applied, ProposeError>> {
            unreachable!("contact changes nothing")
        }

        fn wait_applied(&self, _: LogIndex) -> Told<Result<(), ProposeError>> {
            unreachable!("contact waits for nothing")
        }

        fn read(&self, _: &mut dyn FnMut(&State)) {
            unreachable!("contact reads nothing")
        }

        fn applied_index(&self) -> LogIndex {
            LogIndex(1)
        }

        fn leadership(&self) -> watch::Receiver<Leadership> {
            unreachable!("contact does not ask who leads")
        }

        fn ask_leader(&self, _: Bytes) -> Told<Result<Bytes, ProposeError>> {
            unreachable!("contact asks no gateway")
        }
    }

    async fn heard(backend: &crate::MemoryBackend, contact: &mut Contact) -> Duration {
        backend.depose();
        let began = Instant::now();
        contact.lost().await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn contact_is_lost_after_a_while_and_once_and_found_at_once() {
        let (gateway, backend) = Gateway::in_memory();
        let mut contact = gateway.contact();
        sleep(PAUSE * 3).await;
        let silence = heard(&backend, &mut contact).await;
        assert!(silence >= PATIENCE && silence <= PATIENCE + PAUSE + TICK * 3, "{silence:?}");
        assert!(contact.is_lost());
        assert!(timeout(PATIENCE * 10, contact.lost()).await.is_err(), "it was lost once");

        backend.elect();
        let began = Instant::now();
        contact.found().await;
        assert!(began.elapsed() <= TICK * 3, "{:?}", began.elapsed());
        heard(&backend, &mut contact).await;
        assert!(contact.is_lost(), "another time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_election_is_no_loss_and_neither_is_what_never_was() {
        let (gateway, backend) = Gateway::in_memory();
        backend.depose();
        let mut contact = gateway.contact();
        sleep(PATIENCE * 4).await;
        assert!(!contact.is_lost(), "nobody was heard yet");
        backend.elect();
        sleep(PAUSE).await;
        backend.depose();
        sleep(PATIENCE - PAUSE).await;
        backend.elect();
        sleep(PATIENCE * 4).await;
        assert!(!contact.is_lost());
        assert!(timeout(Duration::ZERO, contact.lost()).await.is_err(), "contact was never lost");
    }

    #[tokio::test(start_paused = true)]
    async fn whose_commands_are_answered_has_contact_while_its_questions_wait() {
        let busy = Arc::new(Busy::default());
        let mut contact = keep(busy.clone());
        busy.answers.store(true, Ordering::SeqCst);
        sleep(PAUSE).await;
        busy.answers.store(false, Ordering::SeqCst);
        let began = Instant::now();
        while began.elapsed() < PATIENCE * 3 {
            *busy.last_contact.lock() = Some(Instant::now());
            sleep(PATIENCE / 2).await;
            assert!(!contact.is_lost());
        }
        let began = Instant::now();
        contact.lost().await;
        assert!(began.elapsed() <= PAUSE + PATIENCE, "{:?}", began.elapsed());
        *busy.last_contact.lock() = Some(Instant::now());
        timeout(PATIENCE, contact.found()).await.expect("it is told something again");
    }

    #[tokio::test(start_paused = true)]
    async fn who_applies_nothing_has_no_contact_whatever_it_is_told() {
        let busy = Arc::new(Busy::default());
        let mut contact = keep(busy.clone());
        busy.answers.store(true, Ordering::SeqCst);
        sleep(PAUSE).await;
        busy.answers.store(false, Ordering::SeqCst);
        let telling = async {
            loop {
                *busy.last_contact.lock() = Some(Instant::now());
                sleep(TICK).await;
            }
        };
        let began = Instant::now();
        tokio::select! {
            () = telling => {}
            () = contact.lost() => {}
        }
        assert!(began.elapsed() <= QUESTION_PATIENCE && began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_is_no_loss() {
        let (gateway, backend) = Gateway::in_memory();
        let mut contact = gateway.contact();
        sleep(PAUSE * 2).await;
        backend.depose();
        sleep(PAUSE * 2).await;
        tokio::time::advance(PATIENCE * 10).await;
        sleep(TICK).await;
        assert!(timeout(Duration::ZERO, contact.lost()).await.is_err(), "contact was never lost");
    }
}
