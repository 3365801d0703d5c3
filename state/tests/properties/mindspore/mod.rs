//! What holds of MindSpore's clusters for every sequence of commands.

mod generate;
mod laws;

use proptest::prelude::*;
use tripod_state::ids::{DurationMs, JobId, NodeId, ServiceIncarnation, SessionId};
use tripod_state::job::{Group, Spec};
use tripod_state::session::Owner;
use tripod_state::snapshot::Record;
use tripod_state::{Command, Effect, Scope, State, job, level, session};

use super::{Replica, stamp};
use generate::{Step, steps};
use laws::Laws;

const SCOPE: Scope = Scope { job: JobId(2), service: None };

/// At the level of the clusters, with a job of one worker and two servers.
fn started() -> Replica {
    let mut replica = Replica::default();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    replica.apply(None, Command::Level(raise));
    let group = |name: &str, tasks| Group { name: name.to_owned(), tasks };
    let spec = Spec {
        register_timeout_ms: DurationMs(30_000),
        groups: vec![group("worker", 1), group("server", 2)],
        ..Spec::of_tasks(3)
    };
    let create = job::Command::Create { name: "m".to_owned(), spec, service: ServiceIncarnation(1) };
    replica.apply(None, Command::Job(create)).reply.expect("the job can be created");
    replica
}

/// All records but the first, which tells the time.
fn kept(state: &State) -> Vec<Record> {
    state.records().skip(1).collect()
}

/// Runs the steps and tells what does not hold.
fn broken_law(steps: &[Step]) -> Option<String> {
    let mut replica = started();
    let mut laws = Laws::default();
    for step in steps {
        replica.now += step.after_ms();
        for command in step.commands(&replica.state) {
            let before = replica.state.clone();
            let outcome = replica.apply(None, Command::Mindspore(command.clone()));
            if let Err(broken) = laws.check(&before, &command, &outcome.reply, &replica.state) {
                return Some(format!("{broken} after {command:?}: {:?}", outcome.reply));
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// No rank twice, none that changes within a generation, generations that only rise, every event in its order to
    /// everybody, and an end that everybody is told of.
    #[test]
    fn clusters_keep_their_laws(steps in steps(160)) {
        prop_assert_eq!(broken_law(&steps), None);
    }

    #[test]
    fn a_snapshot_of_clusters_can_stand_for_any_prefix(steps in steps(100), cut in 0_usize..100) {
        let (mut whole, mut resumed) = (started(), started());
        for (number, step) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
                prop_assert!(resumed.state == whole.state);
            }
            whole.now += step.after_ms();
            resumed.now += step.after_ms();
            for command in step.commands(&whole.state) {
                let command = Command::Mindspore(command);
                prop_assert_eq!(whole.apply(None, command.clone()), resumed.apply(None, command));
                prop_assert_eq!(whole.state.bytes(), whole.state.recounted_bytes());
            }
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.through_a_snapshot().state == resumed.state);
    }

    /// What is refused changes nothing, and what changes something is told.
    #[test]
    fn clusters_change_neither_in_silence_nor_by_a_refusal(steps in steps(100)) {
        let mut replica = started();
        for step in &steps {
            replica.now += step.after_ms();
            for command in step.commands(&replica.state) {
                let before = kept(&replica.state);
                let outcome = replica.apply(None, Command::Mindspore(command.clone()));
                let is_told = outcome.effects.iter().any(|effect| matches!(effect, Effect::DomainChanged { .. }));
                let is_same = kept(&replica.state) == before;
                prop_assert!(is_told || is_same, "{:?}", command);
                prop_assert!(outcome.reply.is_ok() || (is_same && !is_told), "{:?}", command);
            }
        }
    }

    /// A stamped command that comes again has the first one's reply and changes nothing.
    #[test]
    fn commands_about_clusters_take_effect_once(steps in steps(60)) {
        let mut replica = started();
        let id = SessionId::of_node(7);
        let open = session::Command::OpenFor { id, owner: Owner::Node(NodeId(1)) };
        replica.apply(None, Command::Session(open)).reply.expect("a node opens its session");
        let mut sequence = 0;
        for step in &steps {
            replica.now += step.after_ms();
            for command in step.commands(&replica.state) {
                sequence += 1;
                let stamp = stamp(id, sequence);
                let first = replica.apply(Some(stamp), Command::Mindspore(command.clone()));
                let before = replica.state.clone();
                let again = replica.apply(Some(stamp), Command::Mindspore(command));
                prop_assert_eq!(first.reply, again.reply);
                prop_assert!(again.effects.is_empty() && replica.state == before);
            }
        }
    }
}

/// The laws are worth something only if the steps reach the interesting places.
#[test]
fn the_steps_reach_every_state_of_clusters() {
    use std::collections::BTreeSet;

    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..400 {
        let mut replica = started();
        for step in &steps(160).new_tree(&mut runner).expect("nothing is filtered").current() {
            replica.now += step.after_ms();
            for command in step.commands(&replica.state) {
                let reply = format!("{:?}", replica.apply(None, Command::Mindspore(command)).reply);
                let name = reply.split([' ', '{']).next().unwrap_or("").to_owned();
                seen.insert(name.trim_end_matches(')').to_owned());
            }
            seen.insert(format!("{:?}", replica.state.cluster(SCOPE).expect("the job is there").state));
            seen.insert(format!(
                "topology {:?}",
                replica.state.topology(SCOPE).expect("the job is there").state
            ));
        }
    }
    for wanted in [
        "Starting",
        "Ready",
        "Exit",
        "NodeTimeout",
        "ScaleOut",
        "ScaleIn",
        "NewInstance",
        "ScaleOutRollback",
        "topology Initializing",
        "topology Initialized",
        "topology Failed",
        "topology Finished",
        "Ok(Mindspore(Joined",
        "Ok(Mindspore(Accepted",
        "Ok(Mindspore(Scaling",
        "Ok(Mindspore(Registered",
        "Err(Mindspore(Full",
        "Err(Mindspore(NodeLeft",
        "Err(Mindspore(Replaced",
        "Err(Mindspore(Ending",
        "Err(Mindspore(NotReady",
        "Err(Mindspore(NotAbortable",
    ] {
        assert!(seen.contains(wanted), "{wanted} was never seen, only {seen:?}");
    }
}

/// What breaks a law on purpose is noticed.
#[cfg(feature = "planted")]
#[test]
fn planted_bugs_of_clusters_are_noticed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use tripod_state::planted::{Bug, plant};

    for (bug, told) in [(Bug::RankTwice, "rank"), (Bug::EventLost, "event")] {
        plant(Some(bug));
        let mut runner = TestRunner::deterministic();
        let mut tries =
            (0..400).map(|_| steps(160).new_tree(&mut runner).expect("nothing is filtered").current());
        let broken = tries.find_map(|steps| broken_law(&steps));
        plant(None);
        assert!(broken.as_ref().is_some_and(|law| law.contains(told)), "{}: {broken:?}", bug.name());
    }
}
