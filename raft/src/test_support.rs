//! What several unit tests need.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::handle::{AskHandler, Hooks};

struct NoAnswers;

impl AskHandler for NoAnswers {
    fn ask(&self, _question: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>> {
        Box::pin(std::future::ready(Err("nobody answers here".into())))
    }
}

/// Hooks that do nothing.
pub(crate) fn quiet_hooks() -> Hooks {
    Hooks { effects: Arc::new(|_| {}), replaced: Arc::new(|| {}), asks: Arc::new(NoAnswers) }
}
