//! What holds for every sequence of commands.

mod events;
mod generate;
mod identities;
mod mars;
mod mindspore;
mod scheduler;
mod scheduler_steps;
mod tokens;

use proptest::prelude::*;
use tripod_state::ids::{LogIndex, SessionId, Term, TimeMs};
use tripod_state::runtime::Refusal;
use tripod_state::state::Outcome;
use tripod_state::{
    Answer, ApplyContext, BarrierFault, Command, Effect, Envelope, Fault, Scope, Stamp, State, Ticket, Topic,
    level, need, session,
};

use generate::{Step, prologue, steps};

/// A state machine with its place in the log.
#[derive(Clone, Default)]
struct Replica {
    state: State,
    index: u64,
    now: u64,
}

impl Replica {
    /// With two jobs and a session, so that random commands meet something.
    fn started() -> Self {
        let mut replica = Self::default();
        for command in prologue() {
            replica.apply(None, command);
        }
        replica
    }

    fn apply(&mut self, stamp: Option<Stamp>, command: Command) -> Outcome {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(self.now) };
        let asked = command.clone();
        let outcome = self.state.apply(&context, Envelope { stamp, command });
        if let (None, Ok(answer)) = (stamp, &outcome.reply) {
            assert!(asked.fits(answer), "{asked:?} is not answered with {answer:?}");
        }
        outcome
    }

    fn step(&mut self, step: &Step) -> Outcome {
        self.now += step.after_ms;
        self.apply(step.stamp, step.command.clone())
    }

    fn through_a_snapshot(&self) -> Self {
        let records: Vec<_> = self.state.records().collect();
        let state = State::from_records(records.into_iter()).expect("a state's own records are well formed");
        Self { state, ..*self }
    }
}

