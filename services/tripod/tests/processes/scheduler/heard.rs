//! What workers in this process say in their logs.

use std::io;
use std::sync::{Mutex, Once, PoisonError};

static SAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static LISTENING: Once = Once::new();

struct Listener;

impl io::Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Listens from now on. Tests of one process hear each other, too.
pub(super) fn listen() {
    LISTENING.call_once(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .with_writer(|| Listener)
            .init();
    });
}

/// The lines that have all of these words.
pub(super) fn lines_with(words: &[&str]) -> Vec<String> {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&said);
    let wanted = |line: &&str| words.iter().all(|word| line.contains(word));
    text.lines().filter(wanted).map(str::to_owned).collect()
}
