//! The flags of `tripod bench` and what they run.

use clap::{Args, Subcommand};

use crate::closed_loop::Plan;
use crate::job::BenchJob;
use crate::report::Report;
use crate::system::System;
use crate::{barrier, heartbeat, kv, tasks};

/// What is measured.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchArgs {
    /// Writes or reads of small values: each client waits for its answer before it asks again.
    Kv(KvArgs),
    /// All tasks of a fresh job meet at one barrier, again and again.
    Barrier(BarrierArgs),
    /// All tasks of a fresh job send heartbeats as fast as they are answered.
    Heartbeat(GangArgs),
    /// Tasks of the scheduler in batches, with workers and a store that are only played: the coordinator alone.
    Tasks(TasksArgs),
}

/// Flags of `bench tasks`.
#[derive(Debug, Clone, Args)]
pub struct TasksArgs {
    /// Drivers, each of which submits a batch and waits until it is done.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub drivers: u16,
    /// Workers that are done with a task as soon as they have it.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub workers: u16,
    /// Tasks of a batch.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4000))]
    pub batch: u16,
    /// Tasks that a worker may be given at a time.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub slots: u32,
    /// Length of the measured window; a short warm-up comes before it.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
}

/// Flags of `bench kv`.
#[derive(Debug, Clone, Args)]
pub struct KvArgs {
    /// Clients that ask at the same time.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Bytes of a value.
    #[arg(long, default_value_t = 256)]
    pub value_size: usize,
    /// Length of the measured window; a short warm-up comes before it.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// What each client does.
    #[arg(long, value_enum, default_value_t = kv::Op::Put)]
    pub op: kv::Op,
    /// The nodes that clients speak to.
    #[arg(long, value_enum, default_value_t = kv::Target::Leader)]
    pub target: kv::Target,
    /// Different keys.
    #[arg(long, default_value_t = 10_000)]
    pub keys: u64,
    /// TCP connections that the clients share.
    #[arg(long, default_value_t = 8)]
    pub connections: usize,
    /// Streams that the clients share, each over a connection of its own, which carry many calls a frame; 0: every
    /// client's calls go by themselves.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "connections")]
    pub streams: usize,
    /// Use this job, and leave the keys `bench/key/...` in it; without it, a job is created for the
    /// run and deleted after it.
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
}

/// Flags of `bench barrier`.
#[derive(Debug, Clone, Args)]
pub struct BarrierArgs {
    #[command(flatten)]
    pub gang: GangArgs,
    /// Streams that the tasks share instead of a connection each, which carry many calls a frame; 0: none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub streams: usize,
}

/// Flags of `bench barrier` and `bench heartbeat`.
#[derive(Debug, Clone, Args)]
pub struct GangArgs {
    /// Tasks of the job, each with its own connection, spread over all nodes.
    #[arg(long, default_value_t = 32)]
    pub clients: usize,
    /// Length of the measured window; a short warm-up comes before it.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
}

/// Runs one bench against `endpoints` and gives its report. Failed requests are in it; their first texts also go to
/// stderr.
///
/// # Errors
/// The cluster cannot be reached, or Ctrl-C. A job made for the run is deleted in every case.
pub async fn run(args: BenchArgs, endpoints: Vec<String>) -> anyhow::Result<Report> {
    let report = match args {
        BenchArgs::Kv(args) => bench_kv(args, &endpoints).await?,
        BenchArgs::Barrier(args) => bench_barrier(args, &endpoints).await?,
        BenchArgs::Heartbeat(args) => {
            let plan = Plan::seconds(args.seconds)?;
            let job = BenchJob::create(&endpoints, args.clients).await?;
            let addresses = job.all_addresses();
            finish(job, heartbeat::run("tripod", &addresses, args.clients, plan)).await?
        }
        BenchArgs::Tasks(args) => {
            let plan = Plan::seconds(args.seconds)?;
            let job = BenchJob::create(&endpoints, 1).await?;
            let options = tasks::Options {
                endpoints,
                job: job.name.clone(),
                drivers: args.drivers.into(),
                workers: args.workers.into(),
                batch: args.batch.into(),
                slots: args.slots,
                plan,
            };
            finish(job, tasks::run(&options)).await?
        }
    };
    for text in &report.first_errors {
        eprintln!("error: {text}");
    }
    Ok(report)
}

