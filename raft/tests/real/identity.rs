//! The file that says whose a data directory is. A simulated disk has none.

use std::fs;
use std::sync::Arc;

use tripod_proto::code::Code;
use tripod_raft::{Handle, Options, StartError, World};
use tripod_state::ids::NodeId;
use tripod_state::level::{FIRST, NEWEST};
use tripod_wait::until;

use crate::common::{Cluster, Ground, hooks};

/// Starts a build that does not write into the file, however long it runs, what level its directory needs.
async fn start(options: &Options) -> Result<Handle, StartError> {
    let world = World::real().limited_to(FIRST);
    Handle::start_in(world, options.clone(), hooks(NodeId(1), &Arc::default())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_the_identity_is_harmless_or_noticed() {
    let cluster = Cluster::prepared(Ground::real(), 1, |_| {});
    start(&cluster.options[0]).await.unwrap().shutdown().await;
    let file = cluster.data(1).join("identity.json");
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, &flipped).unwrap();
        match start(&cluster.options[0]).await {
            Ok(node) => {
                // White space, or an older format: it is the same owner.
                assert_eq!(node.status().node, NodeId(1));
                node.shutdown().await;
            }
            Err(error) => {
                let text = error.to_string();
                let of_identity = |code: Code| code.slug().starts_with("identity-");
                assert!(Code::find(&text).is_some_and(of_identity), "byte {at}: {text}");
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
    for left in [&whole[..0], &whole[..whole.len() / 2]] {
        fs::write(&file, left).unwrap();
        let Err(error) = start(&cluster.options[0]).await else { panic!("started with half an identity") };
        assert!(error.to_string().starts_with("T4101 identity-unreadable"), "{error}");
    }
    // The log knows whose it is, so the file can be made anew.
    fs::remove_file(&file).unwrap();
    start(&cluster.options[0]).await.unwrap().shutdown().await;
    assert_eq!(fs::read(&file).unwrap(), whole);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_says_which_level_its_directory_needs_stops_a_build_of_the_level_before() {
    let mut cluster = Cluster::start_real(1, |_| {}).await;
    let file = cluster.data(1).join("identity.json");
    until("a file that says what its directory needs", || {
        let text = fs::read_to_string(&file).unwrap();
        text.contains(&format!("\"level\": {NEWEST}")).then_some(())
    })
    .await;
    cluster.stop_node(1).await;
    let refusal = cluster.start_as(1, FIRST).await.unwrap_err().to_string();
    assert!(refusal.starts_with("T4102 identity-format: "), "{refusal}");
}
