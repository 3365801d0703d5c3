//! An operator, who asks over HTTP.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::support::Cluster;

pub(crate) struct Operator {
    stream: DuplexStream,
    buffer: Vec<u8>,
}

impl Operator {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self { stream: cluster.dial(), buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // A node that ends the connection takes no more of it.
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> (u16, String) {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: node\r\n\r\n").as_bytes()).await;
        self.hear().await.expect("an answer")
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: node\r\ncontent-length: {length}\r\n\r\n");
        self.send(head.as_bytes()).await;
        self.send(body.as_bytes()).await;
        self.hear().await.expect("an answer")
    }

    /// The status and the body of the next answer; `None` when the connection is ended.
    pub(crate) async fn hear(&mut self) -> Option<(u16, String)> {
        loop {
            let text = String::from_utf8_lossy(&self.buffer).into_owned();
            if let Some((head, rest)) = text.split_once("\r\n\r\n") {
                let field = |name: &str| {
                    head.lines().find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
                };
                let length: usize = field("content-length:").map_or(0, |length| length.parse().unwrap());
                if rest.len() >= length {
                    if length > 0 {
                        assert_eq!(field("content-type:").as_deref(), Some("application/json"));
                    }
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    let body = rest[..length].to_owned();
                    self.buffer.drain(..head.len() + 4 + length);
                    return Some((status, body));
                }
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap_or(0) == 0 {
                assert_eq!(text, "", "it ends within an answer");
                return None;
            }
        }
    }
}
