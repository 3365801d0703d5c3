//! What each node is still to be told, in the order in which it is to be told.

use crate::mindspore::cluster::node::{Node, Work};
use crate::mindspore::cluster::record::{Cluster, Phase, Scale};
use crate::mindspore::cluster::{ClusterState, Order, Scaling, Switch};

impl Cluster {
    /// Of events only the next: the one after it is told when that was.
    pub(super) fn orders_of(&self, node: &Node) -> Vec<Order> {
        if !node.is_alive() {
            return Vec::new();
        }
        let scale = match &self.head.phase {
            Phase::Scaling(scale) => Some(scale),
            _ => None,
        };
        let switch = match self.head.phase {
            Phase::Switching { number, .. } if node.is_told_of_switches() && node.told.switch < number => {
                Some(Order::Switch { switch: number })
            }
            _ => None,
        };
        let done = node.told.done.map(|scaling| Order::ScaleDone { scaling });
        let orders = [
            scale.and_then(|scale| self.scale_order(scale, node)),
            self.metadata_order(scale, node),
            done,
            switch,
            self.event_order(node),
            (self.head.phase == Phase::Exit && !node.is_leaving() && !node.told.finish)
                .then_some(Order::Finish),
        ];
        orders.into_iter().flatten().collect()
    }

    /// Those who leave are told even when the others go on already.
    fn scale_order(&self, scale: &Scale, node: &Node) -> Option<Order> {
        let is_asked = node.work == Work::Asked && node.told.scale < scale.begun;
        let leaving = node.is_leaving();
        (is_asked && (leaving || !node.registered)).then_some(Order::Scale {
            generation: scale.begun,
            scaling: scale.scaling,
            workers: self.head.expected.workers,
            servers: self.head.expected.servers,
            leaving,
        })
    }

    fn metadata_order(&self, scale: Option<&Scale>, node: &Node) -> Option<Order> {
        if !self.is_behind(node) {
            return None;
        }
        let state = match scale {
            Some(scale) if node.work == Work::Asked && node.told.metadata < scale.published => scale.state(),
            _ if node.told.metadata < self.head.formed => ClusterState::Starting,
            _ => ClusterState::Ready,
        };
        let scale = scale.filter(|_| node.is_leaving());
        Some(Order::Metadata {
            generation: scale.map_or(self.head.published, |scale| scale.published),
            state,
        })
    }

    /// Whether the node has not been told of the others as they are.
    pub(super) fn is_behind(&self, node: &Node) -> bool {
        let needed = match &self.head.phase {
            Phase::Exit => return false,
            Phase::Scaling(scale) if scale.published == 0 => return false,
            Phase::Scaling(scale) if node.is_leaving() && node.work == Work::Asked => scale.published,
            _ if node.is_leaving() || !node.entered => return false,
            _ => self.head.published,
        };
        node.told.metadata < needed
    }

    fn event_order(&self, node: &Node) -> Option<Order> {
        if !node.entered || node.is_leaving() {
            return None;
        }
        let event = self.events().get(&node.told.event)?;
        Some(Order::Event { sequence: node.told.event, event: event.event })
    }

    /// What the nodes that know of each other are told with their heartbeats.
    pub(super) fn announced(&self) -> ClusterState {
        match &self.head.phase {
            Phase::Starting { .. } => ClusterState::Starting,
            Phase::Ready => ClusterState::Ready,
            Phase::Scaling(scale) => scale.state(),
            Phase::Switching { switch: Switch::NewInstance, .. } => ClusterState::NewInstance,
            Phase::Switching { switch: Switch::EnableFls, .. } => ClusterState::EnableFls,
            Phase::Switching { switch: Switch::DisableFls, .. } => ClusterState::DisableFls,
            Phase::TimedOut => ClusterState::NodeTimeout,
            Phase::Exit => ClusterState::Exit,
        }
    }

    /// The same for one node: who does not know of the others would begin without them if it were told that all is
    /// ready.
    pub(super) fn announced_to(&self, node: &Node) -> ClusterState {
        match self.announced() {
            ClusterState::Ready
            | ClusterState::NewInstance
            | ClusterState::EnableFls
            | ClusterState::DisableFls
                if !node.entered =>
            {
                ClusterState::Starting
            }
            state => state,
        }
    }
}

impl Scale {
    fn state(&self) -> ClusterState {
        match self.scaling {
            Scaling::Out if self.rolled_back => ClusterState::ScaleOutRollback,
            Scaling::Out => ClusterState::ScaleOut,
            Scaling::In => ClusterState::ScaleIn,
        }
    }
}
