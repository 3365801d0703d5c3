//! The life of a graph, with workers that are played.

use std::sync::Arc;

use tonic::Code;
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node, chunk, submission, sum_of_ones, tileable};

fn named(graph: &str) -> pb::StopGraphRequest {
    pb::StopGraphRequest { session_id: "s".to_owned(), graph_key: graph.to_owned(), ..Default::default() }
}

async fn delete(node: &Node, graph: &str) -> Result<u64, tonic::Status> {
    let request = pb::DeleteGraphRequest {
        session_id: "s".to_owned(),
        graph_key: graph.to_owned(),
        ..Default::default()
    };
    node.mars().delete_tileable_graph(request).await.map(|deleted| deleted.into_inner().freed_chunks)
}

#[tokio::test]
async fn a_graph_is_tiled_executed_in_order_and_told_of_until_it_is_deleted() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let submitted = node.submit("g", sum_of_ones()).await.expect("submitted");
    assert!(submitted.created && submitted.chunk_count > 4, "{submitted:?}");
    let info = node.ended("g").await;
    assert_eq!((info.state(), info.progress), (pb::GraphState::Succeeded, 1.0));
    assert_eq!((info.targets.as_slice(), info.graph_size), (&["s".to_owned()][..], submitted.chunk_count));
    let counts = info.subtask_counts.expect("counts");
    assert_eq!(counts.succeeded, submitted.chunk_count);
    assert!(info.end_time.is_some() && info.error.is_none());

    // What a chunk is made of was made before.
    let given = machine.given.lock().clone();
    for (place, chunk) in given.iter().enumerate() {
        for input in &chunk.inputs {
            assert!(given[..place].iter().any(|before| before.key == *input), "{} before {input}", chunk.key);
        }
    }
    let payload: serde_json::Value = serde_json::from_slice(&given[0].payload).expect("JSON");
    assert_eq!((given[0].op_type.as_str(), &payload["operator"]["op"]), ("full", &"full".into()));

    let nodes = node.info("g", &["node_states"]).await.expect("told").node_states;
    assert!(nodes.len() == given.len() && nodes.values().all(|state| state == "succeeded"), "{nodes:?}");
    assert!(delete(&node, "g").await.expect("deleted") > 0);
    assert_eq!(node.info("g", &[]).await.expect_err("gone").code(), Code::NotFound);
    assert_eq!(delete(&node, "g").await.expect_err("gone").code(), Code::NotFound);
}

#[tokio::test]
async fn the_same_graph_is_the_same_and_another_one_of_its_key_is_refused() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    assert!(node.submit("g", sum_of_ones()).await.expect("submitted").created);
    assert!(!node.submit("g", sum_of_ones()).await.expect("the same").created);
    let mut other = sum_of_ones();
    other[0].op_type = "zeros".to_owned();
    assert_eq!(node.submit("g", other).await.expect_err("another").code(), Code::AlreadyExists);
}

#[tokio::test]
async fn a_chain_of_chunks_is_one_task_if_the_graph_says_so() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let apart = node.submit("apart", sum_of_ones()).await.expect("submitted");
    node.ended("apart").await;
    assert!(machine.given.lock().iter().all(|chunk| chunk.op_type != "fused"));
    machine.given.lock().clear();
    let options = Some(pb::GraphOptions { fuse: true, ..Default::default() });
    let request = pb::SubmitTileableGraphRequest { options, ..submission("g", sum_of_ones()) };
    let fused = node.mars().submit_tileable_graph(request).await.expect("submitted").into_inner();
    // Each of the four chunks of ones is read by one sum alone.
    assert!(fused.chunk_count + 4 <= apart.chunk_count, "{} of {}", fused.chunk_count, apart.chunk_count);
    let info = node.ended("g").await;
    assert_eq!((info.state(), info.graph_size), (pb::GraphState::Succeeded, fused.chunk_count));
    let given = machine.given.lock().clone();
    assert_eq!(given.len() as u64, fused.chunk_count);
    assert!(given.iter().filter(|chunk| chunk.op_type == "fused").count() >= 4, "{given:?}");
    assert!(given.iter().all(|chunk| !chunk.key.starts_with("a:")), "a chain has the key of its end");
}

#[tokio::test]
async fn a_graph_of_nothing_succeeds() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let submitted = node.submit("g", Vec::new()).await.expect("submitted");
    assert_eq!((submitted.chunk_count, submitted.state()), (0, pb::GraphState::Succeeded));
}

