//! Clusters of the parameter server, one after the other: two workers and three servers join, are told of each other, tell
//! all what they like, and finish together. Meanwhile one of them begins as another process, dies and is replaced, leaves, or
//! another one is added.

use std::rc::Rc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;
use tripod_checkers::history::{ClientId, ClusterRole};

use super::Setting;
use super::gang::{Call, Gang, LOOK_PAUSE, Numbers};
use super::member::{FORM_PATIENCE, Part, run as play};
use super::operator::Operator;
use super::process::{Process, Whose};
use crate::client::Client;
use crate::witness::now;

pub(super) const JOB: &str = "ms-server";
pub(super) const PORT: u16 = 7710;
const SIZE: (u32, u32) = (2, 3);
/// Nodes may be waited for so long, and the place of a dead one waits as long for another: longer than anybody here does.
const REGISTER_TIMEOUT_MS: u64 = 60_000;
/// Those who are there from the beginning.
const NODES: usize = 5;
/// Workers are the first of them.
const WORKERS: usize = 2;
/// The one that dies, or begins again.
const STRUCK: usize = 3;
/// The first of the clients, of which each node is one.
const FIRST_CLIENT: u32 = 62;
/// How long a node that is to leave may take for it.
const LEFT_WITHIN: Duration = Duration::from_secs(15);

/// What happens to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Quiet,
    Restart,
    Replacement,
    ScaleOut,
    /// The server of the highest rank leaves, and then another one comes: no list of members comes a second time.
    InAndOut,
    /// Scaling out is taken back.
    Abort,
}

impl Course {
    const ALL: [Self; 6] =
        [Self::Quiet, Self::Restart, Self::Replacement, Self::ScaleOut, Self::InAndOut, Self::Abort];

    /// What happens to one of the nodes.
    fn part(self, number: usize) -> Part {
        match self {
            Self::Replacement if number == NODES => Part::Replaces,
            _ if number == NODES => Part::IsAdded,
            Self::Restart if number == STRUCK => Part::Restarts,
            Self::Replacement if number == STRUCK => Part::Dies,
            _ => Part::Stays,
        }
    }

    fn newcomers(self) -> usize {
        usize::from(matches!(self, Self::Replacement | Self::ScaleOut | Self::InAndOut))
    }
}

pub(super) async fn run(setting: &Setting, mut client: Client) {
    client.job(JOB, super::spec(SIZE, REGISTER_TIMEOUT_MS)).await;
    let numbers = Numbers::new();
    // Those of the cluster before answer on: whoever leads may tell them once more that all have finished.
    let mut kept: Vec<Process> = Vec::new();
    for round in 1.. {
        let course = Course::ALL[client.dice.random_range(0..Course::ALL.len())];
        client.witness.note(now(), "ms", format_args!("cluster #{round}: {course:?}"));
        kept = live(setting, &mut client, &numbers, (round, course)).await;
        client.witness.count("clusters of MindSpore's parameter server");
        if client.done() {
            break;
        }
    }
    drop(kept);
}

/// One cluster, until all of its nodes have ended; what is left of them.
async fn live(
    setting: &Setting,
    client: &mut Client,
    numbers: &Numbers,
    (round, course): (u64, Course),
) -> Vec<Process> {
    let nodes = NODES + course.newcomers();
    // Whoever has it scale is busy, too.
    let gang = Rc::new(Gang::of(nodes + 1));
    let members = (0..nodes).zip(FIRST_CLIENT..).map(|(number, id)| {
        let role = if number < WORKERS { ClusterRole::Worker } else { ClusterRole::Server };
        let (id, name) = (ClientId(id), format!("{round}-{number}"));
        let member = (numbers.clone(), client.sibling(id));
        let whose = Whose { setting: setting.clone(), id, round, name, role };
        play(whose, Rc::clone(&gang), member, course.part(number))
    });
    let members: Vec<_> = members.collect();
    let operator = Operator { setting: setting.clone(), client: client.sibling_here() };
    let ended = futures::future::join(futures::future::join_all(members), direct(&gang, operator, course));
    let (ended, ()) = ended.await;
    let mut left = Vec::new();
    for ended in ended {
        match ended {
            Ok(process) => left.extend(process),
            Err(error) => setting.witness.recorder().void(format!("a node cannot be played: {error}")),
        }
    }
    left
}

/// Has what happens to a cluster happen, as far as its nodes do not do it by themselves.
async fn direct(gang: &Gang, mut operator: Operator, course: Course) {
    let all_formed = until(FORM_PATIENCE, || gang.formed.borrow().len() >= NODES).await;
    let witness = operator.client.witness.clone();
    let comes = match course {
        _ if !all_formed => false,
        Course::Quiet | Course::Restart => false,
        // Who dies calls who is to come.
        Course::Replacement => gang.called().await,
        Course::ScaleOut => operator.scale_out().await,
        Course::InAndOut => {
            let left = match gang.last_server() {
                Some(node) => {
                    operator.scale_in(&node).await && until(LEFT_WITHIN, || gang.has_left.get()).await
                }
                None => false,
            };
            if left {
                witness.count("clusters of MindSpore that scaled in");
            }
            left && operator.scale_out().await
        }
        Course::Abort => {
            if operator.scale_out().await {
                operator.abort().await;
                witness.count("clusters of MindSpore whose scaling was taken back");
            }
            false
        }
    };
    gang.call.set(if comes { Call::Come } else { Call::StayAway });
    if comes && until(FORM_PATIENCE, || gang.formed.borrow().len() > NODES).await {
        witness.count(match course {
            Course::Replacement => "nodes of MindSpore that were replaced",
            _ => "clusters of MindSpore that scaled out",
        });
    }
    gang.idle();
}

/// Waits until something is so; whether it came to be.
async fn until(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_later_comes_in_place_of_a_dead_node_or_when_there_is_a_place_more() {
        for course in Course::ALL {
            let nodes = NODES + course.newcomers();
            let parts: Vec<Part> = (0..nodes).map(|number| course.part(number)).collect();
            let count = |part: Part| parts.iter().filter(|other| **other == part).count();
            assert_eq!(count(Part::Dies), count(Part::Replaces), "{course:?}");
            let scales = matches!(course, Course::ScaleOut | Course::InAndOut);
            assert_eq!(count(Part::IsAdded), usize::from(scales), "{course:?}");
        }
    }
}
