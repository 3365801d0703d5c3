//! F2 and F8: sessions of others, and all of them.

use bytes::Bytes;
use tripod_client::{Client, Condition, Config, Consistency};
use tripod_processes::attack::sessions;
use tripod_wait::deadline;

use crate::scene::{Scene, bounds};

/// Writes of a client that has a session.
const STAMPED: usize = 60;

/// A stranger's commands were executed with the numbers that the nodes' own sessions were about to use, and whatever ordinary
/// clients wrote was acknowledged and not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_guessed_sessions_swallow_no_write_of_others() {
    let mut scene = Scene::start().await;
    let bounds = bounds(3_200, 20);
    let own =
        Client::new(&Config { endpoints: scene.cluster.endpoints(), timeout: deadline() }).unwrap().kv("");
    let writes = async {
        for number in 0..STAMPED {
            let value = Bytes::from(format!("{number}"));
            own.put(&format!("stamped/{number}"), value, Condition::Always).await.unwrap();
        }
    };
    let guesses = scene.attack("guessed sessions", async |aim| sessions::guess(aim, bounds, 1).await);
    let (tally, ()) = futures::join!(guesses, writes);
    assert_eq!(tally.total(), 3_200, "{tally}");
    // With the stamps of a session of its own.
    for number in 0..STAMPED {
        let read = own.get(&format!("stamped/{number}"), Consistency::Linearizable).await.unwrap();
        assert_eq!(read.unwrap().value, format!("{number}"));
    }
    let testimony = scene.end().await;
    assert_eq!(testimony.failed, 0, "{testimony}");
}

/// A node that was started again could not open its own session, and every write through it hung.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_a_node_has_a_session_when_a_client_takes_all_that_there_are() {
    let mut scene = Scene::start().await;
    let bounds = bounds(200_000, 8);
    let tally = scene.attack("all sessions", async |aim| sessions::open(aim, bounds).await).await;
    assert!(tally.of("ResourceExhausted") > 0, "nobody was refused one: {tally}");
    scene.cluster.kill(1).unwrap();
    scene.cluster.restart(1).unwrap();
    let config = Config { endpoints: vec![scene.cluster.endpoint(1)], timeout: deadline() };
    let kv = Client::new(&config).unwrap().kv("");
    kv.put("through/node/1", Bytes::from_static(b"v"), Condition::Always).await.unwrap();
    scene.end().await;
}
