//! The end of a node.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Node;

/// How long peers' calls may take to end when the port is closed.
pub(super) const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

impl Node {
    /// Hands over, stops the engine, closes the port, and makes the log durable. The second call
    /// does nothing.
    pub(crate) async fn shutdown(&self) {
        if self.stopping.swap(true, Ordering::Relaxed) {
            return;
        }
        if self.leadership.leads_here()
            && let Err(error) = self.hand_over.leave().await
        {
            tracing::info!(%error, "leadership not handed over");
        }
        self.stop.cancel();
        self.space.close();
        self.machine.close();
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "engine did not stop cleanly");
        }
        let server = self.server.lock().take();
        if let Some(mut server) = server
            && tokio::time::timeout(DRAIN_DEADLINE, &mut server).await.is_err()
        {
            tracing::info!("calls of peers did not end in time");
            server.abort();
        }
        self.log.stop().await;
    }
}

/// Its tasks do not outlive it, whether or not it was told to stop.
impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