/// Refusals that must leave everything as it was.
fn changes_nothing(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::JobUnknown { .. }
            | Fault::ServiceMismatch { .. }
            | Fault::TaskUnknown { .. }
            | Fault::AlreadyDisconnected { .. }
            | Fault::ReporterNotConnected
            | Fault::ReportWithoutCode
            | Fault::KeyExists { .. }
            | Fault::NotAnInteger { .. }
            | Fault::IncrementOverflow { .. }
            | Fault::VersionMismatch { .. }
            | Fault::NotInAliveSet { .. }
            | Fault::JobExists { .. }
            | Fault::JobNameInvalid { .. }
            | Fault::JobSpecInvalid { .. }
            | Fault::LimitExceeded { .. }
            | Fault::Member(_)
            | Fault::Level(_)
            | Fault::Runtime(
                Refusal::NotInitializing
                    | Refusal::NotRunning { .. }
                    | Refusal::TaskUnknown { .. }
                    | Refusal::Replaced { .. }
                    | Refusal::Lost { .. }
                    | Refusal::BarrierUsed
                    | Refusal::BarrierSpoiled
            )
            | Fault::Barrier {
                fault: BarrierFault::CancelOfOtherInstance { .. } | BarrierFault::CancelAfterEnd { .. },
                ..
            }
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Replay of a prefix, a snapshot, and the rest: the same as replay of all. The snapshot derives
    /// every count and index again, so this also proves that apply keeps them right.
    #[test]
    fn a_snapshot_can_stand_for_any_prefix(steps in steps(120), cut in 0_usize..120) {
        let mut whole = Replica::started();
        let mut resumed = Replica::started();
        for (number, step) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
                prop_assert_eq!(&resumed.state, &whole.state);
            }
            prop_assert_eq!(whole.step(step), resumed.step(step));
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert_eq!(&whole.through_a_snapshot().state, &whole.state);
        prop_assert!(whole.state == resumed.state);
    }

    /// What the state says that it takes is what all of its elements take, after every command.
    #[test]
    fn bytes_are_those_of_what_is_there(steps in steps(120)) {
        let mut replica = Replica::started();
        for step in &steps {
            replica.step(step);
            prop_assert_eq!(replica.state.bytes(), replica.state.recounted_bytes(), "{:?}", step);
        }
        prop_assert_eq!(replica.through_a_snapshot().state.bytes(), replica.state.bytes());
    }

    /// Who leads may count with it before it has looked at the state.
    #[test]
    fn no_command_needs_more_memory_than_it_can_need_in_any_state(steps in steps(120)) {
        let mut replica = Replica::started();
        for step in &steps {
            let envelope = Envelope { stamp: None, command: step.command.clone() };
            if let Some(most) = need::at_most(&step.command, 100) {
                prop_assert!(replica.state.need(&envelope, 100).bytes <= most, "{:?}", step);
            }
            replica.step(step);
        }
    }

    /// Two replicas that apply the same log agree at every index, and a fork does not feel what
    /// happens to the original.
    #[test]
    fn replicas_agree_and_forks_stand_still(steps in steps(60)) {
        let (mut one, mut two) = (Replica::started(), Replica::started());
        let fork = one.state.clone();
        let digest = fork.digest();
        for step in &steps {
            prop_assert_eq!(one.step(step), two.step(step));
            prop_assert_eq!(one.state.digest(), two.state.digest());
        }
        prop_assert_eq!(fork.digest(), digest);
    }

    /// A stamped command that comes again, at once or later, has the first one's reply, no effect,
    /// and changes nothing.
    #[test]
    fn duplicates_change_nothing(steps in steps(60)) {
        let mut replica = Replica::started();
        let opened = replica.apply(None, Command::Session(session::Command::Open));
        let Ok(Answer::Session(session)) = opened.reply else { panic!("{opened:?}") };
        let mut sent: Vec<(Stamp, Outcome, Command)> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            // What comes too early for the feature level is refused before any session is looked at.
            if matches!(step.command, Command::Session(_)) || step.command.needs() > level::FIRST {
                continue;
            }
            let stamp = stamp(session, number as u64 + 1);
            replica.now += step.after_ms;
            let first = replica.apply(Some(stamp), step.command.clone());
            sent.push((stamp, first, step.command.clone()));
            let before = replica.state.clone();
            let (stamp, first, command) = &sent[sent.len() / 2];
            let again = replica.apply(Some(*stamp), command.clone());
            prop_assert_eq!(&again.reply, &first.reply);
            prop_assert!(again.effects.is_empty());
            prop_assert!(replica.state == before);
        }
    }

    /// A plain refusal leaves the state as it was, limits included.
    #[test]
    fn refusals_change_nothing(steps in steps(120)) {
        let mut replica = Replica::started();
        for step in &steps {
            let before = replica.state.clone();
            let outcome = replica.apply(None, step.command.clone());
            if outcome.reply.as_ref().err().is_some_and(changes_nothing) {
                prop_assert!(replica.state == before, "{:?} {:?}", step.command, outcome);
                prop_assert_eq!(&outcome.effects, &[]);
            }
        }
    }

    /// Whenever a wait ends, an effect wakes it; and who looks late is told what the others were
    /// told, or that it called again.
    #[test]
    fn waits_are_woken_and_their_outcomes_stay(steps in steps(120)) {
        let mut replica = Replica::started();
        let mut waiting: Vec<Ticket> = Vec::new();
        let mut ended: Vec<(Ticket, Fault)> = Vec::new();
        for step in &steps {
            let outcome = replica.step(step);
            let topics: Vec<Topic> = outcome.effects.iter().filter_map(Effect::topic).collect();
            let mut still = Vec::new();
            for ticket in std::mem::take(&mut waiting) {
                match replica.state.resolve(&ticket) {
                    None => still.push(ticket),
                    Some(reply) => {
                        let woken = topics.contains(&ticket.topic()) || topics.contains(&Topic::Jobs);
                        prop_assert!(woken, "{:?} ended unheard with {:?}", ticket, reply);
                        if let Err(fault) = reply {
                            ended.push((ticket, fault));
                        }
                    }
                }
            }
            waiting = still;
            if let Ok(Answer::Waiting(ticket)) = outcome.reply
                && replica.state.resolve(&ticket).is_none()
            {
                waiting.push(ticket);
            }
            for (ticket, first) in &ended {
                let now = replica.state.resolve(ticket);
                prop_assert!(
                    now.as_ref().is_some_and(|reply| late(reply.as_ref().err(), first)),
                    "{:?} was {:?} and is {:?}", ticket, first, now
                );
            }
        }
    }

    /// Whoever waits for others is shown among those who have come, and who has waited in vain is
    /// remembered with the reason.
    #[test]
    fn who_waits_for_whom_is_shown(steps in steps(120)) {
        let mut replica = Replica::started();
        let mut waiting: Vec<Ticket> = Vec::new();
        for step in &steps {
            let outcome = replica.step(step);
            let (still, ended) = std::mem::take(&mut waiting)
                .into_iter()
                .partition(|ticket| replica.state.resolve(ticket).is_none());
            waiting = still;
            if let Ok(Answer::Waiting(ticket)) = outcome.reply
                && replica.state.resolve(&ticket).is_none()
            {
                waiting.push(ticket);
            }
            for ticket in &waiting {
                prop_assert!(is_shown(&replica.state, ticket, None), "{:?}", ticket);
            }
            for ticket in ended {
                let Some(Err(fault)) = replica.state.resolve(&ticket) else { continue };
                if ended_with_its_barrier(&fault) {
                    prop_assert!(is_shown(&replica.state, &ticket, Some(&fault)), "{:?} {:?}", ticket, fault);
                }
            }
        }
    }
}

