//! A program as one task of a job: an agent beside it, the environment that it needs, its signals, its exit
//! status, and, if it fails, what the cluster knows of why.

mod agent;
mod job;
mod log_tail;
mod numbers;
mod program;
mod signals;
mod tf_config;
mod variables;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use tripod_client::Client;
use tripod_proto::code::Code;

pub(crate) use numbers::Asked;

use crate::args::job_flags::JobFlags;
use crate::failure::Failure;
use crate::launch::agent::{AgentProcess, Places};
use crate::launch::numbers::Numbers;
use crate::launch::program::Ended;
use crate::launch::signals::Signals;
use crate::launch::tf_config::TfConfig;
use crate::launch::variables::Told;
use crate::launch::why::Question;
use crate::output;

/// What a program is started with.
pub(crate) struct Config {
    pub(crate) asked: Asked,
    /// What the job is created with, if it is.
    pub(crate) job: JobFlags,
    pub(crate) cluster: Vec<String>,
    pub(crate) client: Client,
    /// Flags that are passed on to the agent.
    pub(crate) agent_flags: Vec<String>,
    /// The job of `TF_CONFIG` that the coordinator becomes.
    pub(crate) tf_job: String,
    /// The program and its arguments.
    pub(crate) line: Vec<OsString>,
}

/// A program that can be started.
struct Ready {
    numbers: Numbers,
    tasks: u32,
    agent: AgentProcess,
}

/// Runs the program to its end, and tells its exit status.
pub(crate) async fn run(config: Config) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let tf_config = variable("TF_CONFIG").map(|text| TfConfig::parse(&text)).transpose()?;
    let ready = tokio::select! {
        ready = prepare(&config, tf_config.as_ref()) => ready?,
        signal = signals.next_end() => return Ok(ExitCode::from(program::after_signal(signal as i32))),
    };
    let ran = ready.run(&config, tf_config, &mut signals).await;
    let log = ready.agent.end().await;
    let ended = ran?;
    if !ended.is_plain() {
        let (job, task) = (&ready.numbers.job, ready.numbers.task);
        let question = Question { job, task, how: ended.to_string(), log: &log };
        output::note(question.answer(&config.client).await.trim_end());
    }
    Ok(ended.exit_code())
}

/// Finds the numbers and the job, and starts the agent.
async fn prepare(config: &Config, tf_config: Option<&TfConfig>) -> Result<Ready, Failure> {
    let numbers = numbers::find(&config.asked, &variable, tf_config)?;
    let mut flags = config.job.clone();
    if let Some(groups) = tf_config.and_then(TfConfig::groups)
        && numbers.tasks == Some(groups.tasks())
    {
        flags.members.get_or_insert(groups);
    }
    let job = job::settle(&config.client, &numbers.job, numbers.tasks, &flags).await?;
    for note in numbers.notes.iter().chain(&job.notes) {
        output::note(&format!("tripod run: {note}"));
    }
    let tasks = job.tasks;
    if numbers.task >= tasks {
        return Err(Failure::new(
            Code::TaskUnknown,
            format!(
                "there is no task {} in job `{}`, which has {tasks}: they are numbered from 0",
                numbers.task, numbers.job
            ),
        ));
    }
    let agent = agent::Config {
        cluster: config.cluster.clone(),
        job: numbers.job.clone(),
        flags: config.agent_flags.clone(),
        verbose: variable("TRIPOD_LOG").is_some(),
    };
    let agent = AgentProcess::start(agent, Places::any(numbers.task == 0)).await?;
    Ok(Ready { numbers, tasks, agent })
}

impl Ready {
    async fn run(
        &self,
        config: &Config,
        tf_config: Option<TfConfig>,
        signals: &mut Signals,
    ) -> Result<Ended, Failure> {
        let told = Told {
            places: &self.agent.places,
            tasks: self.tasks,
            task: self.numbers.task,
            fail_fast: variable("GRPC_FAIL_FAST"),
            tf_config: tf_config.map(|given| (given, config.tf_job.as_str())),
        };
        program::run(&config.line, told.variables()?, signals).await
    }
}

/// What is told of a job when a program of it failed.
#[cfg(test)]
pub(crate) fn screen_of(job: tripod_client::wire::Job, now_ms: u64) -> String {
    why::screen_of(job, now_ms)
}

/// A variable of this process's environment; one that is empty, or no text, says nothing.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
