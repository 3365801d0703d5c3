//! The feature level: what is refused below it, what keeps it from being lowered, and what an older build reads.

use tripod_state::ids::{FeatureLevel, JobId, JobName, NodeId, Sequence, SessionId};
use tripod_state::level::{Command as Level, FIRST, NEWEST, Refusal};
use tripod_state::limits::JOB_NOTE_BYTES_MAX;
use tripod_state::member::Listed;
use tripod_state::snapshot::Record;
use tripod_state::{Answer, Command, Fault, Reply, Scope, Stamp, State, job, ray, session};

use crate::support::Machine;

/// With job `w`, and members 1 and 2.
fn founded() -> Machine {
    let mut machine = Machine::default();
    let listed = |node| Listed { node: NodeId(node), peer: format!("h:{node}"), voter: true };
    machine.state.follow_members(&[listed(1), listed(2)]);
    machine.create("w", 1).expect("the name is free");
    machine
}

impl Machine {
    fn level(&mut self, command: Level) -> Reply {
        self.apply(Command::Level(command))
    }

    fn raise(&mut self, heard: &[u64]) -> Reply {
        self.level(Level::Raise { to: NEWEST, heard: heard.iter().copied().map(NodeId).collect() })
    }

    fn pin(&mut self, level: FeatureLevel) -> Reply {
        self.level(Level::Pin { level, by: "ops".to_owned() })
    }
}

fn note(text: &str) -> Command {
    Command::Job(job::Command::Note { name: "w".to_owned(), note: text.to_owned() })
}

fn records(state: &State) -> Vec<Record> {
    state.records().collect()
}

#[test]
fn a_new_state_is_at_the_first_level_and_refuses_what_needs_more_without_a_trace() {
    let mut machine = founded();
    let before = machine.state.clone();
    let refusal = Refusal::TooLow { command: "job/note".to_owned(), needs: FeatureLevel(2), level: FIRST };
    assert_eq!(machine.apply(note("mine")), Err(Fault::Level(refusal)));
    assert_eq!(machine.state, before);
}

#[test]
fn a_state_of_level_2_refuses_schedulers_without_a_trace() {
    let mut machine = founded();
    let two = FeatureLevel(2);
    let heard = [1, 2].map(NodeId).to_vec();
    machine.level(Level::Raise { to: two, heard }).expect("both were heard");
    let (before, digest) = (records(&machine.state), machine.state.digest());
    let store = || ray::Request::RegisterStore { address: "10.0.0.1:1".to_owned() };
    for (name, request) in
        [("ray/register-store", store()), ("ray/batch", ray::Request::Batch(vec![store()]))]
    {
        let (scope, origin) = (Scope { job: JobId(1), service: None }, ray::Origin::default());
        let refused = machine.apply(Command::Ray(ray::Command::Ask { scope, origin, request }));
        let refusal = Refusal::TooLow { command: name.to_owned(), needs: FeatureLevel(3), level: two };
        assert_eq!(refused, Err(Fault::Level(refusal)));
    }
    assert_eq!((records(&machine.state), machine.state.digest()), (before, digest));
}

/// What a session remembers is in the snapshot, and a build of the level in force must be able to read that.
#[test]
fn no_session_remembers_that_something_came_too_early() {
    let mut machine = founded();
    let Ok(Answer::Session(session)) = machine.apply(Command::Session(session::Command::Open)) else {
        panic!("a session");
    };
    let (before, stamp) = (records(&machine.state), stamped(session));
    for command in [note("mine"), Command::Retried(Box::new(note("mine")))] {
        let refused = machine.apply_stamped(Some(stamp), command);
        assert!(matches!(refused, Err(Fault::Level(Refusal::TooLow { .. }))), "{refused:?}");
    }
    let raise = Command::Level(Level::Raise { to: NEWEST, heard: vec![] });
    let refused = machine.apply_stamped(Some(stamp), raise);
    assert_eq!(refused, Err(Fault::Level(Refusal::NotHeard { node: NodeId(1) })));
    assert_eq!(records(&machine.state), before);
    machine.raise(&[1, 2]).expect("both were heard");
    assert_eq!(
        machine.apply_stamped(Some(stamp), note("mine")),
        Ok(Answer::Done),
        "the number is still free"
    );
}