#[tokio::test]
async fn a_chunk_that_fails_fails_its_graph_with_worker_and_traceback() {
    let node = Node::with_session().await;
    let text = "Traceback (most recent call last):\nValueError: no";
    let plays = Arc::new(
        move |chunk: &pb::ChunkNode| {
            if chunk.key.starts_with("s") { Err(text.to_owned()) } else { Ok(()) }
        },
    );
    let machine = Machine::playing(&node, plays).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    let info = node.ended("g").await;
    assert_eq!(info.state(), pb::GraphState::Failed);
    let error = info.error.expect("an error");
    assert_eq!((error.tileable_key.as_str(), error.worker_id.is_empty()), ("s", false), "{error:?}");
    assert!(error.traceback.contains("ValueError: no") && error.message.contains("no"), "{error:?}");
    assert!(!error.chunk_keys.is_empty() && !machine.keys().is_empty());
    // Others can follow.
    let ones = tileable("b", "ones", r#"{"shape":[2],"dtype":"f64"}"#, &[]);
    node.submit("h", vec![ones]).await.expect("submitted");
    assert_eq!(node.ended("h").await.state(), pb::GraphState::Succeeded);
}

#[tokio::test]
async fn a_graph_that_waits_is_stopped_and_only_then_deleted() {
    let node = Node::with_session().await;
    let _machine = Machine::holding(&node).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    let refused = delete(&node, "g").await.expect_err("it runs");
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let stopped = node.mars().stop_tileable_graph(named("g")).await.expect("stopped").into_inner();
    assert!([pb::GraphState::Cancelling, pb::GraphState::Cancelled].contains(&stopped.state()));
}

#[tokio::test]
async fn nothing_happens_to_a_graph_that_has_ended_when_it_is_stopped() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    node.ended("g").await;
    let stopped = node.mars().stop_tileable_graph(named("g")).await.expect("fine").into_inner();
    assert_eq!(stopped.state(), pb::GraphState::Succeeded);
    let unknown = node.mars().stop_tileable_graph(named("other")).await.expect_err("there is none");
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn a_wait_whose_time_is_over_is_no_error() {
    let node = Node::with_session().await;
    let _machine = Machine::holding(&node).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    let timeout = Some(prost_types::Duration { seconds: 0, nanos: 1_000_000 });
    let request = pb::WaitGraphRequest { session_id: "s".to_owned(), graph_key: "g".to_owned(), timeout };
    let waited = node.mars().wait_tileable_graph(request).await.expect("no error").into_inner();
    assert!(!waited.finished && waited.info.is_some());
}

#[tokio::test]
async fn metas_tell_of_tileables_and_chunks_in_the_order_of_their_keys() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let ones = tileable("a", "ones", r#"{"shape":[5],"dtype":"f64","chunks":2}"#, &[]);
    node.submit("g", vec![ones]).await.expect("submitted");
    node.ended("g").await;
    let keys = |keys: &[&str], fields: &[&str]| pb::GetMetasRequest {
        session_id: "s".to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        filter_fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        stale_ok: false,
    };
    let asked = keys(&["nothing", "a"], &[]);
    let metas = node.mars().get_tileable_metas(asked).await.expect("told").into_inner().metas;
    assert_eq!(metas.iter().map(|meta| meta.found).collect::<Vec<_>>(), [false, true]);
    let meta = &metas[1];
    assert_eq!(meta.shape.clone().expect("a shape").extents, [5]);
    assert_eq!((meta.chunk_keys.join(" "), meta.graph_key.as_str()), ("a:0 a:1 a:2".to_owned(), "g"));
    assert_eq!(
        (meta.dtype(), meta.kind(), meta.order.as_str()),
        (pb::ElementType::F64, pb::TileableKind::Tensor, "C")
    );

    let asked = keys(&["a:2", "a:9"], &[]);
    let metas = node.mars().get_chunk_metas(asked).await.expect("told").into_inner().metas;
    assert_eq!(metas.iter().map(|meta| meta.found).collect::<Vec<_>>(), [true, false]);
    assert_eq!((metas[0].index.as_slice(), metas[0].nbytes), (&[2][..], Some(8)));
    assert_eq!(metas[0].workers[0].worker_id, machine.address);
    assert!(metas[0].object_id.is_some());

    let asked = keys(&["a:2"], &["nbytes"]);
    let metas = node.mars().get_chunk_metas(asked).await.expect("told").into_inner().metas;
    assert!(metas[0].nbytes.is_some() && metas[0].workers.is_empty());

    let decref = |counts: &[u64]| pb::DecrefTileablesRequest {
        session_id: "s".to_owned(),
        keys: vec!["a".to_owned()],
        counts: counts.to_vec(),
        ..Default::default()
    };
    let wrong = node.mars().decref_tileables(decref(&[])).await.expect_err("no counts");
    assert_eq!(wrong.code(), Code::InvalidArgument);
    node.mars().decref_tileables(decref(&[1])).await.expect("dropped");
    let metas = node.mars().get_chunk_metas(keys(&["a:2"], &[])).await.expect("told").into_inner().metas;
    assert!(metas[0].object_id.is_none(), "{metas:?}");
}

#[tokio::test]
async fn a_graph_of_chunks_has_any_operators_and_reads_chunks_of_the_session() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let submit = |key: &str, nodes| pb::SubmitChunkGraphRequest {
        session_id: "s".to_owned(),
        graph_key: key.to_owned(),
        graph: Some(pb::ChunkGraph { nodes }),
        ..Default::default()
    };
    let wait = |key: &str| pb::WaitGraphRequest {
        session_id: "s".to_owned(),
        graph_key: key.to_owned(),
        timeout: None,
    };
    let nodes = vec![chunk("y", &["x"]), chunk("x", &[])];
    let submitted = node.mars().submit_chunk_graph(submit("g", nodes)).await.expect("submitted").into_inner();
    assert_eq!(submitted.chunk_count, 2);
    let ended = node.mars().wait_chunk_graph(wait("g")).await.expect("there").into_inner();
    assert_eq!(ended.info.expect("an info").state(), pb::GraphState::Succeeded);
    let next = node.mars().submit_chunk_graph(submit("h", vec![chunk("z", &["y"])])).await;
    next.expect("a chunk of the session is an input");
    let ended = node.mars().wait_chunk_graph(wait("h")).await.expect("there").into_inner();
    assert_eq!(ended.info.expect("an info").state(), pb::GraphState::Succeeded);
    assert_eq!(machine.keys(), ["x", "y", "z"]);
    // Each kind has its own keys.
    assert_eq!(node.info("g", &[]).await.expect_err("of the other kind").code(), Code::NotFound);
}

