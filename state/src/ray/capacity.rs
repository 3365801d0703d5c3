//! How many tasks a worker may have at a time.
//!
//! As many as its window, which widens with each report up to its slots. So a worker whose tasks take no time is never
//! out of work, and one whose tasks take long has few that wait for it. What waits for other tasks takes no room: a
//! worker that says that it could begin another one while it has some, or has told the end of one, may have one more
//! than it has, whatever its slots. It runs one task at a time, so all others wait, or have not begun. Else tasks that
//! wait for those which they submitted could take all slots of all workers, and wait for ever.

use crate::level::Rule;
use crate::ray::Ray;
use crate::ray::act::Act;
use crate::ray::ids::WorkerId;
use crate::ray::limits::HELD_MAX;
use crate::ray::peers::Worker;

impl Act<'_> {
    /// A worker told the end of a task.
    pub(crate) fn widen(&mut self, id: WorkerId) {
        let mut worker = self.ray.worker_mut(id);
        worker.window = worker.slots.min(worker.window.saturating_add(1));
    }

    /// The worker may have one more than it has: it waits within that, or has told the end of another one.
    pub(crate) fn make_room(&mut self, id: WorkerId) {
        let beside_waiting = self.follows(Rule::RoomBesideWaiting);
        let mut worker = self.ray.worker_mut(id);
        let more = one_more(&worker);
        worker.window = worker.slots.min(worker.window.max(more));
        // One of 2016 has a single task, and says that it is idle again when it does not know whether it was heard.
        let beside = beside_waiting && worker.extended && more > worker.slots;
        drop(worker);
        if beside {
            self.ray.beside.insert(id, more);
        } else {
            self.ray.beside.remove(&id);
        }
    }

    /// The worker gave some back: it has a long one, and asks for more when it wants more.
    pub(crate) fn narrow(&mut self, id: WorkerId) {
        self.ray.beside.remove(&id);
        self.ray.worker_mut(id).window = 1;
    }
}

impl Ray {
    /// How many tasks a worker may have now.
    pub(crate) fn capacity(&self, id: WorkerId, worker: &Worker) -> usize {
        self.beside.get(&id).map_or(0, |most| *most as usize).max(worker.own_capacity())
    }

    /// Whether a worker is in the list of idle ones.
    pub(crate) fn is_free(&self, id: WorkerId) -> bool {
        self.workers.get(&id).is_some_and(|worker| {
            worker.is_alive() && worker.accepting && worker.running.len() < self.capacity(id, worker)
        })
    }

    /// Workers whose slots are all taken may have one more, since it is not known what of that waits; whether there are
    /// such workers. The level has come at which they may.
    pub(crate) fn make_room_beside_waiting(&mut self) -> bool {
        let full = self.workers.iter().filter(|(_, worker)| {
            let takes = worker.is_alive() && worker.extended && worker.accepting;
            takes && worker.running.len() >= worker.slots as usize
        });
        let full: Vec<(WorkerId, u32)> = full.map(|(id, worker)| (*id, one_more(worker))).collect();
        for (id, more) in &full {
            self.beside.insert(*id, *more);
            self.follow_idle(*id);
        }
        !full.is_empty()
    }

    /// Nobody has more room than slots any more: the level has no room for that. Whether somebody had.
    pub(crate) fn keep_within_slots(&mut self) -> bool {
        let before = std::mem::take(&mut self.beside);
        for id in before.keys() {
            self.follow_idle(*id);
        }
        !before.is_empty()
    }
}

/// One more than it has.
fn one_more(worker: &Worker) -> u32 {
    u32::try_from(worker.running.len() + 1).unwrap_or(u32::MAX).min(HELD_MAX)
}
