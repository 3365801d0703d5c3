//! The protocols that a node speaks. No other place of the binary names them.

use tokio::sync::watch;
use tripod_coordination::Coordination;
use tripod_dial::Dialler;
use tripod_gateway::{FrontEnds, Gateway};
use tripod_mars::Mars;
use tripod_mindspore::Mindspore;
use tripod_native::{Backups, JobPorts, Native};
use tripod_ray::Scheduler;
use tripod_xds::Xds;

use super::{Config, dialling};

/// What the tasks of a node tell of it.
pub(super) struct NodeNews {
    pub(super) job_ports: watch::Receiver<JobPorts>,
    pub(super) backups: watch::Receiver<Option<Backups>>,
}

/// All of them, in the order in which a port asks whose a call is. Must be called once for a node, within a runtime.
pub(super) fn all(gateway: &Gateway, config: &Config, dialler: &Dialler, told: NodeNews) -> FrontEnds {
    let to_tasks = dialling::to_tasks(dialler.clone(), &config.default_job);
    FrontEnds::of(vec![
        Box::new(Coordination::telling(gateway.clone(), to_tasks)),
        Box::new(Native::new(gateway.clone(), told.job_ports, told.backups)),
        Box::new(Xds::new(gateway.clone())),
        Box::new(Scheduler::new(gateway, dialler.clone())),
        Box::new(Mindspore::new(gateway, dialler)),
    ])
}
