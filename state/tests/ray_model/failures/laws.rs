//! What holds after every command.

use std::collections::BTreeSet;

use tripod_state::ray::Order;
use tripod_state::ray::view::WorkerLife;

use crate::failures::world::World;

impl World {
    pub(super) fn check_laws(&mut self) {
        if let Err(fault) = self.machine.check() {
            self.broken(&fault);
        }
        let orders = self.machine.new_orders();
        let ray = self.machine.scheduler();
        let queued: BTreeSet<_> = ray.info().queue.into_iter().collect();
        let mut running = BTreeSet::new();
        for worker in ray.workers() {
            if matches!(worker.life, WorkerLife::Dead(_)) && !worker.running.is_empty() {
                self.broken(&format!("the dead {} executes {:?}", worker.id, worker.running));
            }
            for run in worker.running {
                if !running.insert(run.operation) || queued.contains(&run.operation) {
                    self.broken(&format!("task {} has two current attempts", run.operation));
                }
            }
        }
        for (_, order) in orders {
            let Order::Execute { run, .. } = order else { continue };
            let most = self.budgets.get(&run.operation).copied().unwrap_or(u32::MAX);
            if run.attempt.0 > most || run.attempt.0 == 0 {
                self.broken(&format!("{order:?}, but it may be begun {most} times"));
            }
        }
    }
}
