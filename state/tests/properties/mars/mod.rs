//! What holds of sessions and graphs for every sequence of commands.

mod generate;
mod laws;

use proptest::prelude::*;
use tripod_state::ids::{JobId, NodeId, ServiceIncarnation, SessionId};
use tripod_state::job::Spec;
use tripod_state::mars::GraphState;
use tripod_state::ray::ids::FunctionName;
use tripod_state::ray::{self, Origin, Registration, Role};
use tripod_state::session::Owner;
use tripod_state::snapshot::Record;
use tripod_state::{Command, Effect, Scope, State, job, level, mars, session};

use super::{Replica, stamp};
use generate::{Player, SESSIONS, Step, steps};
use laws::Laws;

const SCOPE: Scope = Scope { job: JobId(2), service: None };

/// At the level of sessions, with two stores and a worker at each.
fn started() -> Replica {
    let mut replica = Replica::default();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    replica.apply(None, Command::Level(raise));
    let (spec, service) = (Spec::of_tasks(1), ServiceIncarnation(1));
    let create = job::Command::Create { name: "m".to_owned(), spec, service };
    replica.apply(None, Command::Job(create)).reply.expect("the job can be created");
    for host in ["10.0.0.1", "10.0.0.2"] {
        ask(&mut replica, ray::Request::RegisterStore { address: format!("{host}:1") });
        let registration = Registration {
            host: host.to_owned(),
            store: format!("{host}:1"),
            role: Role::Worker,
            attributed: true,
            extended: true,
            slots: 2,
        };
        ask(&mut replica, ray::Request::RegisterWorker(registration));
    }
    for worker in replica.state.ray(SCOPE.job).expect("it has begun").workers() {
        let (worker, name) = (worker.id, FunctionName(mars::CHUNK_FUNCTION.into()));
        ask(&mut replica, ray::Request::RegisterFunction { worker, name, results: 1 });
        ask(&mut replica, ray::Request::Idle { worker, previous: None, run: None });
    }
    replica
}

fn ask(replica: &mut Replica, request: ray::Request) {
    let command = ray::Command::Ask { scope: SCOPE, origin: Origin::default(), request };
    replica.apply(None, Command::Ray(command)).reply.expect("it is legal");
}

/// All records but the first, which tells the time.
fn kept(state: &State) -> Vec<Record> {
    state.records().skip(1).collect()
}

/// Everything that can go on does, until nothing can.
fn drain(replica: &mut Replica) {
    for _ in 0..2_000 {
        let mut player = Player;
        let commands: Vec<Command> = [Step::Work { fails: false }, Step::Due]
            .iter()
            .flat_map(|step| player.commands(step, &replica.state))
            .collect();
        if commands.is_empty() {
            return;
        }
        for command in commands {
            replica.apply(None, command);
        }
    }
    panic!("it goes on for ever: {:?}", replica.state.mars_due(SCOPE.job, replica.state.now_ms()));
}

