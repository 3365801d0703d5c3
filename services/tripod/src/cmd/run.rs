//! `tripod run`: a program as one task of a job.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::args::host_port::host_port;
use crate::args::job_flags::JobFlags;
use crate::args::memory_flags::AgentMemoryFlags;
use crate::args::seconds::Seconds;
use crate::cli::Global;
use crate::failure::Failure;
use crate::launch::{self, Asked, ReportExit};

const EXAMPLES: &str = "\
Starts an agent on this machine, then the program, told by its environment where the agent is:
  JAX_COORDINATOR_ADDRESS, JAX_COORDINATOR_BIND_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID
  GRPC_FAIL_FAST=false, unless it is set; TF_CONFIG, if there is one, with the agent as task 0 of --tf-job
  with --mindspore: MS_SCHED_HOST, MS_SCHED_PORT, and, unless they are set, MS_ROLE, MS_NODE_ID (the task's
  number), MS_WORKER_NUM, MS_SERVER_NUM; groups worker, ps and server of the job are its roles
The program is given SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2; a second SIGINT kills it. Its exit status
is that of `run`, 128 + N after signal N. If it fails, `run` tells what the cluster knows of why.

With --restarts a program that failed is begun again after a pause of 1 s, doubled each time up to 30 s. Nothing is
begun while another process is the task (T6108).

When the program has ended without leaving its job, the job is told at once how: exit code or signal, whether memory
ran out, and the end of its standard error if that is a file (or with --tail). The others are told so, with its last
line, and need not wait for its silence. If `run` itself is killed its agent says that.

Which task of how many this is comes from the flags, else from Open MPI, PMI, Slurm, an indexed Kubernetes
job (which does not tell how many there are), RANK and WORLD_SIZE, or TF_CONFIG.

Examples:
  tripod run --job exp7 --tasks 3 --task-id 0 -- python train.py
  srun -n 64 tripod run -- python train.py             the job is called after Slurm's job and step
  mpirun -n 8 tripod run --job exp7 -- python train.py
  tripod run --job exp8 --tasks 8 --task-id 3 --mindspore -- python train.py
  env: [{name: TRIPOD_JOB, value: exp7}, {name: TRIPOD_TASKS, value: \"8\"}]    in a Kubernetes manifest

The job is created by the first task that comes. Give each run a job of its own; one that has ended can be
removed with `tripod job delete`.";

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The job [default: slurm-JOB.STEP in a job of Slurm]
    #[arg(long, value_name = "NAME", env = "TRIPOD_JOB")]
    job: Option<String>,

    /// How many tasks the job has [default: what the launcher or the existing job says]
    #[arg(long, value_name = "N", env = "TRIPOD_TASKS", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,

    /// Which of them this program is, from 0 [default: what the launcher says]
    #[arg(long, value_name = "I", env = "TRIPOD_TASK_ID")]
    task_id: Option<u32>,

    /// Client addresses of the cluster's nodes, in the order of preference [default: --endpoints]
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', value_parser = host_port)]
    cluster: Vec<String>,

    #[command(flatten)]
    flags: JobFlags,

    #[command(flatten)]
    memory: AgentMemoryFlags,

    /// How long the program's calls are held, and its heartbeats answered, while no node can serve
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    max_outage: Seconds,

    /// The job of TF_CONFIG that the coordinator becomes
    #[arg(long, value_name = "NAME", default_value = "ps")]
    tf_job: String,

    /// The program is one of MindSpore: tell it by MS_SCHED_HOST and its kin that its scheduler is the agent
    #[arg(long)]
    mindspore: bool,

    /// Begin a program that failed again, so often at most: one that ended with an error, or by a signal that nobody uses to
    /// ask for an end. It is the next life of its task, so the job must be --recoverable
    #[arg(long, value_name = "N", default_value_t = 0, env = "TRIPOD_RESTARTS")]
    restarts: u32,

    /// What the job is told when the program ends without having left it: how it ended and its last words, how it ended only,
    /// or nothing
    #[arg(long, value_name = "on|status|off", default_value = "on", env = "TRIPOD_REPORT_EXIT")]
    report_exit: ReportExit,

    /// Keep the last 1,024 bytes that the program writes to its standard error where that is no file, by passing it on. The
    /// program cannot write there any more when `run` is killed
    #[arg(long)]
    tail: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    line: Vec<OsString>,
}

pub(crate) async fn run(args: RunArgs, global: &Global) -> Result<ExitCode, Failure> {
    let cluster = global.nodes_or(args.cluster);
    let client = global.client_of(&cluster)?;
    let mut agent_flags = vec![format!("--max-outage={}", args.max_outage.to_flag())];
    agent_flags.extend(args.flags.poll_flag());
    agent_flags.extend(args.memory.to_flags());
    agent_flags.extend(global.tls_dir().iter().map(|directory| format!("--tls-dir={}", directory.display())));
    agent_flags.extend(global.token_file.iter().map(|file| format!("--token-file={}", file.display())));
    launch::run(launch::Config {
        asked: Asked { job: args.job, tasks: args.flags.tasks(args.tasks)?, task: args.task_id },
        job: args.flags,
        cluster,
        client,
        agent_flags,
        tf_job: args.tf_job,
        is_of_mindspore: args.mindspore,
        restarts: args.restarts,
        report_exit: args.report_exit,
        tail: args.tail,
        line: args.line,
    })
    .await
}
