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
    let cases = [
        vec![chunk("a", &["b"]), chunk("b", &["a"])],
        vec![chunk("a", &[]), chunk("a", &[])],
        vec![pb::ChunkNode { op_type: String::new(), ..chunk("a", &[]) }],
        vec![large],
    ];
    for nodes in cases {
        let status = node.mars().submit_chunk_graph(submit(nodes)).await.expect_err("refused");
        assert!(
            status.code() == Code::InvalidArgument && status.message().starts_with("chunk a"),
            "{status}"
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
