//! The match over all commands.

use crate::command::{Answer as AnyAnswer, Effect, Reply};
use crate::job::turn::Turn;
use crate::mindspore::{Answer, Command, Decision};
use crate::wait::DomainId;

impl Turn<'_> {
    pub(crate) fn mindspore(&mut self, command: Command) -> Reply {
        match command {
            Command::Topology { scope: _, request } => self.topology(request).map(AnyAnswer::Mindspore),
            Command::Cluster { scope: _, request } => self.cluster(request).map(AnyAnswer::Mindspore),
            Command::Lead { scope: _, decision } => {
                self.found_out(decision);
                Ok(AnyAnswer::Done)
            }
            Command::Planned { scope: _, generation, request } => {
                self.planned(generation, request).map(AnyAnswer::Mindspore)
            }
        }
    }

    fn found_out(&mut self, decision: Decision) {
        match decision {
            Decision::TopologySilent { nodes } => self.mark_in_topology(&nodes, true),
            Decision::TopologyHeard { nodes } => self.mark_in_topology(&nodes, false),
            Decision::TopologyTimedOut { generation } => self.time_out_topology(generation),
            Decision::ClusterSilent { nodes } => self.nodes_silent(&nodes),
            Decision::ClusterHeard { nodes } => self.nodes_heard(&nodes),
            Decision::ClusterGaveUp { nodes } => self.nodes_gave_up(&nodes),
            Decision::ClusterTimedOut { generation } => self.cluster_timed_out(generation),
            Decision::ClusterSwitchEnded { switch } => self.switch_ended(switch),
            Decision::Echoed { echoes } => self.echoed(&echoes),
        }
    }

    /// Wakes those who wait for something of a MindSpore scheduler.
    pub(super) fn mindspore_changed(&mut self) {
        self.effect(Effect::DomainChanged { domain: DomainId::Mindspore, job: self.job.id });
    }
}

/// The answer of a scheduler, or why it refused.
pub(super) type Answered = Result<Answer, crate::fault::Fault>;
