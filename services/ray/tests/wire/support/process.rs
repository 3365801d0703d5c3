//! A node that can be killed: its front end and its engine.

use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::Server;
use tripod_gateway::{FrontEnd as _, Gateway, JobBinding};
use tripod_lines::Lines;
use tripod_ray::{Patience, Scheduler};

use super::HOST;
use super::begin::announce;

/// Where the first node listens; those after it at the ports behind.
const PORT: u64 = 7700;

/// Ends with everything in it when it is dropped: calls get no answer, and connections break.
pub(super) struct Process {
    pub(super) address: String,
    lines: Lines,
    _tasks: JoinSet<()>,
}

impl Process {
    /// The node that comes after so many others.
    pub(super) async fn serve(
        gateway: &Gateway,
        lines: &Lines,
        after: u64,
        patience: Patience,
        has_engine: bool,
    ) -> Self {
        let address = format!("{HOST}:{}", PORT + after);
        let incoming = lines.listen(&address);
        announce(gateway, &address).await;
        let scheduler = Scheduler::with_patience(gateway, patience).connecting(lines.to_connect());
        let routes = scheduler.add_to(Routes::default(), &JobBinding::Named("default".to_owned()));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            Server::builder().add_routes(routes).serve_with_incoming(incoming).await.expect("serving");
        });
        if has_engine {
            tasks.spawn(scheduler.background().expect("it leads"));
        }
        Self { address, lines: lines.clone(), _tasks: tasks }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lines.close(&self.address);
    }
}
