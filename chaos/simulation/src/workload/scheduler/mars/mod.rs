//! Sessions of Mars on the stores and workers of the scheduler: graphs of chunks that are numbers, and mutable tensors.
//!
//! Cells of tensors are not here: real stores keep them in files, and write those on threads. What is simulated of a tensor is
//! what the log knows: its epochs, its owners, its seal. The stores say that they have sealed what they were told to, or
//! cannot, and make the objects.
//!
//! | module | what |
//! |---|---|
//! | `call` | one call to a node, as it stands in the history |
//! | `graphs` | graphs that are submitted, looked at, heard of, stopped, read and deleted |
//! | `tensors` | mutable tensors that are created, looked at, sealed and deleted |
//! | `chunks` | what a store is told of chunks; what a worker reads of a task |

mod call;
mod chunks;
mod graphs;
mod tensors;

pub(super) use chunks::{Chunks, chunk_of};

use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scheduler_client::SchedulerClient;

use super::{JOB, Machine};
use crate::client::{Answer, Client, to_job};
use crate::witness::{micros, now};

/// Uses sessions until the run ends, and leaves nothing behind.
pub(super) async fn run(machine: &Machine, [graphs, tensors]: [Client; 2]) {
    let recorder = machine.witness.recorder();
    // Any of them may be gone at any time, with what it has.
    let deadly = machine.losses.then(|| recorder.fault(micros(now()), "kill-peers", "stores and workers"));
    futures::join!(graphs::run(machine, graphs), tensors::run(tensors));
    if let Some(deadly) = deadly {
        deadly.heal(micros(now()));
    }
}

/// Tries until there is a session of that name.
async fn create(client: &mut Client, session: &str) {
    loop {
        let mut mars = SchedulerClient::new(client.channel());
        let request = pb::CreateSessionRequest {
            session_id: session.to_owned(),
            if_not_exist: true,
            ..Default::default()
        };
        let sent = async move { mars.create_session(to_job(JOB, request)).await };
        if let Answer::Yes(_) = client.ask(sent).await {
            return;
        }
        client.pause(200).await;
    }
}

/// Tries until there is none, and nothing of it.
async fn delete(client: &mut Client, session: &str) {
    loop {
        let mut mars = SchedulerClient::new(client.channel());
        let request =
            pb::DeleteSessionRequest { session_id: session.to_owned(), if_exist: true, ..Default::default() };
        let sent = async move { mars.delete_session(to_job(JOB, request)).await };
        if let Answer::Yes(_) = client.ask(sent).await {
            return;
        }
        client.pause(200).await;
    }
}
