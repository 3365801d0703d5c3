//! A node's session follows the feature level: one that others can name is not kept until the next command finds it so.

use std::sync::Arc;
use std::time::Duration;

use crate::submit::Submitter;

/// Between two looks, which cost a glance at the state.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Looks for as long as anybody else holds the submitter. Must be called within a tokio runtime.
pub(crate) fn start(submitter: &Arc<Submitter>) {
    let submitter = Arc::downgrade(submitter);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(submitter) = submitter.upgrade() else { return };
            submitter.renew().await;
        }
    });
}
