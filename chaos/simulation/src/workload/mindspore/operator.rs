//! Who has a cluster of the parameter server scale: by HTTP, at the port to which its nodes come.

use std::time::Duration;

use rand::RngExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Setting;
use super::server::PORT;
use crate::client::Client;
use crate::network;
use crate::node::host;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// Attempts at something that is refused, or of which it is not known whether it was done.
const ATTEMPTS: usize = 20;
const AGAIN_PAUSE_MS: u64 = 400;

pub(super) struct Operator {
    pub(super) setting: Setting,
    pub(super) client: Client,
}

impl Operator {
    /// Adds a server, whenever the cluster is ready; whether it surely scales.
    pub(super) async fn scale_out(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            match self.ask("/scaleout", r#"{"worker_num": 0, "server_num": 1}"#).await {
                Some((200, _)) => return true,
                // Not yet ready, or nobody leads.
                Some((400 | 503, _)) => {}
                // Asked once more it would be another one.
                _ => return self.scales_out().await,
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
        false
    }

    /// Has a server leave, whenever the cluster is ready; whether it surely does.
    pub(super) async fn scale_in(&mut self, node: &str) -> bool {
        for _ in 0..ATTEMPTS {
            let body = format!(r#"{{"node_ids": ["{node}"]}}"#);
            match self.ask("/scalein", &body).await {
                Some((200, _)) => return true,
                // An attempt before this one was heard after all.
                Some((400, text)) if !text.contains("not ready") => return true,
                _ => {}
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
        false
    }

    /// Takes back that the cluster scales out.
    pub(super) async fn abort(&mut self) {
        for _ in 0..ATTEMPTS {
            if let Some((200 | 400, _)) = self.ask("/scaleoutRollback", "").await {
                return;
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
    }

    /// Whether the cluster scales out now.
    async fn scales_out(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            if let Some((200, text)) = self.ask("/state", "").await {
                return text.contains("CLUSTER_SCALE_OUT");
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
        false
    }

    /// The status and the text of the answer of any node; `None`: there is none in time.
    async fn ask(&mut self, path: &str, body: &str) -> Option<(u16, String)> {
        let place = self.client.dice.random_range(0..self.setting.sites.len());
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let asked = async {
            let mut stream = network::connect(&host(place), PORT).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer))
    }
}
