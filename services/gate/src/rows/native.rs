//! Our own API, health, and discovery.

use crate::check::Check;
use crate::row::Row;
use crate::rpc::{
    Agents, AggregatedDiscovery, Calls, Cluster, Diagnose, Events, Health, Jobs, Kv, Levels, Mindspore,
    Sessions, Snapshots, Tokens,
};

/// What changes the cluster.
const OPERATORS: Row = Row::of("- y - - - - - - -");
/// What changes a job.
const OWNERS: Row = Row::of("- y - j - - - - -");

pub(super) const fn health(method: Health) -> Row {
    match method {
        Health::Check | Health::Watch => Row::of("y y y y y y y y y").for_everybody(),
    }
}

pub(super) const fn discovery(method: AggregatedDiscovery) -> Row {
    match method {
        AggregatedDiscovery::StreamAggregatedResources | AggregatedDiscovery::DeltaAggregatedResources => {
            Row::of("- y - j j j j j j")
        }
    }
}

/// A stream by itself does nothing: each op in it is judged by its own row.
pub(super) const fn calls(method: Calls) -> Row {
    match method {
        Calls::Open => Row::of("- y y y y y y y y")
            .also(Check::EachPart)
            .like("Ray.Batch, for whoever may call anything"),
    }
}

pub(super) const fn cluster(method: Cluster) -> Row {
    match method {
        Cluster::Status => Row::of("y y y y y - y y y").also(Check::NoDigest),
        Cluster::ListMembers => Row::of("y y y y y - y y y"),
        Cluster::Join => Row::of("s y - - - - - - -").itself(Check::OwnNode),
        Cluster::TransferLeader | Cluster::ChangeMembers | Cluster::CancelChange | Cluster::DrainNode => {
            OPERATORS
        }
    }
}

pub(super) const fn levels(method: Levels) -> Row {
    match method {
        Levels::Show => Row::of("y y y y y - y y y"),
        Levels::Pin | Levels::Unpin => OPERATORS,
    }
}

pub(super) const fn snapshots(method: Snapshots) -> Row {
    match method {
        Snapshots::Save => OPERATORS,
    }
}

/// Owners make, see and revoke those of their jobs: the service looks at what a token would prove.
pub(super) const fn tokens(method: Tokens) -> Row {
    match method {
        Tokens::Create | Tokens::List | Tokens::Revoke => OWNERS,
        Tokens::SetFloor => Row::of("- y - - - - - - -").like("Levels.Pin"),
    }
}

pub(super) const fn jobs(method: Jobs) -> Row {
    match method {
        Jobs::Create => Row::of("- y - j j - - - -"),
        Jobs::Get => Row::of("- y y j j j j j j"),
        Jobs::List => Row::of("- y y j j - j - -").also(Check::OwnJobsListed),
        Jobs::Delete | Jobs::Note => OWNERS,
        // Who started a task says it, and that is the agent's program.
        Jobs::EndTask | Jobs::NoteHost => Row::of("- y - j j - - - -").like("Jobs.Create"),
    }
}

pub(super) const fn diagnose(method: Diagnose) -> Row {
    match method {
        Diagnose::Job => Row::of("- y y j j j j j j").like("Jobs.Get"),
    }
}

pub(super) const fn events(method: Events) -> Row {
    match method {
        Events::OfJob => Row::of("- y y j j j j j j").like("Jobs.Get"),
        // It names every job and what became of its tasks, so it is for whoever looks after the cluster.
        Events::OfCluster => Row::of("- y y - - - - - -"),
    }
}

pub(super) const fn kv(method: Kv) -> Row {
    match method {
        Kv::Get | Kv::List => Row::of("- y - j j j j j -"),
        Kv::Put | Kv::Delete => Row::of("- y - j j j j - -"),
    }
}

pub(super) const fn sessions(method: Sessions) -> Row {
    match method {
        Sessions::Open | Sessions::Close => Row::of("- s - s s s s s s").itself(Check::OwnSession),
    }
}

pub(super) const fn agents(method: Agents) -> Row {
    match method {
        Agents::Beat | Agents::WatchMembers => Row::of("- y - - j - - - -"),
    }
}

pub(super) const fn mindspore(method: Mindspore) -> Row {
    match method {
        Mindspore::State | Mindspore::Nodes | Mindspore::Events => {
            Row::of("- y y j j - - - -").like("Jobs.Get, without those who have no calls there")
        }
        Mindspore::PlanScale => Row::of("- y y j - - - - -").like("Ray.Status"),
        Mindspore::Scale | Mindspore::Abort | Mindspore::Switch => OWNERS.like("Jobs.Delete"),
    }
}
