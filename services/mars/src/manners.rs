//! How each call may end when its node stops: the rows for the port.

use tripod_port::Ending::{Own, Repeatable};
use tripod_port::{Manner, Method};
use tripod_proto::mars::v1::scheduler_server;

/// Of all services of the front end. What only looks, or waits for what the state remembers, is made again elsewhere.
pub const MANNERS: &[Manner] = &[Manner::own(scheduler_server::SERVICE_NAME, METHODS)];

const METHODS: &[Method] = &[
    Method::new("CountSchedulers", Repeatable),
    Method::new("GetSchedulers", Repeatable),
    Method::new("GetSchedulersInfo", Repeatable),
    Method::new("CountWorkers", Repeatable),
    Method::new("GetWorkers", Repeatable),
    Method::new("GetWorkersInfo", Repeatable),
    Method::new("WatchWorkers", Repeatable).streaming(),
    Method::new("CreateSession", Own),
    Method::new("HasSession", Repeatable),
    Method::new("DeleteSession", Own),
    Method::new("ListSessions", Repeatable),
    Method::new("SubmitTileableGraph", Own),
    Method::new("SubmitChunkGraph", Own),
    Method::new("GetTileableGraphInfo", Repeatable),
    Method::new("GetChunkGraphInfo", Repeatable),
    Method::new("WaitTileableGraph", Repeatable),
    Method::new("WaitChunkGraph", Repeatable),
    Method::new("WatchGraph", Repeatable).streaming(),
    Method::new("StopTileableGraph", Own),
    Method::new("StopChunkGraph", Own),
    Method::new("DeleteTileableGraph", Own),
    Method::new("DeleteChunkGraph", Own),
    Method::new("GetTileableMetas", Repeatable),
    Method::new("GetChunkMetas", Repeatable),
    Method::new("DecrefTileables", Own),
    Method::new("CreateMutableTensor", Own),
    Method::new("CreateMutableDataFrame", Own),
    Method::new("GetMutableTileable", Repeatable),
    Method::new("GetMutableStates", Repeatable),
    Method::new("SealMutableTileable", Own),
    Method::new("DeleteMutableTileable", Own),
];
