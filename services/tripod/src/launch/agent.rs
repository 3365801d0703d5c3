//! The agent of a program: a process of its own, started again at the same place whenever it ends.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tripod_backoff::Backoff;
use tripod_proto::code::Code;

use crate::child::{Child, Outputs};
use crate::failure::Failure;
use crate::launch::log_tail::LogTail;
use crate::logging::number;
use crate::output;

/// How long an agent may take to listen; it waits for nobody.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Rest before an agent that ended is started again, longer after each one that did not last.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
/// An agent that ran for this long was well.
const LASTED: Duration = Duration::from_secs(10);
/// Registrations of one life of the program that are remembered; one is usual.
const LIVES_MAX: usize = 64;
/// How long the rest of an ended agent's log may take to be read.
const LOG_TIMEOUT: Duration = Duration::from_secs(1);

/// What an agent is started with, besides the addresses where it listens.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) cluster: Vec<String>,
    pub(crate) job: String,
    /// Further flags of `tripod agent`.
    pub(crate) flags: Vec<String>,
    /// The task for which an agent says that its launcher is no more, if this process is killed.
    pub(crate) reports_for: Option<u32>,
    /// Pass on all of its log.
    pub(crate) verbose: bool,
    /// Told of each incarnation under which a process registers, if it listens.
    pub(crate) registered: mpsc::Sender<u64>,
}

/// Where an agent listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenAddresses {
    /// For every program.
    pub(crate) ordinary: String,
    /// For the first process of an old JAX, which insists on listening at the very address that it
    /// connects to. Told `[::]:PORT` it listens on all addresses of this machine, and where `[::1]:PORT`
    /// is taken, on those of IPv4 only; but it connects to `[::1]:PORT`, and that is the agent's.
    pub(crate) beside_a_service: Option<String>,
    /// For MindSpore, if the program is one of it.
    pub(crate) mindspore: Option<String>,
}

impl ListenAddresses {
    /// Any free port; and one for the first process of an old JAX, where IPv6 has a loopback.
    pub(crate) fn any(first_task: bool, is_of_mindspore: bool) -> Self {
        const ANY: &str = "127.0.0.1:0";
        const LOOPBACK: &str = "[::1]:0";
        let beside = first_task && std::net::TcpListener::bind(LOOPBACK).is_ok();
        Self {
            ordinary: ANY.into(),
            beside_a_service: beside.then(|| LOOPBACK.into()),
            mindspore: is_of_mindspore.then(|| ANY.into()),
        }
    }

    /// What JAX is to connect to.
    pub(crate) fn for_jax(&self) -> String {
        let port = self.beside_a_service.as_deref().and_then(|address| address.strip_prefix("[::1]"));
        port.map_or_else(|| self.ordinary.clone(), |port| format!("[::]{port}"))
    }

    fn flags(&self) -> impl Iterator<Item = String> {
        let addresses = [Some(&self.ordinary), self.beside_a_service.as_ref()];
        let listen = addresses.into_iter().flatten().map(|address| format!("--listen={address}"));
        listen.chain(self.mindspore.iter().map(|address| format!("--mindspore={address}")))
    }
}

/// What an agent says when it listens.
#[derive(Debug, Deserialize)]
struct Listens {
    listen: Vec<String>,
    mindspore: Option<String>,
}

/// What an agent says of a process that registers.
#[derive(Debug, Deserialize)]
struct Registered {
    registered: u64,
}

/// The incarnations under which processes have registered by the agent. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lives {
    known: Arc<Mutex<Vec<u64>>>,
    registered: mpsc::Sender<u64>,
}

impl Lives {
    fn new(registered: mpsc::Sender<u64>) -> Self {
        Self { known: Arc::default(), registered }
    }

    /// Those since the last question, the newest ones if there were very many.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, to be asked for again.
    fn look(&self) -> Vec<u64> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, line: &str) {
        let Ok(Registered { registered }) = serde_json::from_str(line) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // A client says again that it registers when its connection has broken.
        if known.contains(&registered) {
            return;
        }
        if known.len() == LIVES_MAX {
            known.remove(0);
        }
        known.push(registered);
        // Whoever listens wants to know of the last ones only, and is behind.
        let _ = self.registered.try_send(registered);
    }
}

/// An agent that is kept running.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    pub(crate) addresses: ListenAddresses,
    pub(crate) log: LogTail,
    pub(crate) lives: Lives,
    stop: oneshot::Sender<()>,
    keeper: JoinHandle<()>,
}

/// What starts the same agent again and again.
struct Keeper {
    config: Config,
    addresses: ListenAddresses,
    log: LogTail,
    lives: Lives,
}

/// One life of an agent.
struct Life {
    child: Child,
    reading: JoinHandle<()>,
}

impl AgentProcess {
    /// Starts an agent and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or ended at once; the text has its reason.
    pub(crate) async fn start(config: Config, addresses: ListenAddresses) -> Result<Self, Failure> {
        let (log, lives) = (LogTail::default(), Lives::new(config.registered.clone()));
        let mut keeper = Keeper { config, addresses, log: log.clone(), lives: lives.clone() };
        let life = keeper.begin().await.map_err(|why| {
            Failure::new(Code::AgentFailed, format!("the agent of this program did not start: {why}"))
        })?;
        let (stop, stopped) = oneshot::channel();
        let addresses = keeper.addresses.clone();
        Ok(Self { addresses, log, lives, stop, keeper: tokio::spawn(keeper.keep(life, stopped)) })
    }

    /// Ends the agent; returns what it logged.
    pub(crate) async fn end(self) -> LogTail {
        // If the keeper is gone, so is the agent.
        let _ = self.stop.send(());
        if let Err(error) = self.keeper.await {
            tracing::warn!(code = number(Code::AgentFailed), %error, "the keeper of the agent failed");
        }
        self.log
    }
}