/// Whether the waiting call's task is among those who have come to a barrier that is open, or failed so.
fn is_shown(state: &State, ticket: &Ticket, failure: Option<&Fault>) -> bool {
    let (Ticket::Register { job, task, .. }
    | Ticket::Barrier { job, task, .. }
    | Ticket::Shutdown { job, task, .. }
    | Ticket::Devices { job, task, .. }) = ticket
    else {
        return true;
    };
    let scope = Scope { job: *job, service: None };
    let reports = state.barriers(scope, usize::MAX).expect("a job that is waited for exists");
    reports.iter().any(|report| {
        let told = report.failure.as_ref().map(|failure| &failure.fault);
        told == failure && report.arrived.first.contains(task) && !report.missing.first.contains(task)
    })
}

/// Whether a call ended because its barrier failed for everybody who waited there.
fn ended_with_its_barrier(fault: &Fault) -> bool {
    let Fault::Barrier { fault, .. } = fault else { return false };
    matches!(
        fault,
        BarrierFault::TimedOut { .. } | BarrierFault::MemberLost { .. } | BarrierFault::Cancelled { .. }
    )
}

/// Whether a waiter that was first told `first` may be told `now`.
fn late(now: Option<&Fault>, first: &Fault) -> bool {
    let Some(now) = now else { return false };
    let superseded = |fault: &Fault| match fault {
        Fault::ArrivalReplaced { .. }
        | Fault::RegistrationReplaced
        | Fault::PollReplaced
        | Fault::ReplyForgotten
        | Fault::JobUnknown { .. }
        | Fault::Barrier { fault: BarrierFault::StaleArrival { .. }, .. } => true,
        Fault::ShutdownFailed { cause } => matches!(
            **cause,
            Fault::ArrivalReplaced { .. } | Fault::Barrier { fault: BarrierFault::StaleArrival { .. }, .. }
        ),
        _ => false,
    };
    now == first || superseded(now)
}

fn stamp(session: SessionId, sequence: u64) -> Stamp {
    Stamp {
        session,
        sequence: tripod_state::ids::Sequence(sequence),
        acknowledged_below: tripod_state::ids::Sequence(1),
    }
}

/// The properties above are worth something only if the commands reach the interesting places.
#[test]
fn the_generated_commands_reach_most_outcomes() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..600 {
        let mut replica = Replica::started();
        for step in &steps(120).new_tree(&mut runner).expect("nothing is filtered").current() {
            let reply = replica.step(step).reply;
            let text = format!("{reply:?}");
            let name = text.split([' ', '{']).next().unwrap_or("").to_owned();
            seen.insert(name);
            if let Err(Fault::Barrier { fault, .. }) = reply {
                seen.insert(format!("{fault:?}").split(' ').next().unwrap_or("").to_owned());
            }
        }
    }
    for wanted in [
        "Ok(Done)",
        "Ok(Waiting(Barrier",
        "Ok(Waiting(Register",
        "Ok(Waiting(Shutdown",
        "Ok(Waiting(Poll",
        "Ok(Waiting(Alive",
        "Ok(Waiting(Devices",
        "Ok(Registered",
        "Ok(BarrierPassed",
        "Ok(Waiting(Runtime",
        "Err(Runtime(NotInitializing))",
        "Err(Runtime(NotRunning",
        "Err(Runtime(TaskUnknown",
        "Err(Runtime(Replaced",
        "Err(Runtime(Lost",
        "Err(Runtime(BarrierUsed))",
        "Err(Runtime(BarrierSpoiled))",
        "Err(Runtime(TimedOut",
        "Err(RegisteredInError",
        "Err(Restarted",
        "Err(ShutdownFailed",
        "Err(AlreadyDisconnected",
        "Err(PollInError",
        "Err(LimitExceeded",
        "Err(KeyExists",
        "Err(ReplyForgotten)",
        "Err(SessionExpired)",
        "ConflictingTasks",
        "NotAMember",
        "CounterMismatch",
        "MemberInError",
        "TimedOut",
        "MemberLost",
        "CancelAfterEnd",
        "UnknownMember",
    ] {
        assert!(seen.contains(wanted), "{wanted} was never seen, only {seen:?}");
    }
}
