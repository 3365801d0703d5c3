//! What the clients of a simulation do. Each workload is a host of its own, with one or several clients.
//!
//! | workload | protocol | what |
//! |---|---|---|
//! | `keys` | `tripod.v1` and dialect N | registers: read, write, insert, compare-and-set |
//! | `list` | `tripod.v1` | an append list: inserts of keys of their own, read in the order of the log |
//! | `counter` | dialect N | increments that are repeated with their stamp until there is an answer |
//! | `operator` | `tripod.v1` | changes of the members, in every other run |
//! | `gang` | dialect N | tasks of a job: registration, lives, heartbeats, barriers, silence |
//! | `scheduler` | that of 2016, `tripod.v1` | stores, workers and drivers of a job's scheduler |
//! | `mindspore` | both of MindSpore | nodes of clusters, and who has them scale |
//! | `stale_reads` | `tripod.v1` | reads of a leader that was replaced, and writes to its successor |

mod arrival;
mod beats;
mod counter;
mod gang;
mod keys;
mod list;
mod member;
pub(crate) mod mindspore;
mod operator;
pub(crate) mod scheduler;
pub(crate) mod stale_reads;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::client::{Client, Phase};
use super::node::Site;
use super::witness::Witness;
use tripod_checkers::history::ClientId;

pub(crate) use keys::JOB as KEYS_JOB;

/// The hosts of clients.
pub(crate) const HOSTS: [&str; 3] = ["keys", "count", "gang"];
/// The host of who changes the members.
pub(crate) const OPERATOR: &str = "operator";

/// What every workload is told.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) sites: Rc<[Arc<Site>]>,
    pub(crate) witness: Witness,
    pub(crate) phase: Rc<Cell<Phase>>,
    /// Set once the last gang has ended: the other clients go on until then.
    pub(crate) gangs_over: Rc<Cell<bool>>,
}

impl Setting {
    fn client(&self, id: u32) -> Client {
        Client::new(self.seed, ClientId(id), &self.sites, &self.witness, &self.phase)
    }
}

/// Runs what a host runs.
pub(crate) async fn run(host: &'static str, setting: Setting) -> turmoil::Result {
    match host {
        "keys" => {
            let mut first = setting.client(10);
            let clients = (11..13).map(|id| first.sibling(ClientId(id))).collect::<Vec<_>>();
            let lists = (13..15).map(|id| first.sibling(ClientId(id))).collect::<Vec<_>>();
            let keys = futures::future::join_all(clients.into_iter().map(keys::run));
            let lists = futures::future::join_all(lists.into_iter().map(list::run));
            futures::future::join3(keys::run(first), keys, lists).await;
        }
        "count" => {
            let mut first = setting.client(20);
            let second = first.sibling(ClientId(21));
            futures::future::join(counter::run(first), counter::run(second)).await;
        }
        scheduler::HOST => scheduler::run(&setting).await,
        mindspore::HOST => mindspore::run(&setting).await,
        stale_reads::HOST => stale_reads::run(&setting).await,
        OPERATOR => operator::run(setting.client(40), &setting.sites).await,
        _ => {
            gang::run(setting.client(30)).await;
            setting.gangs_over.set(true);
        }
    }
    Ok(())
}