fn graphs(state: &State) -> Vec<mars::GraphView> {
    let sessions = SESSIONS.iter().filter_map(|session| state.mars_graphs(SCOPE, session, None).ok());
    sessions.flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happened, every graph that was committed comes to an end, and what nobody refers to is gone.
    #[test]
    fn every_graph_ends_and_nothing_is_left(steps in steps(80)) {
        let (mut replica, mut laws, mut player) = (started(), Laws::default(), Player);
        for step in &steps {
            replica.now += step.after_ms();
            for command in player.commands(step, &replica.state) {
                let outcome = replica.apply(None, command.clone());
                let broken = laws.check(&command, &outcome.reply, &replica.state);
                prop_assert_eq!(broken, Ok(()), "after {:?}: {:?}", command, outcome.reply);
            }
        }
        drain(&mut replica);
        for graph in graphs(&replica.state) {
            let over = graph.state.is_terminal() || graph.state == GraphState::Preparing;
            prop_assert!(over, "{:?}", graph);
        }
        for session in SESSIONS {
            let request = mars::Request::DeleteSession { session: session.to_owned(), if_exist: true };
            let command = mars::Command::Ask { scope: SCOPE, request_id: String::new(), request };
            replica.apply(None, Command::Mars(command)).reply.expect("it may not be there");
        }
        drain(&mut replica);
        let totals = replica.state.ray(SCOPE.job).expect("it has begun").totals();
        prop_assert_eq!((totals.objects_live, totals.queued, totals.running), (0, 0, 0));
        let mars = replica.state.mars_totals(SCOPE).expect("the job is there");
        prop_assert_eq!(mars::Totals { remembered: 0, ..mars }, mars::Totals::default());
    }

    #[test]
    fn a_snapshot_of_sessions_can_stand_for_any_prefix(steps in steps(60), cut in 0_usize..60) {
        let (mut whole, mut resumed) = (started(), started());
        let mut player = Player;
        for (number, step) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
                prop_assert!(resumed.state == whole.state);
            }
            whole.now += step.after_ms();
            resumed.now += step.after_ms();
            for command in player.commands(step, &whole.state) {
                prop_assert_eq!(whole.apply(None, command.clone()), resumed.apply(None, command));
                prop_assert_eq!(whole.state.bytes(), whole.state.recounted_bytes());
            }
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.through_a_snapshot().state == resumed.state);
    }

    /// What is refused changes nothing, and what changes something is told.
    #[test]
    fn sessions_change_neither_in_silence_nor_by_a_refusal(steps in steps(60)) {
        let (mut replica, mut player) = (started(), Player);
        for step in &steps {
            replica.now += step.after_ms();
            for command in player.commands(step, &replica.state) {
                let before = kept(&replica.state);
                let outcome = replica.apply(None, command.clone());
                let is_told = outcome.effects.iter().any(|effect| matches!(effect, Effect::DomainChanged { .. }));
                let is_same = kept(&replica.state) == before;
                prop_assert!(is_told || is_same, "{:?}", command);
                let is_of_sessions = matches!(command, Command::Mars(_));
                prop_assert!(!is_of_sessions || outcome.reply.is_ok() || (is_same && !is_told), "{:?}", command);
            }
        }
    }

    /// A request with an id that comes again is answered as before, and changes nothing; so is a stamped command.
    #[test]
    fn requests_take_effect_once(steps in steps(60)) {
        let (mut replica, mut player) = (started(), Player);
        let id = SessionId::of_node(7);
        let open = session::Command::OpenFor { id, owner: Owner::Node(NodeId(1)) };
        replica.apply(None, Command::Session(open)).reply.expect("a node opens its session");
        let mut number = 0;
        for step in &steps {
            replica.now += step.after_ms();
            for command in player.commands(step, &replica.state) {
                number += 1;
                let stamp = stamp(id, number);
                let command = match command {
                    Command::Mars(mars::Command::Ask { scope, request, .. }) => {
                        Command::Mars(mars::Command::Ask { scope, request_id: number.to_string(), request })
                    }
                    command => command,
                };
                let first = replica.apply(Some(stamp), command.clone());
                let before = replica.state.clone();
                let again = replica.apply(Some(stamp), command.clone());
                prop_assert_eq!(&first.reply, &again.reply);
                prop_assert!(again.effects.is_empty() && replica.state == before);
                if matches!(command, Command::Mars(mars::Command::Ask { .. })) && first.reply.is_ok() {
                    let again = replica.apply(None, command);
                    prop_assert_eq!(first.reply, again.reply);
                    prop_assert!(again.effects.is_empty() && replica.state == before);
                }
            }
        }
    }
}

/// The laws are worth something only if the steps reach the interesting places.
#[test]
fn the_steps_reach_every_end_of_graphs() {
    use std::collections::BTreeSet;

    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..1_500 {
        let (mut replica, mut player) = (started(), Player);
        for step in &steps(80).new_tree(&mut runner).expect("nothing is filtered").current() {
            replica.now += step.after_ms();
            for command in player.commands(step, &replica.state) {
                let reply = format!("{:?}", replica.apply(None, command).reply);
                let name = reply.split([' ', '{']).next().unwrap_or("").to_owned();
                seen.insert(name.trim_end_matches(')').to_owned());
            }
            for graph in graphs(&replica.state) {
                seen.insert(graph.state.word().to_owned());
                seen.extend(graph.error.map(|error| error.code));
            }
            for session in SESSIONS {
                let mutable = replica.state.mars_mutable(SCOPE, session, "m");
                seen.extend(mutable.map(|mutable| mutable.state.word().to_owned()));
            }
        }
    }
    for wanted in [
        "preparing",
        "running",
        "succeeded",
        "failed",
        "cancelling",
        "cancelled",
        "TIMEOUT",
        "EXCEPTION",
        "open",
        "being sealed",
        "sealed",
        "lost",
        "Ok(Mars(Freed",
        "Ok(Mars(Sealing",
        "Err(Mars(GraphExists",
        "Err(Mars(GraphRuns",
        "Err(Mars(ChunkGone",
        "Err(Mars(TileableUnknown",
        "Err(Mars(TooFewReferences",
        "Err(Mars(NotOpen",
        "Err(Mars(SessionExists",
        "Err(Mars(MutableDiffers",
    ] {
        assert!(seen.contains(wanted), "{wanted} was never seen, only {seen:?}");
    }
}