#[tokio::test]
async fn of_ten_chunks_that_fail_the_graph_tells_one_and_nothing_of_them_stays() {
    let node = Node::with_session().await;
    let plays = |chunk: &pb::ChunkNode| Err(format!("Traceback\nKeyError: '{}'", chunk.key));
    let _machine = Machine::playing(&node, Arc::new(plays)).await;
    let nodes = (0..10).map(|number| chunk(&format!("f{number}"), &[])).collect();
    let request = pb::SubmitChunkGraphRequest {
        session_id: "s".to_owned(),
        graph_key: "g".to_owned(),
        graph: Some(pb::ChunkGraph { nodes }),
        ..Default::default()
    };
    node.mars().submit_chunk_graph(request).await.expect("submitted");
    let wait = pb::WaitGraphRequest { session_id: "s".to_owned(), graph_key: "g".to_owned(), timeout: None };
    let info = node.mars().wait_chunk_graph(wait).await.expect("there").into_inner().info.expect("an info");
    assert_eq!(info.state(), pb::GraphState::Failed);
    let error = info.error.expect("an error");
    assert_eq!(error.message, format!("KeyError: '{}'", error.chunk_keys[0]), "{error:?}");
    let counts = info.subtask_counts.expect("counts");
    assert!(counts.errored >= 1 && counts.errored + counts.cancelled == 10, "{counts:?}");
    let metas = pb::GetMetasRequest {
        session_id: "s".to_owned(),
        keys: (0..10).map(|number| format!("f{number}")).collect(),
        ..Default::default()
    };
    let metas = node.mars().get_chunk_metas(metas).await.expect("told").into_inner().metas;
    assert!(metas.iter().all(|meta| meta.object_id.is_none() && meta.workers.is_empty()), "{metas:?}");
}

#[tokio::test]
async fn extents_that_only_execution_tells_are_told_when_it_has() {
    let node = Node::with_session().await;
    let nodes = vec![
        tileable("a", "ones", r#"{"shape":[4],"dtype":"f64","chunks":2}"#, &[]),
        tileable("m", "ones", r#"{"shape":[4],"dtype":"bool","chunks":2}"#, &[]),
        tileable("b", "compress", r#"{"axis":0}"#, &["a", "m"]),
    ];
    node.submit("g", nodes).await.expect("submitted");
    assert_eq!(shape_and_nsplits(&node, "b").await, (vec![-1], vec![vec![-1, -1]]));
    // Played workers make one element where nobody knows.
    let _machine = Machine::start(&node).await;
    node.ended("g").await;
    assert_eq!(shape_and_nsplits(&node, "b").await, (vec![2], vec![vec![1, 1]]));
}

async fn shape_and_nsplits(node: &Node, key: &str) -> (Vec<i64>, Vec<Vec<i64>>) {
    let keys = vec![key.to_owned()];
    let request = pb::GetMetasRequest { session_id: "s".to_owned(), keys, ..Default::default() };
    let metas = node.mars().get_tileable_metas(request).await.expect("told").into_inner().metas;
    let nsplits = metas[0].nsplits.iter().map(|axis| axis.extents.clone()).collect();
    (metas[0].shape.clone().expect("a shape").extents, nsplits)
}
