//! How long to rest before something that failed is tried again.

use std::time::Duration;

/// Long enough not to fill the log, short enough that nobody waits for it.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
