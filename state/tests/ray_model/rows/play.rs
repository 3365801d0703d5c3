//! Plays a scenario undisturbed, and then with a leader that is killed after each of its steps.

use std::collections::BTreeMap;

use tripod_state::ray::ids::{ExportId, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, TaskInfo, TaskState};

use crate::rows::peers::StoredObject;
use crate::rows::stage::{Blow, Stage, Trouble};

/// What can be seen when a scenario is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    counts: Vec<Option<u64>>,
    targets: Vec<Option<ObjectId>>,
    available: Vec<Option<Availability>>,
    tasks: Vec<(OperationId, TaskState, u32, Vec<String>)>,
    told: TaskInfo,
    imports: BTreeMap<WorkerId, Vec<ExportId>>,
    held: BTreeMap<StoreId, BTreeMap<ObjectId, StoredObject>>,
    idle: Vec<WorkerId>,
}

impl Outcome {
    fn of(stage: &Stage) -> Self {
        let ray = stage.machine.scheduler();
        let info = ray.info();
        let mut tasks: Vec<_> = ray
            .tasks(None, usize::MAX)
            .into_iter()
            .map(|task| (task.id, task.state, task.attempts, task.history))
            .collect();
        tasks.sort_by_key(|task| task.0);
        let ids = (info.base_object..).take(info.counts.len()).map(ObjectId);
        let mut idle = info.idle.clone();
        idle.sort_unstable();
        Self {
            available: ids.map(|id| ray.availability(id)).collect(),
            counts: info.counts,
            targets: info.targets,
            tasks,
            told: ray.task_info(),
            imports: stage
                .peers
                .processes
                .iter()
                .map(|(id, process)| (*id, process.imports.clone()))
                .collect(),
            held: stage.peers.stores.iter().map(|(id, shelf)| (*id, shelf.held.clone())).collect(),
            idle,
        }
    }
}

/// A scenario: what is there before it, which is made once and undisturbed, and its steps. What `play` asserts must
/// hold whenever the leader dies, and the outcome must be that of the undisturbed run.
pub(super) fn everywhere<C: Clone>(prepare: impl Fn(&mut Stage) -> C, play: impl Fn(&mut Stage, &C)) {
    at_every(1, prepare, play);
}

/// Like [`everywhere`], with the leader killed after every so manieth step: for long scenarios.
pub(super) fn at_every<C: Clone>(
    step: usize,
    prepare: impl Fn(&mut Stage) -> C,
    play: impl Fn(&mut Stage, &C),
) {
    let with = prepared(&prepare);
    let undisturbed = run(&with, Trouble::None, &play);
    let wanted = Outcome::of(&undisturbed);
    for trouble in troubles(undisturbed.steps, step) {
        let ended = run(&with, trouble, &play);
        let outcome = Outcome::of(&ended);
        if outcome != wanted {
            ended.broken(&format!("the outcome is {outcome:#?}\nand undisturbed it is {wanted:#?}"));
        }
        let once = matches!(trouble, Trouble::Kill { .. } | Trouble::LateCopies { .. });
        assert_eq!(ended.kills - undisturbed.kills >= 1, trouble != Trouble::Twice, "{trouble:?}");
        assert!(!once || ended.kills - undisturbed.kills == 1, "{trouble:?} happens once");
    }
}

/// Like [`everywhere`], of a scenario whose outcome may differ: what it asserts itself must hold.
pub(super) fn whatever_differs<C: Clone>(prepare: impl Fn(&mut Stage) -> C, play: impl Fn(&mut Stage, &C)) {
    let with = prepared(&prepare);
    let undisturbed = run(&with, Trouble::None, &play);
    for trouble in troubles(undisturbed.steps, 1) {
        run(&with, trouble, &play);
    }
}

fn prepared<C>(prepare: &impl Fn(&mut Stage) -> C) -> (Stage, C) {
    let mut stage = Stage::new();
    let cast = prepare(&mut stage);
    stage.steps = 0;
    (stage, cast)
}

fn run<C: Clone>((stage, cast): &(Stage, C), trouble: Trouble, play: &impl Fn(&mut Stage, &C)) -> Stage {
    let mut stage = stage.clone();
    stage.trouble = trouble;
    play(&mut stage, cast);
    stage.trouble = Trouble::None;
    stage
}

fn troubles(steps: u64, every: usize) -> Vec<Trouble> {
    assert!(steps > 0, "a scenario has steps");
    let mut troubles = vec![Trouble::Twice];
    troubles.extend(Blow::ALL.map(Trouble::KillAlways));
    for step in (1..=steps).step_by(every) {
        troubles.extend(Blow::ALL.map(|blow| Trouble::Kill { step, blow }));
        troubles.push(Trouble::LateCopies { step });
    }
    troubles
}