impl Keeper {
    /// Starts the agent; from now on its addresses are those that it found.
    async fn begin(&mut self) -> Result<Life, String> {
        let outputs = Outputs { stdout: Stdio::piped(), stderr: Stdio::piped() };
        let mut child = Child::start(&self.arguments(), outputs).map_err(|error| error.to_string())?;
        let (stdout, stderr) = child.take_outputs();
        let (stdout, stderr) = (stdout.expect("asked for"), stderr.expect("asked for"));
        let reading = tokio::spawn(self.log.clone().follow(stderr, self.config.verbose));
        let life = Life { child, reading };
        let mut lines = BufReader::new(stdout).lines();
        let first = async { lines.next_line().await.ok().flatten() };
        match timeout(START_TIMEOUT, first).await {
            Ok(Some(line)) => {
                let lives = self.lives.clone();
                // It ends with the agent.
                tokio::spawn(async move {
                    while let Ok(Some(line)) = lines.next_line().await {
                        lives.note(&line);
                    }
                });
                self.addresses = told(&line).ok_or_else(|| format!("it said `{line}`"))?;
                Ok(life)
            }
            Ok(None) => Err(self.last_words(life).await),
            Err(_) => Err(format!("it does not listen after {} s", START_TIMEOUT.as_secs())),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let always = ["agent", "--exit-with-parent", "--print-registrations", "--json"];
        let mut arguments: Vec<String> = always.map(str::to_owned).into();
        arguments.extend(self.addresses.flags());
        arguments.push(format!("--cluster={}", self.config.cluster.join(",")));
        arguments.push(format!("--job={}", self.config.job));
        if let Some(task) = self.config.reports_for {
            arguments.push(format!("--report-parents-end={task}"));
            // One that is started again has not seen them.
            arguments.extend(self.lives.look().iter().map(|life| format!("--known-life={life}")));
        }
        arguments.extend(self.config.flags.iter().cloned());
        arguments
    }

    /// Keeps an agent running until it is told to stop.
    async fn keep(mut self, mut life: Life, mut stopped: oneshot::Receiver<()>) {
        let mut backoff = BACKOFF;
        loop {
            let begun = Instant::now();
            let how = tokio::select! {
                ended = life.child.ended() => ended.map_or_else(|error| error.to_string(), |how| how.to_string()),
                _ = &mut stopped => return life.end().await,
            };
            if begun.elapsed() >= LASTED {
                backoff.reset();
            }
            output::note(&format!("tripod run: the agent ended ({how}) and is started again"));
            life = tokio::select! {
                life = self.begin_again(&mut backoff) => life,
                _ = &mut stopped => return,
            };
        }
    }

    async fn begin_again(&mut self, backoff: &mut Backoff) -> Life {
        loop {
            backoff.rest().await;
            match self.begin().await {
                Ok(life) => return life,
                Err(why) => output::note(&format!("tripod run: the agent could not be started again: {why}")),
            }
        }
    }

    /// Why an agent ended at its start: the last that it logged.
    async fn last_words(&self, life: Life) -> String {
        life.end().await;
        self.log.lines().pop().unwrap_or_else(|| "it did not say why".into())
    }
}

impl Life {
    async fn end(self) {
        self.child.end().await;
        // What it started itself could hold its log open.
        let _ = timeout(LOG_TIMEOUT, self.reading).await;
    }
}

fn told(line: &str) -> Option<ListenAddresses> {
    let Listens { listen, mindspore } = serde_json::from_str(line).ok()?;
    let mut listen = listen.into_iter();
    Some(ListenAddresses { ordinary: listen.next()?, beside_a_service: listen.next(), mindspore })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_started_again_where_it_was() {
        let line = r#"{"listen":["127.0.0.1:7790","[::1]:7791"],"job":"train"}"#;
        let addresses = told(line).expect("understood");
        let flags: Vec<_> = addresses.flags().collect();
        assert_eq!(flags, ["--listen=127.0.0.1:7790", "--listen=[::1]:7791"]);
        assert_eq!(addresses.for_jax(), "[::]:7791");
        let line = r#"{"listen":["127.0.0.1:7790"],"job":"train","mindspore":"127.0.0.1:7792"}"#;
        let flags: Vec<_> = told(line).expect("understood").flags().collect();
        assert_eq!(flags, ["--listen=127.0.0.1:7790", "--mindspore=127.0.0.1:7792"]);
    }

    #[test]
    fn lives_are_told_once_and_the_newest_ones() {
        let (registered, mut heard) = mpsc::channel(LIVES_MAX);
        let lives = Lives::new(registered);
        let seven = r#"{"registered":7}"#;
        for line in [r#"{"registered":18446744073709551615}"#, "{}", "no json", seven, seven] {
            lives.note(line);
        }
        assert_eq!(lives.look(), vec![u64::MAX, 7]);
        assert_eq!((lives.take(), lives.take()), (vec![u64::MAX, 7], Vec::new()));
        assert_eq!((heard.try_recv(), heard.try_recv()), (Ok(u64::MAX), Ok(7)));
        (0..=LIVES_MAX as u64).for_each(|life| lives.note(&format!(r#"{{"registered":{life}}}"#)));
        assert_eq!(lives.take(), (1..=LIVES_MAX as u64).collect::<Vec<_>>());
    }

    #[test]
    fn every_task_but_the_first_has_one_place() {
        let addresses = ListenAddresses::any(false, false);
        assert_eq!(addresses.flags().collect::<Vec<_>>(), ["--listen=127.0.0.1:0"]);
        assert_eq!(addresses.for_jax(), "127.0.0.1:0");
    }
}
