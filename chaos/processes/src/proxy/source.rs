//! Which node has opened a connection: the kernel knows, and no node has to tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::cluster::connections::holders;

/// A socket may be handed from one table to the other while we look.
const LOOKS: u32 = 5;
/// Pause between two looks. One look answers for every connection that came meanwhile: nodes that are refused
/// come again and again, and each look reads all of the kernel's tables.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Connections that may wait for a look.
const WAITING_MAX: usize = 4_096;

/// The local and the remote port of whoever opened the connection.
type Ports = (u16, u16);

/// The nodes' processes. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Processes {
    pids: Arc<Mutex<BTreeMap<u64, u32>>>,
    questions: mpsc::Sender<Question>,
}

#[derive(Debug)]
struct Question {
    ports: Ports,
    looks: u32,
    answer: oneshot::Sender<Option<u64>>,
}

impl Processes {
    /// Knows nobody yet. The task that looks ends with the handle.
    pub(super) fn watch() -> (Self, AbortHandle) {
        let (questions, asked) = mpsc::channel(WAITING_MAX);
        let pids = Arc::new(Mutex::new(BTreeMap::new()));
        let looking = tokio::spawn(look(Arc::clone(&pids), asked)).abort_handle();
        (Self { pids, questions }, looking)
    }

    pub(super) fn started(&self, node: u64, pid: u32) {
        self.pids.lock().insert(node, pid);
    }

    /// The node that holds the socket from port `local` to port `remote`; `None` if it is gone.
    pub(super) async fn node_of(&self, local: u16, remote: u16) -> Option<u64> {
        let (answer, answered) = oneshot::channel();
        let question = Question { ports: (local, remote), looks: 0, answer };
        self.questions.send(question).await.ok()?;
        answered.await.ok()?
    }
}

/// Answers all questions that have gathered with one look, again and again.
async fn look(pids: Arc<Mutex<BTreeMap<u64, u32>>>, mut asked: mpsc::Receiver<Question>) {
    let mut open: Vec<Question> = Vec::new();
    loop {
        if open.is_empty() && asked.recv_many(&mut open, WAITING_MAX).await == 0 {
            return;
        }
        while let Ok(question) = asked.try_recv() {
            open.push(question);
        }
        let nodes: BTreeMap<u32, u64> = pids.lock().iter().map(|(node, pid)| (*pid, *node)).collect();
        let wanted: Vec<Ports> = open.iter().map(|question| question.ports).collect();
        let found = tokio::task::spawn_blocking(move || {
            let pids: Vec<u32> = nodes.keys().copied().collect();
            let held = holders(&pids, &wanted).into_iter();
            held.map(|(ports, pid)| (ports, nodes[&pid])).collect::<BTreeMap<Ports, u64>>()
        });
        let found = found.await.unwrap_or_default();
        for mut question in std::mem::take(&mut open) {
            let node = found.get(&question.ports).copied();
            question.looks += 1;
            if node.is_some() || question.looks == LOOKS {
                // Nobody waits any more if the network has ended.
                let _ = question.answer.send(node);
            } else {
                open.push(question);
            }
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
