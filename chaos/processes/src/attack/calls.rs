//! Calls with absurd lists, and gets that wait.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::uri::PathAndQuery;
use prost::Message;
use prost::encoding::encode_varint;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tripod_proto::raw::RawCodec;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::{RegisterObjStoreRequest, RegisterWorkerRequest};
use tripod_proto::tensorflow as t;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{BeatRequest, ClientBeat, ListJobsRequest, StatusRequest};
use tripod_proto::xla::coordination as n;

use super::aim::Aim;
use super::tally::{Bounds, Tally, ended, repeat};
use super::wire::{Unread, unread};

/// What is nobody's: a network for examples in documents.
const ELSEWHERE: &str = "192.0.2.1";

/// Calls that have a list, in which each element is a byte or two on the wire and several in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Tasks of a barrier, dialect N.
    BarrierN,
    /// The same in dialect T.
    BarrierT,
    /// Tasks that are asked about, dialect N.
    AliveN,
    /// The same in dialect T.
    AliveT,
    /// Objects that somebody holds.
    References,
}

impl List {
    pub const ALL: [Self; 5] = [Self::BarrierN, Self::BarrierT, Self::AliveN, Self::AliveT, Self::References];

    const fn path(self) -> &'static str {
        match self {
            Self::BarrierN => "/xla.coordination.CoordinationService/Barrier",
            Self::BarrierT => "/tensorflow.CoordinationService/Barrier",
            Self::AliveN => "/xla.coordination.CoordinationService/GetAliveTasks",
            Self::AliveT => "/tensorflow.CoordinationService/GetAliveTasks",
            Self::References => "/Scheduler/IncrementRefCount",
        }
    }

    /// Whether its service takes messages that are compressed.
    fn compresses(self) -> bool {
        self != Self::References
    }

    /// The message with so many elements. It is put together by hand: in memory the list would be many times as large.
    fn message(self, elements: usize, aim: &Aim) -> Bytes {
        let mut message = BytesMut::new();
        let incarnations = Some(aim.life());
        let (field, begin) = match self {
            Self::BarrierN => (4, n::BarrierRequest { incarnations, ..barrier_n() }.encode_to_vec()),
            Self::BarrierT => (3, barrier_t().encode_to_vec()),
            Self::AliveN => {
                (3, n::GetAliveTasksRequest { incarnations, ..Default::default() }.encode_to_vec())
            }
            Self::AliveT => (2, t::GetAliveTasksRequest::default().encode_to_vec()),
            Self::References => (1, Vec::new()),
        };
        message.put_slice(&begin);
        // The number of the field, and that what follows has a length.
        let key = field << 3 | 2;
        match self {
            Self::BarrierT | Self::AliveT => {
                (0..elements).for_each(|_| message.put_slice(&[key, 0]));
            }
            Self::BarrierN | Self::AliveN | Self::References => {
                message.put_u8(key);
                encode_varint(elements as u64, &mut message);
                message.put_bytes(1, elements);
            }
        }
        message.freeze()
    }
}

fn barrier_n() -> n::BarrierRequest {
    n::BarrierRequest { barrier_id: "absurd".to_owned(), barrier_timeout_in_ms: 1_000, ..Default::default() }
}

fn barrier_t() -> t::BarrierRequest {
    t::BarrierRequest { barrier_id: "absurd".to_owned(), barrier_timeout_in_ms: 1_000, ..Default::default() }
}

/// Makes calls with a list of so many elements, compressed to little where that is taken, one after the other.
pub async fn absurd_lists(aim: &Aim, bounds: Bounds, list: List, elements: usize) -> Tally {
    let message = list.message(elements, aim);
    let channels = aim.channels(bounds.count.clamp(1, aim.nodes().len()));
    repeat(bounds, 1, |turn| {
        let (channel, message) = (channels[turn % channels.len()].clone(), message.clone());
        async move { ended(&send(channel, list, message).await) }
    })
    .await
}

/// Waits for keys that nobody writes, over so many connections, until the time is over.
pub async fn waiting_gets(aim: &Aim, bounds: Bounds, connections: usize) -> Tally {
    let key = "never/written".to_owned();
    let request = n::GetKeyValueRequest { incarnations: Some(aim.life()), key };
    let path = "/xla.coordination.CoordinationService/GetKeyValue";
    let message = &Bytes::from(request.encode_to_vec());
    unread(aim, bounds, connections, Unread { path, message }).await
}

