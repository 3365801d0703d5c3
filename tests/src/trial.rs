//! A test with all that it needs to be run, and run again.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use tokio::sync::Mutex;
use tripod_tests::dev::Dev;

use crate::cases::{Case, ends};
use crate::logs::Logs;
use crate::runner::Trial;
use crate::settings::Settings;

/// The cluster that tests share which leave the nodes alone.
pub(crate) struct Shared {
    /// Gone when it was told to end.
    dev: Mutex<Option<Dev>>,
    endpoints: Vec<String>,
}

/// A test, and where it is run.
#[derive(Clone)]
pub(crate) struct Prepared {
    case: Case,
    settings: Arc<Settings>,
    /// The shared cluster, if the test uses it, or why there is none.
    shared: Option<Arc<Result<Shared>>>,
}

impl Shared {
    /// Starts it.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        let logs = Logs::new(&settings.results, &Case::DevEnds.folder());
        logs.clear()?;
        let dev = Dev::start(logs.folder(), &[]).await?;
        Ok(Self { endpoints: dev.endpoints(), dev: Mutex::new(Some(dev)) })
    }
}

impl Prepared {
    /// A test with a cluster of its own, or none.
    pub(crate) fn alone(case: Case, settings: &Arc<Settings>) -> Self {
        Self { case, settings: Arc::clone(settings), shared: None }
    }

    /// A test on the shared cluster.
    pub(crate) fn on(case: Case, settings: &Arc<Settings>, shared: &Arc<Result<Shared>>) -> Self {
        Self { shared: Some(Arc::clone(shared)), ..Self::alone(case, settings) }
    }

    fn logs(&self) -> Logs {
        Logs::new(&self.settings.results, &self.case.folder())
    }

    async fn run_on_shared(&self, shared: &Result<Shared>) -> Result<String> {
        let shared = shared.as_ref().map_err(|error| anyhow!("there is no cluster to share: {error:#}"))?;
        if matches!(self.case, Case::DevEnds) {
            let dev = shared.dev.lock().await.take().context("it was ended before")?;
            return ends(dev).await;
        }
        self.run_at(&shared.endpoints).await
    }

    /// Runs it at a `tripod dev` of its own: whatever has happened to the shared one, it is not to blame.
    async fn run_on_own_dev(&self) -> Result<String> {
        let logs = self.logs();
        logs.clear()?;
        if matches!(self.case, Case::DevEnds) {
            return self.case.run_bounded(&self.settings, logs.folder(), &[]).await;
        }
        let dev = Dev::start(&logs.folder().join("dev"), &[]).await?;
        let outcome = self.case.run_bounded(&self.settings, logs.folder(), &dev.endpoints()).await;
        drop(dev);
        outcome
    }

    async fn run_at(&self, endpoints: &[String]) -> Result<String> {
        let logs = self.logs();
        logs.clear()?;
        let outcome = self.case.run_bounded(&self.settings, logs.folder(), endpoints).await;
        if outcome.is_ok() {
            logs.shed_data();
        }
        outcome
    }
}

impl Trial for Prepared {
    fn name(&self) -> String {
        self.case.to_string()
    }

    async fn run(&self, alone: bool) -> Result<String> {
        match &self.shared {
            Some(_) if alone => self.run_on_own_dev().await,
            Some(shared) => self.run_on_shared(shared).await,
            None => self.run_at(&[]).await,
        }
    }

    fn keep(&self) -> Option<PathBuf> {
        self.logs().keep()
    }
}
