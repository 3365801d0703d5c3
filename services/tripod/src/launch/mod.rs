//! A program as one task of a job: an agent beside it, the environment that it needs, its signals, its exit
//! status, and, if it fails, what the cluster knows of why.

mod again;
mod agent;
mod held;
mod host;
mod job;
mod log_tail;
mod mindspore;
mod numbers;
mod program;
mod report;
mod signals;
mod taken;
mod tell;
mod tf_config;
mod variables;
mod why;
mod witness;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tripod_client::{Client, wire};
use tripod_proto::code::Code;

pub(crate) use numbers::Asked;
pub(crate) use report::ReportExit;
pub(crate) use variables::TASK_VARIABLE;

use crate::args::job_flags::JobFlags;
use crate::failure::Failure;
use crate::launch::again::Restarts;
use crate::launch::agent::{AgentProcess, ListenAddresses};
use crate::launch::host::Running;
use crate::launch::mindspore::{MindsporeEnvironment, Place};
use crate::launch::numbers::Numbers;
use crate::launch::program::{Ended, Stderr};
use crate::launch::signals::Signals;
use crate::launch::tf_config::TfConfig;
use crate::launch::variables::ProgramEnvironment;
use crate::launch::why::Question;
use crate::output;

/// How long the cluster gets to hear that the program has ended before anything else is done.
const TELL_LIMIT: Duration = Duration::from_secs(5);
/// How long a look at the job may take that others wait for.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

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
    /// The program is one of MindSpore.
    pub(crate) is_of_mindspore: bool,
    /// How often a program that failed is begun again.
    pub(crate) restarts: u32,
    /// What the job is told of the program's end.
    pub(crate) report_exit: ReportExit,
    /// Keep the end of what the program writes to its standard error where that is no file.
    pub(crate) tail: bool,
    /// The program and its arguments.
    pub(crate) line: Vec<OsString>,
}

/// A program that can be started.
struct Ready {
    numbers: Numbers,
    tasks: u32,
    agent: AgentProcess,
    mindspore: Option<MindsporeEnvironment>,
    /// The program, while it runs.
    running: Running,
}

/// Runs the program to its end, and tells its exit status.
pub(crate) async fn run(config: Config) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let tf_config = variable("TF_CONFIG").map(|text| TfConfig::parse(&text)).transpose()?;
    let ready = tokio::select! {
        ready = prepare(&config, tf_config.as_ref()) => ready?,
        signal = signals.next_end() => return Ok(ExitCode::from(program::after_signal(signal as i32))),
    };
    let ran = ready.run(&config, tf_config.as_ref(), &mut signals).await;
    let (job, task) = (&ready.numbers.job, ready.numbers.task);
    let failed = ran.as_ref().is_ok_and(|ended| !ended.is_plain());
    let jobs = config.client.jobs();
    // Before the job hears of this end, which explains nothing.
    let before = if failed { timeout(LOOK_LIMIT, jobs.get_or_remembered(job)).await.ok() } else { None };
    let was_told = ready.tell_end(&config, ran.as_ref().ok()).await;
    let after = if failed { Some(jobs.get_or_remembered(job).await) } else { None };
    let log = ready.agent.end().await;
    let ended = ran?;
    if let Some(after) = after {
        let told = report::what_others_were_told(config.report_exit, was_told, after.as_ref(), task);
        let last_line = ended.last_line().map(str::to_owned);
        let question = Question { job, task, how: ended.to_string(), last_line, told, log: &log };
        output::note(question.answer(before.unwrap_or(after)).trim_end());
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
        say(note);
    }
    // MindSpore's nodes register with the scheduler of their job, which has rules of its own for who comes back.
    if config.restarts > 0 && !job.takes_lives && !config.is_of_mindspore {
        say(&format!(
            "tasks of job `{}` cannot come back: a program that --restarts begins again is refused; create the job with \
             --recoverable",
            numbers.job
        ));
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
    taken::wait(&config.client, &numbers.job, numbers.task, say).await?;
    let running = Running::default();
    let known = (running.clone(), numbers::launcher(&variable).unwrap_or_default());
    let agent = agent::Config {
        registered: host::note(config.client.clone(), &numbers.job, numbers.task, known),
        cluster: config.cluster.clone(),
        job: numbers.job.clone(),
        flags: config.agent_flags.clone(),
        // Who is not to say how its program ended says nothing of its own end, either.
        reports_for: (config.report_exit != ReportExit::Off).then_some(numbers.task),
        verbose: variable("TRIPOD_LOG").is_some(),
    };
    let addresses = ListenAddresses::any(numbers.task == 0, config.is_of_mindspore);
    let agent = AgentProcess::start(agent, addresses).await?;
    let mindspore = agent.addresses.mindspore.as_deref().map(|address| {
        let place = Place { groups: &job.groups, tasks, task: numbers.task, agent: address };
        MindsporeEnvironment::of(place, &variable)
    });
    let mindspore = mindspore.transpose()?;
    mindspore.iter().flat_map(|told| &told.notes).for_each(|note| say(note));
    Ok(Ready { numbers, tasks, agent, mindspore, running })
}

