//! What is said of one call beside its message.

use std::time::Duration;

use http::HeaderMap;

/// What is said of a call beside its path and its message. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The call takes effect once however often it is sent with this sequence of the stream's session. 0: it has none.
    pub sequence: u64,
    /// Every sequence below was answered.
    pub acknowledged_below: u64,
    /// How long the node may take, in whole milliseconds; `None`: as long as it takes. The caller's own waiting is not
    /// ended by it.
    pub patience: Option<Duration>,
    /// Its own metadata, without what a transport says.
    pub metadata: HeaderMap,
}

impl CallOptions {
    /// The patience as it is sent. One of less than a millisecond is still one.
    pub(crate) fn patience_ms(&self) -> u32 {
        self.patience.map_or(0, |patience| u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_patience_is_another_thing_than_very_little() {
        let sent = |patience| CallOptions { patience, ..CallOptions::default() }.patience_ms();
        assert_eq!(sent(None), 0);
        assert_eq!(sent(Some(Duration::from_micros(1))), 1);
        assert_eq!(sent(Some(Duration::from_secs(2))), 2000);
        assert_eq!(sent(Some(Duration::MAX)), u32::MAX);
    }
}
