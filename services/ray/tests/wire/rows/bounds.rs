//! F25: bounds, over the wire.

use tonic::{Code, Status};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_state::ids::Sequence;
use tripod_state::ray::ids::{ClientSession, ObjectId};
use tripod_state::ray::{self, Origin, Request, Stamp, limits};
use tripod_state::{Command, Scope};

use super::play::{Play, everywhere};
use crate::support::{Cluster, Kind, reason, submission, with};

const SESSION: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;

/// As many calls of one session as may be unacknowledged. They need not come over the wire.
async fn fill(cluster: &Cluster, object: u64) {
    let scope = Scope { job: cluster.job, service: None };
    for sequence in 1..=limits::SESSION_WINDOW {
        let stamp = Stamp {
            session: ClientSession(SESSION),
            sequence: Sequence(sequence),
            acknowledged_below: Sequence(1),
        };
        let origin = Origin { stamp: Some(stamp), process: None };
        let request = Request::AddReferences { objects: vec![ObjectId(object)] };
        let command = Command::Ray(ray::Command::Ask { scope, origin, request });
        cluster.gateway.submit(command).await.expect("in memory").expect("there is room");
    }
}

/// One reference more, by the call after those, of whose answers the client has these.
async fn adds(play: &Play, object: u64, acknowledged: u64) -> Result<(), Status> {
    let (session, seq) = (format!("{SESSION:032x}"), (limits::SESSION_WINDOW + 1).to_string());
    let acked = acknowledged.to_string();
    let headers =
        [(metadata::RAY_SESSION, &*session), (metadata::RAY_SEQ, &*seq), (metadata::RAY_ACKED, &*acked)];
    let request = with(pb::IncrementRefCountRequest { objectid: vec![object] }, &headers);
    play.cluster.scheduler().increment_ref_count(request).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn f25_a_session_with_too_many_answers_that_nobody_acknowledged_takes_no_more_until_some_are() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let driver = play.cluster.driver(&store).await;
            let object = play.put(driver, &store).await;
            fill(&play.cluster, object).await;
            play.step().await;
            let count = play.cluster.count(object).await;
            let refused = adds(play, object, 0).await.unwrap_err();
            assert_eq!((refused.code(), reason(&refused)), (Code::ResourceExhausted, "session-window"));
            assert_eq!(play.cluster.count(object).await, count);
            play.step().await;
            adds(play, object, limits::SESSION_WINDOW).await.expect("there is room again");
            assert_eq!(play.cluster.count(object).await, count + 1);
            play.step().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f25_a_task_beyond_its_bytes_is_refused_and_the_next_one_is_taken() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let worker = play.cluster.worker(&store, &[("f", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            let value = |bytes: usize| {
                let pyobj_data = Some(pb::PyObj { data: vec![7; bytes].into() });
                pb::Value { id: 0, obj: Some(pb::Obj { pyobj_data, ..Default::default() }) }
            };
            let large = value(usize::try_from(limits::TASK_BYTES_MAX).expect("small"));
            let request = submission(driver, "f", vec![large]);
            let refused = play.cluster.scheduler().submit_task(request).await.unwrap_err();
            assert_eq!((refused.code(), reason(&refused)), (Code::ResourceExhausted, "full"));
            play.step().await;
            assert_eq!(play.submit(driver, "f", vec![value(100)]).await, [0], "no id was used up");
            assert_eq!(play.runs(&worker, &store).await.operationid, Some(0));
            play.cluster.settled().await;
        })
    })
    .await;
}