/// Asks for a directory of keys and reads nothing of it.
pub async fn unread_directories(aim: &Aim, bounds: Bounds, connections: usize, directory: &str) -> Tally {
    let directory_key = directory.to_owned();
    let request = n::GetKeyValueDirRequest { incarnations: Some(aim.life()), directory_key };
    let path = "/xla.coordination.CoordinationService/GetKeyValueDir";
    let message = &Bytes::from(request.encode_to_vec());
    unread(aim, bounds, connections, Unread { path, message }).await
}

/// Asks for snapshots and reads nothing of them.
pub async fn unread_backups(aim: &Aim, bounds: Bounds, connections: usize) -> Tally {
    let path = "/tripod.v1.Snapshots/Save";
    // Of whatever node is asked.
    let message = tripod_proto::tripod::v1::SaveRequest { local: true };
    let message = &Bytes::from(message.encode_to_vec());
    unread(aim, bounds, connections, Unread { path, message }).await
}

/// Has every node look at all that there is, so many times at the same time: digests and lists of jobs in turn.
pub async fn long_looks(aim: &Aim, bounds: Bounds, at_once: usize) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    repeat(bounds, at_once, |turn| {
        // Over the nodes slower than over the looks, so that each meets each.
        let channel = channels[turn / 2 % channels.len()].clone();
        async move {
            if turn % 2 == 0 {
                ended(&ClusterClient::new(channel).status(StatusRequest { digest: true }).await)
            } else {
                ended(&JobsClient::new(channel).list(ListJobsRequest {}).await)
            }
        }
    })
    .await
}

/// Tells of so many heartbeats at once of tasks that there are not, and reads what becomes of each.
pub async fn made_up_beats(aim: &Aim, bounds: Bounds, beats: u64) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    let beat = |incarnation| ClientBeat {
        path: "/xla.coordination.CoordinationService/Heartbeat".to_owned(),
        message: beat_of(aim, incarnation).encode_to_vec().into(),
        ..ClientBeat::default()
    };
    let beats = (0..beats).map(beat).collect();
    let request = BeatRequest { job: "default".to_owned(), beats, ..BeatRequest::default() };
    repeat(bounds, 1, |turn| {
        let (channel, request) = (channels[turn % channels.len()].clone(), request.clone());
        async move { ended(&read_all(channel, request).await) }
    })
    .await
}

fn beat_of(aim: &Aim, incarnation: u64) -> n::HeartbeatRequest {
    // No job has as many tasks.
    n::HeartbeatRequest { incarnations: Some(aim.life()), incarnation, source_task_id: i32::MAX }
}

async fn read_all(channel: Channel, request: BeatRequest) -> Result<(), Status> {
    let mut verdicts = AgentsClient::new(channel).beat(request).await?.into_inner();
    while verdicts.message().await?.is_some() {}
    Ok(())
}

/// Says of workers and stores that they are where it is not, for a node to connect to.
pub async fn addresses_of_others(aim: &Aim, bounds: Bounds) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    repeat(bounds, 1, |turn| {
        let mut client = SchedulerClient::new(channels[turn / 2 % channels.len()].clone());
        let worker = RegisterWorkerRequest {
            node_ip_address: ELSEWHERE.to_owned(),
            ..RegisterWorkerRequest::default()
        };
        let store = RegisterObjStoreRequest { objstore_address: format!("{ELSEWHERE}:9") };
        async move {
            if turn % 2 == 0 {
                ended(&client.register_worker(worker).await)
            } else {
                ended(&client.register_obj_store(store).await)
            }
        }
    })
    .await
}

async fn send(channel: Channel, list: List, message: Bytes) -> Result<Response<Bytes>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    if list.compresses() {
        client = client.send_compressed(CompressionEncoding::Gzip);
    }
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    client.unary(Request::new(message), PathAndQuery::from_static(list.path()), RawCodec).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_what_the_protocols_read() {
        let aim = Aim::nowhere();
        let read = |list: List| list.message(3, &aim);
        let barrier = n::BarrierRequest::decode(read(List::BarrierN)).unwrap();
        assert_eq!((barrier.task_ids, barrier.incarnations), (vec![1; 3], Some(aim.life())));
        assert_eq!(t::BarrierRequest::decode(read(List::BarrierT)).unwrap().tasks.len(), 3);
        assert_eq!(n::GetAliveTasksRequest::decode(read(List::AliveN)).unwrap().task_ids, [1; 3]);
        assert_eq!(t::GetAliveTasksRequest::decode(read(List::AliveT)).unwrap().tasks.len(), 3);
        let held = tripod_proto::ray::IncrementRefCountRequest::decode(read(List::References)).unwrap();
        assert_eq!(held.objectid, [1; 3]);
    }
}
