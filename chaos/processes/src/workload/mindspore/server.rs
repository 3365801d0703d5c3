//! Clusters of the parameter server, one after the other: two workers and two servers join, are told of each other, tell
//! all what they like, and finish together; in every other cluster a server begins as another process in the middle.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_load::mindspore::{Role, Size};

use super::super::setting::Setting;
use super::life::{Life, Whose};
use super::member::Member;

const JOB: &str = "ms-server";
const SIZE: Size = Size { workers: 2, servers: 2 };
const ROLES: [Role; 4] = [Role::Worker, Role::Worker, Role::Server, Role::Server];
/// The node that begins again.
const RESTARTED: usize = 3;

/// What the nodes of one cluster know of each other, beside it.
#[derive(Debug)]
pub(super) struct Gang {
    /// Events that were answered.
    pub(super) told: Mutex<BTreeSet<u32>>,
    /// How many still have something to tell.
    pub(super) busy: watch::Sender<usize>,
}

pub(in crate::workload) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let setting = setting.clone();
    clients.spawn(async move {
        let mut random = setting.random(setting.client_id());
        let Some(job) = super::job(&setting, &mut random, JOB, SIZE).await else { return };
        // Those of the cluster before answer on: whoever leads may tell them once more that all have finished.
        let mut kept: Vec<Life> = Vec::new();
        let mut round = 0;
        while setting.goes_on() {
            round += 1;
            let gang = Arc::new(Gang { told: Mutex::default(), busy: watch::Sender::new(ROLES.len()) });
            let mut members = JoinSet::new();
            for (number, role) in ROLES.into_iter().enumerate() {
                let whose = Whose {
                    setting: setting.clone(),
                    id: setting.client_id(),
                    job: JOB,
                    round,
                    name: format!("{round}-{number}"),
                    role,
                    addresses: Arc::clone(&job.addresses),
                };
                let place = random.random_range(0..job.addresses.len());
                let restarts = round % 2 == 0 && number == RESTARTED;
                members.spawn(Member::run(whose, Arc::clone(&gang), place, restarts));
            }
            let mut lives = Vec::new();
            while let Some(ended) = members.join_next().await {
                match ended {
                    Ok(Ok(life)) => lives.push(life),
                    Ok(Err(error)) => setting.recorder.void(format!("a node cannot be played: {error:#}")),
                    Err(panic) => std::panic::resume_unwind(panic.into_panic()),
                }
            }
            kept = lives;
        }
        drop(kept);
    });
}