impl Ready {
    /// Runs the program, again and again while it fails and may be begun again.
    async fn run(
        &self,
        config: &Config,
        tf_config: Option<&TfConfig>,
        signals: &mut Signals,
    ) -> Result<Ended, Failure> {
        let mut restarts = Restarts::of(config.restarts);
        loop {
            let begun = Instant::now();
            let ended = self.run_once(config, tf_config.cloned(), signals).await?;
            if !ended.is_failure() {
                return Ok(ended);
            }
            let Some(pause) = restarts.next(begun.elapsed()) else {
                restarts.given_up().iter().for_each(|note| say(note));
                return Ok(ended);
            };
            self.tell_end(config, Some(&ended)).await;
            say(&restarts.note(&self.numbers.job, self.numbers.task, &ended.to_string(), pause));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = signals.next_end() => return Ok(ended.and_no_more()),
            }
        }
    }

    /// The job learns at once that the lives of the task are over, and how they ended, and not only by their silence. Those
    /// that have left it are lost to nobody. Gives whether it has heard.
    async fn tell_end(&self, config: &Config, ended: Option<&Ended>) -> bool {
        let lives = self.agent.lives.take();
        if config.report_exit == ReportExit::Off {
            return false;
        }
        let end = ended.map(|ended| ended.to_wire(config.report_exit == ReportExit::On));
        let telling =
            tell_lives(config.client.clone(), self.numbers.job.clone(), self.numbers.task, lives, end);
        // What was not heard by then is told beside the next life: this one is called by its name.
        let is_heard = timeout(TELL_LIMIT, tokio::spawn(telling)).await.is_ok();
        if !is_heard {
            tracing::debug!("the cluster does not answer; it is told that the program ended when it does");
        }
        is_heard
    }

    async fn run_once(
        &self,
        config: &Config,
        tf_config: Option<TfConfig>,
        signals: &mut Signals,
    ) -> Result<Ended, Failure> {
        let told = ProgramEnvironment {
            addresses: &self.agent.addresses,
            tasks: self.tasks,
            task: self.numbers.task,
            fail_fast: variable("GRPC_FAIL_FAST"),
            tf_config: tf_config.map(|given| (given, config.tf_job.as_str())),
            mindspore: self.mindspore.clone(),
        };
        let stderr = if config.tail { Stderr::Piped } else { Stderr::Inherited };
        program::run(&config.line, told.variables()?, stderr, (&self.running, signals)).await
    }
}

/// Says that these lives of a task are over, until the cluster has heard.
pub(crate) async fn tell_lives(
    client: Client,
    job: String,
    task: u32,
    lives: Vec<u64>,
    end: Option<wire::ProcessEnd>,
) {
    let (jobs, task) = (client.jobs(), i32::try_from(task).unwrap_or(i32::MAX));
    for incarnation in lives {
        tell::until_heard(|| jobs.end_task(&job, task, incarnation, end.clone())).await;
    }
}

/// A line of this command's own.
fn say(text: &str) {
    output::note(&format!("tripod run: {text}"));
}

/// What is told of a job when a program of it failed.
#[cfg(test)]
pub(crate) fn screen_of(job: wire::Job, now_ms: u64) -> String {
    why::screen_of(job, now_ms)
}

/// A variable of this process's environment; one that is empty, or no text, says nothing.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