async fn bench_barrier(args: BarrierArgs, endpoints: &[String]) -> anyhow::Result<Report> {
    let BarrierArgs { gang: GangArgs { clients, seconds }, streams } = args;
    let plan = Plan::seconds(seconds)?;
    let job = BenchJob::create(endpoints, clients).await?;
    let addresses = job.all_addresses();
    if streams == 0 {
        return finish(job, barrier::run("tripod", &addresses, clients, plan)).await;
    }
    finish(job, barrier::run_on(streams, "tripod", &addresses, clients, plan)).await
}

async fn bench_kv(args: KvArgs, endpoints: &[String]) -> anyhow::Result<Report> {
    let mut options = kv::Options {
        system: System::Tripod { job: args.job.clone().unwrap_or_default() },
        endpoints: endpoints.to_vec(),
        op: args.op,
        target: args.target,
        clients: args.clients,
        connections: args.connections,
        streams: args.streams,
        value_bytes: args.value_size,
        keys: args.keys,
        plan: Plan::seconds(args.seconds)?,
    };
    if args.job.is_some() {
        return interruptible(measure_kv(&options)).await;
    }
    let job = BenchJob::create(endpoints, 1).await?;
    options.system = System::Tripod { job: job.name.clone() };
    finish(job, measure_kv(&options)).await
}

async fn measure_kv(options: &kv::Options) -> anyhow::Result<Report> {
    if options.op != kv::Op::Put {
        eprintln!("writing {} keys to read", options.keys);
        kv::fill(options).await?;
    }
    kv::run(options).await
}

/// Runs `bench` and deletes the job after it, however it ends.
async fn finish(
    job: BenchJob,
    bench: impl Future<Output = anyhow::Result<Report>>,
) -> anyhow::Result<Report> {
    let result = interruptible(bench).await;
    let deleted = job.delete().await;
    let report = result?;
    deleted?;
    Ok(report)
}

async fn interruptible<T>(bench: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::select! {
        result = bench => result,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tripod_wait::Nobody;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(subcommand)]
        bench: BenchArgs,
    }

    fn parse(line: &str) -> Result<BenchArgs, clap::Error> {
        Program::try_parse_from(["tripod"].into_iter().chain(line.split(' '))).map(|program| program.bench)
    }

    #[test]
    fn the_flags_of_the_command_line_contract_are_understood() {
        let line = "kv --clients 3 --value-size 16 --seconds 0.5 --op local-get --target any --keys 9 \
                    --connections 2 --job train";
        let BenchArgs::Kv(args) = parse(line).unwrap() else { panic!("not a kv bench") };
        assert_eq!((args.clients, args.value_size, args.keys, args.connections), (3, 16, 9, 2));
        assert_eq!((args.op, args.target), (kv::Op::LocalGet, kv::Target::Any));
        assert_eq!(args.job.as_deref(), Some("train"));
        let BenchArgs::Kv(args) = parse("kv").unwrap() else { panic!("not a kv bench") };
        assert_eq!((args.clients, args.value_size, args.connections), (64, 256, 8));
        assert_eq!((args.op, args.target), (kv::Op::Put, kv::Target::Leader));
        let BenchArgs::Kv(args) = parse("kv --streams 2").unwrap() else { panic!("not a kv bench") };
        assert_eq!(args.streams, 2);
        assert!(parse("kv --streams 2 --connections 3").is_err());
        let BenchArgs::Barrier(args) = parse("barrier --streams 4").unwrap() else { panic!("not a barrier") };
        assert_eq!((args.streams, args.gang.clients), (4, 32));
        for gang in ["barrier --clients 8 --seconds 2", "heartbeat --clients 8 --seconds 2"] {
            assert!(parse(gang).is_ok(), "{gang}");
        }
    }

    #[test]
    fn an_unknown_operation_is_a_usage_error() {
        assert_eq!(parse("kv --op scan").unwrap_err().exit_code(), 2);
    }

    #[tokio::test]
    async fn a_cluster_that_is_not_there_is_named() {
        let nobody = Nobody::at_a_port();
        let args = parse("barrier --seconds 0.1").unwrap();
        let refused = run(args, vec![nobody.address()]).await.unwrap_err();
        assert!(format!("{refused:#}").contains(&nobody.address()), "{refused:#}");
    }
}
