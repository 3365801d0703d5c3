//! Lines of what a process does, written on a thread of their own.

use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::line::{Hash, Line};
use crate::log::{Limits, Log, OpenError};
use crate::record::{Change, Outcome, Record, Text};

/// How long a call waits for its line to be taken.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Lines that wait for the thread at most.
const WAITING_MAX: usize = 1_024;
/// How long a line is in a file before it is durable.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long a process that ends waits for its last line.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Lines that no sink has taken, in this process. A process is one node.
static LOST: AtomicU64 = AtomicU64::new(0);

/// How many lines no sink of this process has taken.
#[must_use]
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Where lines go: to one of these at least.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sinks {
    /// Files of this directory.
    pub directory: Option<PathBuf>,
    pub limits: Limits,
    /// Standard error, with a chain of its own that begins with the process.
    pub stderr: bool,
}

/// A place where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sink {
    /// Files of a directory.
    Files,
    /// Standard error.
    Stderr,
}

impl fmt::Display for Sink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Files => "files",
            Self::Stderr => "stderr",
        })
    }
}

/// What is done for people: each sink that has not taken a line is told of once for the line, on the thread, also if another sink
/// has it. Whether it is lost is counted before.
pub type Complain = Box<dyn Fn(Sink, &io::Error) + Send>;

/// Writes down what is done. Clones are the same; the default writes nothing.
#[derive(Clone, Default)]
pub struct Auditor(Option<Arc<Shared>>);

struct Shared {
    node: Text,
    is_required: bool,
    work: SyncSender<Work>,
}

struct Work {
    record: Record,
    /// Told whether a sink has it.
    taken: Option<oneshot::Sender<bool>>,
}

/// No sink has taken a line, and calls of operators must not go on without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwritten;

impl Auditor {
    /// Opens the sinks, and writes that they were opened. `node`: as lines name this process. `is_required`: a call that cannot be
    /// written down is refused.
    ///
    /// # Errors
    /// [`OpenError`]: of the files.
    pub fn start(
        sinks: &Sinks,
        node: &str,
        is_required: bool,
        complain: Complain,
    ) -> Result<Self, OpenError> {
        let node = Text::of(node);
        let opened = Record { at_ms: now_ms(), node: node.clone(), who: node.clone(), ..Record::default() };
        let opened = Record { change: Some(Change::Opened), ..opened };
        let log = match &sinks.directory {
            Some(directory) => Some(Log::open(directory, sinks.limits, opened.clone())?),
            None => None,
        };
        let mut writer =
            Writer { log, chain: sinks.stderr.then(Chain::default), complain, synced: Instant::now() };
        if let Some(chain) = &mut writer.chain {
            let _ = chain.take(&opened);
        }
        let (work, coming) = sync_channel(WAITING_MAX);
        thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&coming))?;
        Ok(Self(Some(Arc::new(Shared { node, is_required, work }))))
    }

    /// Writes down that a call begins, if calls must not go on without.
    ///
    /// # Errors
    /// [`Unwritten`]: nothing has taken it within [`PATIENCE`]. The call is to be refused.
    pub async fn begin(&self, record: &Record) -> Result<(), Unwritten> {
        match &self.0 {
            Some(shared) if shared.is_required => {
                let begun = Record { outcome: Outcome::Begun, ..record.clone() };
                if shared.take(begun).await { Ok(()) } else { Err(Unwritten) }
            }
            _ => Ok(()),
        }
    }

    /// Writes down what became of something, and waits until a sink has it, for [`PATIENCE`] at most.
    pub async fn end(&self, record: Record) {
        if let Some(shared) = &self.0 {
            shared.take(record).await;
        }
    }

    /// The same without waiting: for what nobody's call is.
    pub fn tell(&self, record: Record) {
        if let Some(shared) = &self.0 {
            shared.send(record, None);
        }
    }

    /// Writes down that the process stops, and waits for that line for a second at most.
    pub async fn stop(&self) {
        if let Some(shared) = &self.0 {
            let record =
                Record { change: Some(Change::Stopped), who: shared.node.clone(), ..Record::default() };
            let (taken, told) = oneshot::channel();
            if shared.send(record, Some(taken)) {
                let _ = timeout(LAST_PATIENCE, told).await;
            }
        }
    }
}

impl Shared {
    async fn take(&self, record: Record) -> bool {
        let (taken, told) = oneshot::channel();
        self.send(record, Some(taken)) && timeout(PATIENCE, told).await == Ok(Ok(true))
    }

    fn send(&self, record: Record, taken: Option<oneshot::Sender<bool>>) -> bool {
        let record = Record { at_ms: now_ms(), node: self.node.clone(), ..record };
        let is_sent = self.work.try_send(Work { record, taken }).is_ok();
        if !is_sent {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        is_sent
    }
}

/// The thread.
struct Writer {
    log: Option<Log>,
    chain: Option<Chain>,
    complain: Complain,
    synced: Instant,
}

impl Writer {
    fn run(mut self, coming: &Receiver<Work>) {
        loop {
            match coming.recv_timeout(SYNC_EVERY) {
                Ok(Work { record, taken }) => {
                    let is_last = record.change == Some(Change::Stopped);
                    let is_taken = self.write(&record);
                    if is_last || self.synced.elapsed() >= SYNC_EVERY {
                        self.sync();
                    }
                    if let Some(taken) = taken {
                        let _ = taken.send(is_taken);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.sync(),
                Err(RecvTimeoutError::Disconnected) => return self.sync(),
            }
        }
    }

    /// Whether a sink has it.
    fn write(&mut self, record: &Record) -> bool {
        let in_file = self.log.as_mut().map(|log| log.append(record).map(drop));
        let on_stderr = self.chain.as_mut().map(|chain| chain.take(record));
        let is_taken = matches!(in_file, Some(Ok(()))) || matches!(on_stderr, Some(Ok(())));
        if !is_taken {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        // Also if the other one has it: who keeps the files is to know that they have ended.
        for (sink, taken) in [(Sink::Files, in_file), (Sink::Stderr, on_stderr)] {
            if let Some(Err(error)) = taken {
                (self.complain)(sink, &error);
            }
        }
        is_taken
    }

    fn sync(&mut self) {
        self.synced = Instant::now();
        if let Some(Err(error)) = self.log.as_mut().map(Log::sync) {
            (self.complain)(Sink::Files, &error);
        }
    }
}

/// Lines on standard error.
#[derive(Debug)]
struct Chain {
    seq: u64,
    hash: Hash,
}

impl Default for Chain {
    fn default() -> Self {
        Self { seq: 0, hash: Hash::NONE }
    }
}

impl Chain {
    fn take(&mut self, record: &Record) -> io::Result<()> {
        let line = Line { seq: self.seq + 1, prev: self.hash, record: record.clone() };
        let mut bytes = line.bytes();
        let hash = Hash::of(&bytes);
        bytes.push(b'\n');
        io::stderr().lock().write_all(&bytes)?;
        (self.seq, self.hash) = (line.seq, hash);
        Ok(())
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
