//! Everything that is refused before anything is committed, with node and reason.

use tonic::{Code, Status};
use tripod_gateway::Mishap;
use tripod_proto::mars::v1 as pb;
use tripod_state::Command;

use crate::support::{Machine, Node, chunk, submission, tileable};

const ONES: &str = r#"{"shape":[4],"dtype":"f64","chunks":2}"#;

fn ones(key: &str) -> pb::TileableNode {
    tileable(key, "ones", ONES, &[])
}

/// Nothing about sessions may be proposed from now on.
fn forbid_commands(node: &Node) {
    node.backend.set_mishaps(|envelope| {
        assert!(!matches!(envelope.command, Command::Mars(_)), "{:?}", envelope.command);
        Mishap::Success
    });
}

async fn refused(node: &Node, nodes: Vec<pb::TileableNode>) -> Status {
    node.submit("g", nodes).await.expect_err("it is refused")
}

#[allow(clippy::too_many_lines, reason = "a list of what is refused")]
#[tokio::test]
async fn what_cannot_be_tiled_is_refused_with_node_and_reason_and_nothing_is_committed() {
    let node = Node::with_session().await;
    forbid_commands(&node);
    let negative = r#"{"function":"neg"}"#;
    let mut declared = ones("a");
    declared.dtype = pb::ElementType::I32.into();
    declared.shape = Some(pb::Extents { extents: vec![4] });
    let mut greedy = ones("a");
    greedy.resources = Some(pb::Resources { gpu: 2_000_000, ..Default::default() });
    let mut mistaken = ones("a");
    mistaken.payload = b"{".to_vec().into();
    let cases: Vec<(&str, Vec<pb::TileableNode>, Code, &str)> = vec![
        (
            "a cycle",
            vec![tileable("a", "unary", negative, &["b"]), tileable("b", "unary", negative, &["a"])],
            Code::InvalidArgument,
            "in a cycle",
        ),
        (
            "an unknown input",
            vec![tileable("a", "unary", negative, &["x"])],
            Code::InvalidArgument,
            "unknown input x",
        ),
        (
            "an unknown operator",
            vec![tileable("a", "sort", "", &[])],
            Code::Unimplemented,
            "unknown operator sort",
        ),
        (
            "one for tests",
            vec![ones("b"), tileable("a", "sleep", r#"{"ms":1}"#, &["b"])],
            Code::Unimplemented,
            "turned off",
        ),
        ("another type", vec![declared], Code::InvalidArgument, "declared as i32[4]"),
        ("no JSON", vec![mistaken], Code::InvalidArgument, "attributes of ones"),
        ("a key twice", vec![ones("a"), ones("a")], Code::InvalidArgument, "two tileables have this key"),
        ("no key", vec![ones("a b")], Code::InvalidArgument, "no key"),
        (
            "shapes that do not go together",
            vec![
                ones("b"),
                tileable("c", "ones", r#"{"shape":[3],"dtype":"f64"}"#, &[]),
                tileable("a", "binary", r#"{"function":"add","left":"input","right":"input"}"#, &["b", "c"]),
            ],
            Code::InvalidArgument,
            "do not go together",
        ),
        (
            "an axis below the first",
            vec![ones("b"), tileable("a", "reduce", r#"{"function":"sum","axes":[-2]}"#, &["b"])],
            Code::InvalidArgument,
            "axis -2 of 1",
        ),
        (
            "an index behind the last",
            vec![ones("b"), tileable("a", "take", r#"{"indices":[4],"axis":0}"#, &["b"])],
            Code::InvalidArgument,
            "index 4",
        ),
        (
            "the largest of nothing",
            vec![
                tileable("b", "ones", r#"{"shape":[0,0],"dtype":"f64"}"#, &[]),
                tileable("a", "reduce", r#"{"function":"max","axes":[0]}"#, &["b"]),
            ],
            Code::InvalidArgument,
            "no elements",
        ),
        ("more than any worker has", vec![greedy], Code::InvalidArgument, "2000000 gpu, and the limit is"),
        (
            "too large",
            vec![tileable("a", "ones", r#"{"shape":[1125899906842625],"dtype":"f64"}"#, &[])],
            Code::InvalidArgument,
            "bytes",
        ),
        (
            "too many chunks",
            vec![tileable("a", "ones", r#"{"shape":[10000000],"dtype":"f64","chunks":1}"#, &[])],
            Code::InvalidArgument,
            "more chunks than",
        ),
    ];
    for (what, nodes, code, text) in cases {
        let status = refused(&node, nodes).await;
        assert_eq!(status.code(), code, "{what}: {status}");
        assert!(status.message().contains(text), "{what}: {status}");
        assert!(status.message().contains("tileable a"), "{what}: {status}");
    }
    let mut request = submission("g", vec![ones("a")]);
    request.target_keys = vec!["x".to_owned()];
    let status = node.mars().submit_tileable_graph(request).await.expect_err("an unknown target");
    assert!(
        status.code() == Code::InvalidArgument && status.message().contains("unknown target x"),
        "{status}"
    );
}

#[tokio::test]
async fn a_chunk_graph_that_is_none_is_refused_with_the_node() {
    let node = Node::with_session().await;
    forbid_commands(&node);
    let submit = |nodes: Vec<pb::ChunkNode>| pb::SubmitChunkGraphRequest {
        session_id: "s".to_owned(),
        graph_key: "g".to_owned(),
        graph: Some(pb::ChunkGraph { nodes }),
        ..Default::default()
    };
    let mut large = chunk("a", &[]);
    large.data = vec![0; 2 << 20].into();
    let greedy = Some(pb::Resources { slots: 2_000_000, ..Default::default() });
    let cases = [
        (vec![chunk("a", &["b"]), chunk("b", &["a"])], "is made of itself"),
        (vec![chunk("c", &["b"]), chunk("b", &["a"]), chunk("a", &["a"])], "is made of itself"),
        (vec![chunk("a", &[]), chunk("a", &[])], "twice"),
        (vec![pb::ChunkNode { op_type: String::new(), ..chunk("a", &[]) }], "no operator"),
        (vec![pb::ChunkNode { dtype: 77, ..chunk("a", &[]) }], "dtype: there is no 77"),
        (vec![pb::ChunkNode { index: vec![0; 33], ..chunk("a", &[]) }], "more axes than 32"),
        (vec![pb::ChunkNode { resources: greedy, ..chunk("a", &[]) }], "2000000 slots, and the limit is"),
        (vec![large], "bytes, and the limit is"),
    ];
    for (nodes, text) in cases {
        let status = node.mars().submit_chunk_graph(submit(nodes)).await.expect_err("refused");
        let told = status.message();
        assert!(
            status.code() == Code::InvalidArgument && told.starts_with("chunk a") && told.contains(text),
            "{text}: {status}"
        );
    }
    let mut wanted = submit(vec![chunk("a", &[])]);
    wanted.target_keys = vec!["x".to_owned()];
    let status = node.mars().submit_chunk_graph(wanted).await.expect_err("an unknown target");
    assert!(status.code() == Code::InvalidArgument && status.message().ends_with("is x"), "{status}");
}

#[tokio::test]
async fn who_names_the_worker_of_a_chunk_is_told_that_the_scheduler_chooses() {
    let node = Node::with_session().await;
    forbid_commands(&node);
    let placed = pb::ChunkNode { expect_workers: vec!["10.0.0.1:1".to_owned()], ..chunk("a", &[]) };
    let request = pb::SubmitChunkGraphRequest {
        session_id: "s".to_owned(),
        graph_key: "g".to_owned(),
        graph: Some(pb::ChunkGraph { nodes: vec![placed] }),
        ..Default::default()
    };
    let status = node.mars().submit_chunk_graph(request).await.expect_err("refused");
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
    assert!(status.message().starts_with("chunk a: expect_workers"), "{status}");
}

#[tokio::test]
async fn unknown_fields_are_refused_by_every_call_with_those_that_there_are() {
    let node = Node::with_session().await;
    forbid_commands(&node);
    let (mut mars, colour) = (node.mars(), || vec!["colour".to_owned()]);
    let graph = || pb::GetGraphInfoRequest { filter_fields: colour(), ..Default::default() };
    let metas = || pb::GetMetasRequest { filter_fields: colour(), ..Default::default() };
    let schedulers = pb::GetSchedulersInfoRequest { filter_fields: colour(), ..Default::default() };
    let workers = pb::GetWorkersInfoRequest { filter_fields: colour(), ..Default::default() };
    let refusals = [
        ("role", mars.get_schedulers_info(schedulers).await.map(drop)),
        ("slots", mars.get_workers_info(workers).await.map(drop)),
        ("node_states", mars.get_tileable_graph_info(graph()).await.map(drop)),
        ("node_states", mars.get_chunk_graph_info(graph()).await.map(drop)),
        ("nsplits", mars.get_tileable_metas(metas()).await.map(drop)),
        ("store_bytes", mars.get_chunk_metas(metas()).await.map(drop)),
    ];
    for (known, refused) in refusals {
        let status = refused.expect_err("there is no such field");
        let told = status.message();
        assert!(
            status.code() == Code::InvalidArgument && told.contains("colour") && told.contains(known),
            "{known}: {status}"
        );
    }
}

#[tokio::test]
async fn a_graph_that_no_worker_can_ever_run_is_refused_with_the_node() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let mut huge = ones("a");
    huge.resources = Some(pb::Resources { gpu: 8, ..Default::default() });
    let status = refused(&node, vec![huge]).await;
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(status.message().contains("a:0") && status.message().contains("gpu"), "{status}");
}

#[tokio::test]
async fn unknown_fields_sessions_and_graphs_are_told_apart() {
    let node = Node::with_session().await;
    let status = node.info("g", &["colour"]).await.expect_err("no such field");
    assert!(status.code() == Code::InvalidArgument && status.message().contains("progress"), "{status}");
    assert_eq!(node.info("g", &[]).await.expect_err("no such graph").code(), Code::NotFound);
    let mut request = submission("g", vec![ones("a")]);
    request.session_id = "nobody".to_owned();
    let status = node.mars().submit_tileable_graph(request).await.expect_err("no such session");
    assert!(status.code() == Code::NotFound && status.message().contains("nobody"), "{status}");
    let metas = pb::GetMetasRequest {
        session_id: "s".to_owned(),
        filter_fields: vec!["colour".to_owned()],
        ..Default::default()
    };
    let status = node.mars().get_chunk_metas(metas).await.expect_err("no such field");
    assert!(status.message().contains("store_bytes"), "{status}");
}

#[tokio::test]
async fn a_message_that_is_too_large_says_how_a_graph_comes_in_parts() {
    let node = Node::with_session().await;
    let mut brought = ones("a");
    brought.data = vec![0; 20 << 20].into();
    let status = refused(&node, vec![brought]).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("in parts"), "{status}");
}
