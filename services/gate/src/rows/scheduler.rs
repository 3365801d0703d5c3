//! The scheduler of the Ray of 2016, its workers and stores, and our own calls beside them.

use crate::check::Check;
use crate::row::Row;
use crate::rpc::{
    Membership, Ray, RayLine, RayObjStore, RayPeer, RayPeerLine, RayScheduler, RayWorkerService,
};

/// What drivers, workers and stores say of themselves.
const ITSELF: Row = Row::of("- - - - - - s s s").itself(Check::OwnProcess);
/// What is seen of a scheduler.
const LOOKS: Row = Row::of("- y y j - - j - -");
/// What a scheduler orders.
const ORDERS: Row = Row::of("y - - - - - - - -");

pub(super) const fn scheduler(method: RayScheduler) -> Row {
    match method {
        RayScheduler::RegisterWorker => {
            Row::of("- - - - - - s s -").itself(Check::OwnProcess).also(Check::AsRegistered)
        }
        RayScheduler::RegisterObjStore => Row::of("- - - - - - - - s").itself(Check::OwnProcess),
        RayScheduler::RegisterFunction | RayScheduler::ReadyForNewTask => {
            Row::of("- - - - - - - s -").itself(Check::OwnProcess)
        }
        RayScheduler::SubmitTask
        | RayScheduler::PutObj
        | RayScheduler::RequestObj
        | RayScheduler::AliasObjectIDs
        | RayScheduler::IncrementCount
        | RayScheduler::DecrementCount
        | RayScheduler::IncrementRefCount
        | RayScheduler::DecrementRefCount
        | RayScheduler::AddContainedObjectIDs => ITSELF,
        RayScheduler::ObjReady => Row::of("- - - - - - - s s").itself(Check::OwnProcess),
        RayScheduler::ExportFunction | RayScheduler::ExportReusableVariable => Row::of("- - - - - - j - -"),
        RayScheduler::SchedulerInfo | RayScheduler::TaskInfo => LOOKS,
        RayScheduler::KillWorkers => Row::of("- y - j - - j - -"),
    }
}

pub(super) const fn ray(method: Ray) -> Row {
    match method {
        Ray::Wait => ITSELF,
        Ray::Batch => ITSELF.also(Check::EachPart),
        // A store asks where the others are, which may fetch objects from it.
        Ray::Status => Row::of("- y y j - - j - j"),
        Ray::Tasks => LOOKS,
    }
}

pub(super) const fn line(method: RayLine) -> Row {
    match method {
        RayLine::Batches => ITSELF.also(Check::EachPart),
    }
}

pub(super) const fn membership(method: Membership) -> Row {
    match method {
        Membership::Heartbeat => ITSELF,
    }
}

pub(super) const fn store(method: RayObjStore) -> Row {
    match method {
        RayObjStore::StartDelivery | RayObjStore::NotifyAlias | RayObjStore::DeallocateObject => ORDERS,
        // A node has the values of failures, which drivers ask for themselves.
        RayObjStore::StreamObjTo => Row::of("- - - - - - j - j").at_stores("- - - - - - - - j"),
        RayObjStore::ObjStoreInfo => Row::of("y y - j - - j j j"),
    }
}

pub(super) const fn peer(method: RayPeer) -> Row {
    match method {
        RayPeer::Tell => ORDERS,
    }
}

pub(super) const fn peer_line(method: RayPeerLine) -> Row {
    match method {
        RayPeerLine::Orders => ORDERS,
    }
}

pub(super) const fn worker(method: RayWorkerService) -> Row {
    match method {
        RayWorkerService::ExecuteTask
        | RayWorkerService::ImportFunction
        | RayWorkerService::ImportReusableVariable
        | RayWorkerService::Die => ORDERS,
    }
}