fn stamped(session: SessionId) -> Stamp {
    Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) }
}

#[test]
fn the_level_rises_only_when_every_node_with_an_id_was_heard() {
    let mut machine = founded();
    assert_eq!(machine.raise(&[1]), Err(Fault::Level(Refusal::NotHeard { node: NodeId(2) })));
    assert_eq!(machine.state.level(), FIRST);
    assert_eq!(machine.raise(&[1, 2, 7]), Ok(Answer::Done));
    assert_eq!(machine.state.level(), NEWEST);
    let again = machine.raise(&[1, 2]);
    assert_eq!(again, Err(Fault::Level(Refusal::NotAbove { asked: NEWEST, level: NEWEST })));
}

#[test]
fn a_note_is_kept_with_the_job_and_goes_with_it() {
    let mut machine = founded();
    machine.raise(&[1, 2]).expect("both were heard");
    machine.apply(note("team blue")).expect("the level allows it");
    assert_eq!(machine.state.job_note(JobId(1)), Some("team blue"));
    let too_long = machine.apply(note(&"x".repeat(JOB_NOTE_BYTES_MAX + 1)));
    assert!(matches!(too_long, Err(Fault::LimitExceeded { .. })), "{too_long:?}");
    let unknown = Command::Job(job::Command::Note { name: "nobody".to_owned(), note: String::new() });
    assert!(matches!(machine.apply(unknown), Err(Fault::JobUnknown { .. })));
    machine.apply(Command::Job(job::Command::Delete { name: "w".to_owned() })).expect("it is there");
    machine.pin(FIRST).expect("no note is left");
}

#[test]
fn what_needs_the_level_keeps_it_up_and_is_named() {
    let mut machine = founded();
    machine.raise(&[1, 2]).expect("both were heard");
    machine.apply(note("team blue")).expect("the level allows it");
    let refusal = Refusal::Notes { needs: FeatureLevel(2), count: 1, jobs: vec![JobName::from("w")] };
    assert_eq!(machine.pin(FIRST), Err(Fault::Level(refusal)));
    assert_eq!(machine.pin(NEWEST), Ok(Answer::Done), "that lowers nothing");
    machine.apply(note("")).expect("it may go");
    assert_eq!(machine.pin(FIRST), Ok(Answer::Done));
    assert_eq!(machine.state.level(), FIRST);
    for asked in [FeatureLevel(0), NEWEST] {
        assert_eq!(machine.pin(asked), Err(Fault::Level(Refusal::NoPin { asked, level: FIRST })));
    }
}

/// A node that goes back must find nothing that it does not know, and agree with those that do not.
#[test]
fn a_state_that_was_lowered_is_that_of_a_build_without_levels() {
    let mut machine = founded();
    let (before, digest) = (records(&machine.state), machine.state.digest());
    machine.raise(&[1, 2]).expect("both were heard");
    assert_ne!(machine.state.digest(), digest);
    machine.apply(note("team blue")).expect("the level allows it");
    assert_ne!(records(&machine.state), before);
    machine.apply(note("")).expect("it may go");
    machine.pin(FIRST).expect("nothing keeps it up");
    assert_eq!((records(&machine.state), machine.state.digest()), (before, digest));
}

#[test]
fn level_and_notes_come_back_from_a_snapshot_and_stay_in_a_restored_cluster() {
    let mut machine = founded();
    machine.raise(&[1, 2]).expect("both were heard");
    machine.apply(note("team blue")).expect("the level allows it");
    let back = State::from_records(machine.state.records()).expect("it is whole");
    assert_eq!((&back, back.digest()), (&machine.state, machine.state.digest()));
    let restored = back.restored("other", tripod_state::restore::Jobs::Ended);
    assert_eq!((restored.level(), restored.job_note(JobId(1))), (NEWEST, Some("team blue")));
    let again = State::from_records(restored.records()).expect("it is whole");
    assert_eq!(again, restored);
}
