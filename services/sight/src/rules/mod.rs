//! From facts to findings. The order is a contract: the first finding is the answer.
//!
//! | # | if | then |
//! |---|---|---|
//! | 1 | no read came back, and too few voters answer | T7201; what follows is judged by nobody |
//! | 2 | the leader's disk is slow, its process did not run until a moment ago, no read came back, a node lags behind with what is committed | T7204, T7205, T7202, T7206; programs are not blamed |
//! | 3 | a node is reached by us and not by its peers, or the reverse | T7203 |
//! | 4 | all tasks of a host are late | T7108 |
//! | 5 | a process has ended, or a task was given up | T7109, T7110 |
//! |   | or, if none has: a task is in error | T7113 |
//! | 6 | a process does not run, as whoever started it says; a task is late | T7107, T7106 |
//! | 7 | two places wait for each other's tasks | T7103 |
//! | 8 | a task waits for a key that is not there | T7104 |
//! | 9 | a task is alive, in no call, and others wait for it | T7105 |
//! | 10 | a task came to the registration and its call is open nowhere | T7102 |
//! | 11 | a task has not registered | T7101 |
//! | 12 | clients send heartbeats more rarely than their job expects | T7111 |

mod cluster;
mod ends;
mod frozen;
mod late;
mod places;
mod timeouts;

use crate::facts::Facts;
use crate::finding::{Diagnosis, Finding};

/// Judges the facts.
#[must_use]
pub fn diagnose(facts: &Facts) -> Diagnosis<'_> {
    let coordinator = cluster::coordinator(facts);
    let are_programs_judged = coordinator.is_empty();
    let mut findings = coordinator;
    findings.extend(cluster::cut(facts));
    if are_programs_judged {
        let late = late::find(facts);
        let (hosts, tasks): (Vec<Finding>, Vec<Finding>) =
            late.into_iter().partition(|finding| finding.code == crate::Code::HostSilent);
        findings.extend(hosts);
        findings.extend(ends::find(facts));
        findings.extend(tasks);
        let known: Vec<i32> = findings.iter().flat_map(|finding| &finding.tasks).copied().collect();
        findings.extend(places::find(facts, &known));
        findings.extend(timeouts::find(facts));
    }
    Diagnosis { facts, findings, safety: cluster::safety_of(facts) }
}
