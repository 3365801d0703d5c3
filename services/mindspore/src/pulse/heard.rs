//! What the leader's front end keeps in memory: who was heard when. A new leader gives everybody time anew.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;
use tripod_gateway::Liveness;
use tripod_state::ids::JobId;
use tripod_state::mindspore::Member;
use tripod_state::mindspore::cluster::Incarnation;

use super::switches::Switches;
use super::wire::{Heard, Report, Said};
use super::{Beat, Peer};
use crate::engine::Patience;

/// Of all jobs. Empty on nodes that do not lead. A node that was heard since it is watched has a note.
#[derive(Default)]
pub(crate) struct PeerMemory {
    liveness: Liveness<Patience, ()>,
    /// The process of each node that is watched, for signs of life that do not say whose they are.
    processes: Mutex<HashMap<JobId, HashMap<Member, Incarnation>>>,
    switches: Switches,
}

impl PeerMemory {
    /// Who was heard when.
    pub(crate) fn liveness(&self) -> &Liveness<Patience, ()> {
        &self.liveness
    }

    /// What servers have answered.
    pub(crate) fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Which processes the nodes of a parameter server's cluster have now.
    pub(crate) fn note_processes(&self, job: JobId, peers: &[Peer]) {
        let processes = peers.iter().filter_map(|(member, process)| Some((*member, (*process)?)));
        self.processes.lock().insert(job, processes.collect());
    }

    /// Forgets all of a job.
    pub(crate) fn end(&self, job: JobId) {
        self.liveness.end(job);
        self.processes.lock().remove(&job);
        self.switches.end(job);
    }

    /// Answers another node's front end, or this one's.
    ///
    /// # Errors
    /// The bytes are no report.
    pub(crate) fn answer(&self, report: Bytes) -> Result<Bytes, String> {
        let report = Report::decode(report).map_err(|error| format!("signs of life: {error}"))?;
        let beats = report.beats.len() as u64;
        for beat in report.beats.into_iter().map(Beat::from) {
            self.hear(beat);
        }
        let said = report.about.map(|about| self.switches.of(JobId(about.job), about.switch));
        let answers = said.into_iter().flatten().map(|(rank, text)| Said { rank, text }).collect();
        Ok(Heard { beats, answers }.encode_to_vec().into())
    }

    fn hear(&self, beat: Beat) {
        let (job, peer) = match beat {
            Beat::Topology { job, member } => (job, (member, None)),
            Beat::Cluster { job, member, incarnation: None } => {
                let processes = self.processes.lock();
                let process = processes.get(&job).and_then(|processes| processes.get(&member));
                (job, (member, process.copied()))
            }
            Beat::Cluster { job, member, incarnation } => (job, (member, incarnation)),
        };
        self.liveness.hear(job, peer, Some(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId(1);

    /// Whom a sign of life is of, among a node of each kind.
    fn heard(beat: Beat) -> Vec<Peer> {
        let memory = PeerMemory::default();
        let peers = [(Member(3), Some(Incarnation(8))), (Member(4), None)];
        memory.liveness.begin(JOB, Patience::default());
        memory.liveness.watch(JOB, &peers.map(|peer| (peer, true)), None);
        memory.note_processes(JOB, &peers);
        memory.answer(Report::of([beat]).encode_to_vec().into()).unwrap();
        memory.liveness.notes(JOB).into_iter().map(|(peer, ())| peer).collect()
    }

    #[tokio::test]
    async fn a_sign_of_life_counts_for_the_process_that_gives_it_or_for_the_one_that_there_is() {
        let of = |incarnation| Beat::Cluster { job: JOB, member: Member(3), incarnation };
        let process = (Member(3), Some(Incarnation(8)));
        assert_eq!(heard(of(Some(Incarnation(8)))), [process]);
        assert_eq!(heard(of(None)), [process]);
        assert_eq!(heard(of(Some(Incarnation(3)))), [], "that process was replaced");
        assert_eq!(heard(Beat::Topology { job: JOB, member: Member(4) }), [(Member(4), None)]);
    }
}
