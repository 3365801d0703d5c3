//! The protocols that a node speaks. No other place of the binary names them.

use std::sync::Arc;

use tokio::sync::watch;
use tripod_audit::Auditor;
use tripod_coordination::Coordination;
use tripod_dial::Dialler;
use tripod_gateway::{FrontEnds, Gateway};
use tripod_mars::{Figures, Mars, StoreFigures};
use tripod_mindspore::Mindspore;
use tripod_native::{Backups, JobPorts, Native};
use tripod_ray::{Scheduler, Usage};
use tripod_xds::Xds;

use super::{Config, dialling};

/// Set, graphs of Mars have operators that only delay, fail or take memory.
const TEST_OPERATORS: &str = "TRIPOD_TEST_OPERATORS";

/// What the tasks of a node tell of it.
pub(super) struct NodeNews {
    pub(super) job_ports: watch::Receiver<JobPorts>,
    pub(super) backups: watch::Receiver<Option<Backups>>,
    pub(super) auditor: Auditor,
}

/// All of them, in the order in which a port asks whose a call is. Must be called once for a node, within a runtime.
pub(super) fn all(gateway: &Gateway, config: &Config, dialler: &Dialler, told: NodeNews) -> FrontEnds {
    let to_tasks = dialling::to_tasks(dialler.clone(), &config.default_job);
    let scheduler = Scheduler::new(gateway, dialler.clone());
    let mars = mars(gateway, dialler, &scheduler);
    FrontEnds::of(vec![
        Box::new(Coordination::telling(gateway.clone(), to_tasks)),
        Box::new(
            Native::new(gateway.clone(), told.job_ports, told.backups)
                .audited_by(told.auditor)
                .authorising(config.authorise)
                .protected(config.protection),
        ),
        Box::new(Xds::new(gateway.clone())),
        Box::new(scheduler),
        Box::new(Mindspore::new(gateway, dialler)),
        Box::new(mars),
    ])
}

/// Its workers are the scheduler's object stores, which tell the scheduler how full they are.
fn mars(gateway: &Gateway, dialler: &Dialler, scheduler: &Scheduler) -> Mars {
    let scheduler = scheduler.clone();
    let figures: Figures = Arc::new(move |job| {
        let scheduler = scheduler.clone();
        Box::pin(async move {
            let usage = scheduler.usage(job).await.into_iter();
            usage.map(|(store, usage)| (store, figures_of(usage))).collect()
        })
    });
    let mars = Mars::new(gateway, dialler).with_figures(figures);
    if std::env::var_os(TEST_OPERATORS).is_some() { mars.with_helpers() } else { mars }
}

fn figures_of(usage: Usage) -> StoreFigures {
    let Usage { used_bytes, capacity_bytes, spilled_bytes } = usage;
    StoreFigures { used_bytes, capacity_bytes, spilled_bytes }
}
