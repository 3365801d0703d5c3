//! What a test's own code says in the log.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing::Level;

thread_local! {
    static SAID: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
static LISTENING: Once = Once::new();

struct Listener;

impl io::Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SAID.with_borrow_mut(|said| said.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Warnings and errors of one thread. A test of tokio has one thread unless it says otherwise, and so hears itself and no
/// other test of its process.
#[derive(Debug)]
pub struct Log(());

impl Log {
    /// Listens from now on.
    ///
    /// # Panics
    /// Somebody else listens in this process.
    #[must_use]
    pub fn listen() -> Self {
        LISTENING.call_once(|| {
            tracing_subscriber::fmt()
                .with_ansi(false)
                .with_max_level(Level::WARN)
                .with_writer(|| Listener)
                .init();
            // What another test has said by now may be taken for what nobody listens to.
            tracing::callsite::rebuild_interest_cache();
        });
        SAID.set(Vec::new());
        Self(())
    }

    /// The lines since it was asked last.
    pub fn lines(&self) -> Vec<String> {
        let said = SAID.take();
        String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_test_hears_its_own_tasks_and_nobody_elses() {
        let log = Log::listen();
        let elsewhere = std::thread::spawn(|| tracing::warn!("of another test"));
        elsewhere.join().expect("no panic");
        tokio::spawn(async { tracing::warn!(count = 3, "of a task") }).await.expect("no panic");
        tracing::info!("not worth a warning");
        let lines = log.lines();
        assert!(lines.len() == 1 && lines[0].contains("of a task count=3"), "{lines:?}");
        assert_eq!(log.lines(), [""; 0], "what was asked for is gone");
    }
}
