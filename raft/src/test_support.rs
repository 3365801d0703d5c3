//! What several unit tests need.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::apply::hooks::{AskHandler, Hooks};

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

/// Everything below a directory, with its content.
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(tree(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    found
}
