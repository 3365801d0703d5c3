//! Sessions and graphs of Mars, and its chunks. All of it is newer than the table was.

use crate::row::Row;
use crate::rpc::{MarsScheduler, MarsWorker};

/// Programs, and functions of theirs that workers execute, do the same: both have the same calls as functions.
const PROGRAMS: Row = Row::of("- - - - - - j j -");

pub(super) const fn scheduler(method: MarsScheduler) -> Row {
    match method {
        MarsScheduler::CountSchedulers
        | MarsScheduler::GetSchedulers
        | MarsScheduler::GetSchedulersInfo
        | MarsScheduler::CountWorkers
        | MarsScheduler::GetWorkers
        | MarsScheduler::GetWorkersInfo
        | MarsScheduler::WatchWorkers
        | MarsScheduler::HasSession
        | MarsScheduler::ListSessions
        | MarsScheduler::GetTileableGraphInfo
        | MarsScheduler::GetChunkGraphInfo
        | MarsScheduler::WaitTileableGraph
        | MarsScheduler::WaitChunkGraph
        | MarsScheduler::WatchGraph => Row::of("- y y j - - j j -").like("Ray.Status"),
        MarsScheduler::StopTileableGraph
        | MarsScheduler::StopChunkGraph
        | MarsScheduler::DeleteTileableGraph
        | MarsScheduler::DeleteChunkGraph
        | MarsScheduler::DeleteSession => Row::of("- y - j - - j j -").like("Scheduler.KillWorkers"),
        MarsScheduler::CreateSession
        | MarsScheduler::SubmitTileableGraph
        | MarsScheduler::SubmitChunkGraph
        | MarsScheduler::GetTileableMetas
        | MarsScheduler::DecrefTileables
        | MarsScheduler::CreateMutableTensor
        | MarsScheduler::CreateMutableDataFrame
        | MarsScheduler::SealMutableTileable
        | MarsScheduler::DeleteMutableTileable => PROGRAMS.like("Scheduler.SubmitTask"),
        // A store asks what the chunks are that programs read and write there.
        MarsScheduler::GetChunkMetas | MarsScheduler::GetMutableTileable => {
            Row::of("- - - - - - j j j").like("Scheduler.SubmitTask")
        }
        MarsScheduler::GetMutableStates => Row::of("- - - - - - - - j").like("Scheduler.ObjReady"),
    }
}

pub(super) const fn worker(method: MarsWorker) -> Row {
    match method {
        MarsWorker::GetChunksData | MarsWorker::GetMutableChunksData => {
            Row::of("- - - - - - j j j").like("ObjStore.StreamObjTo")
        }
        // A store has others keep copies of what programs write.
        MarsWorker::PutMutableChunksData => Row::of("- - - - - - j j j").like("Scheduler.PutObj"),
        MarsWorker::PutChunksData | MarsWorker::DropChunks => PROGRAMS.like("Scheduler.PutObj"),
        MarsWorker::SealMutableChunks => Row::of("y - - - - - - - -").like("ObjStore.StartDelivery"),
        MarsWorker::GetWorkerStatus => Row::of("y y - j - - j j j").like("ObjStore.ObjStoreInfo"),
    }
}
