//! Definitions of what is written in place.

use tonic::{Code, Status};
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node};

pub(crate) fn tensor(name: &str) -> pb::CreateMutableTensorRequest {
    pb::CreateMutableTensorRequest {
        session_id: "s".to_owned(),
        name: name.to_owned(),
        shape: vec![5],
        dtype: pb::ElementType::F64.into(),
        chunk_size: vec![2],
        ..Default::default()
    }
}

pub(crate) async fn get(node: &Node, name: &str, chunk_key: &str) -> Result<pb::MutableInfo, Status> {
    let request = pb::GetMutableTileableRequest {
        session_id: "s".to_owned(),
        name: name.to_owned(),
        chunk_key: chunk_key.to_owned(),
    };
    let answer = node.mars().get_mutable_tileable(request).await?.into_inner();
    Ok(answer.info.expect("an info"))
}

#[tokio::test]
async fn how_far_mutables_are_is_told_by_their_numbers_and_none_is_deleted() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let made = node.mars().create_mutable_tensor(tensor("m")).await.expect("made").into_inner();
    let id = made.info.expect("an info").id;
    let states = async |ids: Vec<u64>| {
        let answer = node.mars().get_mutable_states(pb::GetMutableStatesRequest { ids }).await?.into_inner();
        let header = answer.header.clone().expect("a header");
        assert!(header.applied_index >= id && !header.cluster_id.is_empty(), "{header:?}");
        Ok::<Vec<_>, Status>(answer.states().collect())
    };
    let (open, deleted) = (pb::MutableState::Open, pb::MutableState::Deleted);
    assert_eq!(states(vec![id, id + 1, id]).await.expect("told"), [open, deleted, open]);
    let delete = pb::DeleteMutableTileableRequest {
        session_id: "s".to_owned(),
        name: "m".to_owned(),
        ..Default::default()
    };
    node.mars().delete_mutable_tileable(delete).await.expect("gone");
    assert_eq!(states(vec![id]).await.expect("told"), [deleted]);
    let refused = states(vec![1; 1001]).await.expect_err("too many");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}

#[tokio::test]
async fn a_mutable_is_made_once_and_found_by_its_name_and_by_its_chunks() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let made = node.mars().create_mutable_tensor(tensor("m")).await.expect("made").into_inner();
    let info = made.info.expect("an info");
    assert!(made.created && info.state() == pb::MutableState::Open && info.dtype() == pb::ElementType::F64);
    assert_eq!(info.nsplits[0].extents, [2, 2, 1]);
    assert_eq!(info.chunks.iter().map(|chunk| chunk.shape[0]).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(info.chunks[2].workers, *std::slice::from_ref(&machine.address));
    assert_eq!(info.default_values, [pb::Scalar { value: Some(pb::scalar::Value::Fraction(0.0)) }]);

    assert_eq!(get(&node, "m", "").await.expect("found"), info);
    assert_eq!(get(&node, "", &info.chunks[1].key).await.expect("found"), info);
    assert_eq!(get(&node, "x", "").await.expect_err("none").code(), Code::NotFound);
    assert_eq!(get(&node, "", "x").await.expect_err("none").code(), Code::NotFound);
    assert_eq!(get(&node, "", &"0".repeat(32)).await.expect_err("none").code(), Code::NotFound);
    // Of several each chunk has its own, also when the keys of all were made once.
    let other = pb::CreateMutableTensorRequest { shape: vec![70], ..tensor("n") };
    let other =
        node.mars().create_mutable_tensor(other).await.expect("made").into_inner().info.expect("an info");
    for known in [&other, &info, &other] {
        let found = get(&node, "", &known.chunks[0].key).await.expect("found");
        assert_eq!(found.name, known.name);
    }

    let again = node.mars().create_mutable_tensor(tensor("m")).await.expect_err("it is there");
    assert_eq!(again.code(), Code::AlreadyExists);
    let fine = pb::CreateMutableTensorRequest { if_not_exist: true, ..tensor("m") };
    assert!(!node.mars().create_mutable_tensor(fine.clone()).await.expect("fine").into_inner().created);
    let other = pb::CreateMutableTensorRequest { shape: vec![6], ..fine };
    let refused = node.mars().create_mutable_tensor(other).await.expect_err("another");
    assert_eq!(refused.code(), Code::FailedPrecondition);

    let delete = |if_exist| pb::DeleteMutableTileableRequest {
        session_id: "s".to_owned(),
        name: "m".to_owned(),
        if_exist,
        ..Default::default()
    };
    assert!(node.mars().delete_mutable_tileable(delete(false)).await.expect("gone").into_inner().deleted);
    let gone = node.mars().delete_mutable_tileable(delete(false)).await.expect_err("it is gone");
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(get(&node, "", &info.chunks[1].key).await.expect_err("gone").code(), Code::NotFound);
    assert!(!node.mars().delete_mutable_tileable(delete(true)).await.expect("fine").into_inner().deleted);
}

#[tokio::test]
async fn a_frame_that_is_named_by_nobody_gets_a_name() {
    let node = Node::with_session().await;
    let _machine = Machine::start(&node).await;
    let request = pb::CreateMutableDataFrameRequest {
        session_id: "s".to_owned(),
        rows: 4,
        columns: vec![pb::Column { name: "a".to_owned(), dtype: pb::ElementType::Text.into() }],
        chunk_rows: 3,
        ..Default::default()
    };
    let made = node.mars().create_mutable_data_frame(request).await.expect("made").into_inner();
    let info = made.info.expect("an info");
    assert!(made.created && info.name.len() == 32 && info.columns.len() == 1);
    assert_eq!(info.nsplits[0].extents, [3, 1]);
}

#[tokio::test]
async fn without_an_object_store_and_with_a_wrong_definition_nothing_is_made() {
    let node = Node::with_session().await;
    let nowhere = node.mars().create_mutable_tensor(tensor("m")).await.expect_err("no store");
    assert!(matches!(nowhere.code(), Code::Unavailable | Code::FailedPrecondition), "{nowhere}");
    let wrong = pb::CreateMutableTensorRequest { chunk_size: vec![0], ..tensor("m") };
    let refused = node.mars().create_mutable_tensor(wrong).await.expect_err("no chunks");
    assert!(refused.code() == Code::InvalidArgument && refused.message().starts_with("chunk_size"));
}
