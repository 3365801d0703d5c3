//! The `TCPStore` of torch, the store by which its processes find each other: one process that keeps keys in memory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;
use tripod_load::closed_loop::Plan;
use tripod_load::kv::Op;

use super::Rounds;
use super::record::Record;
use super::stats::{Goal, Samples};

const SCRIPT: &str = include_str!("measure_tcpstore.py");
const VALUE_BYTES: usize = 256;
/// Importing torch reads some hundred megabytes, in each process of the clients.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// A load of ours beside which one of the store stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours {
    pub(super) op: Op,
    pub(super) clients: usize,
    pub(super) streams: usize,
}

/// One row of the comparison.
#[derive(Debug, Clone, Copy)]
struct StoreLoad {
    /// As the script knows it.
    op: &'static str,
    processes: usize,
    /// Of each process. Each has a connection of its own.
    threads: usize,
    /// Ours that does the same, if there is one, and what its p50 may be of the store's.
    ours: Option<(Ours, Option<Goal>)>,
}

/// One client of ours may take so many times as long as one of the store: we pay for durability on a quorum.
const PUT_GOAL: Goal = Goal::AtMost(6.0);

const LOADS: [StoreLoad; 5] = [
    // It is not acknowledged: what a program sees is the time that it takes to send it.
    StoreLoad { op: "set", processes: 1, threads: 1, ours: None },
    StoreLoad { op: "compare_set", processes: 1, threads: 1, ours: ours(Op::Put, 1, 0, Some(PUT_GOAL)) },
    StoreLoad { op: "compare_set", processes: 4, threads: 16, ours: ours(Op::Put, 64, 1, None) },
    StoreLoad { op: "get", processes: 1, threads: 1, ours: ours(Op::Get, 1, 0, None) },
    StoreLoad { op: "get", processes: 4, threads: 16, ours: ours(Op::Get, 64, 0, None) },
];

const fn ours(op: Op, clients: usize, streams: usize, goal: Option<Goal>) -> Option<(Ours, Option<Goal>)> {
    Some((Ours { op, clients, streams }, goal))
}

/// What a store did under every load.
pub(super) struct StoreRecords {
    python: PathBuf,
    version: String,
    records: Vec<StoreRecord>,
}

#[derive(Default)]
struct StoreRecord {
    rate: Samples,
    p50_us: Samples,
    p99_us: Samples,
    errors: u64,
}

impl StoreRecords {
    /// None yet of the torch of this interpreter.
    pub(super) fn new(python: &Path) -> Self {
        let records = LOADS.iter().map(|_| StoreRecord::default()).collect();
        Self { python: python.to_owned(), version: String::new(), records }
    }

    /// Adds a round of every load.
    pub(super) async fn measure(&mut self, round: usize, rounds: Rounds, plan: Plan) -> anyhow::Result<()> {
        for (load, record) in LOADS.iter().zip(&mut self.records) {
            let measured = measure(&self.python, *load, plan).await?;
            let figure = |name: &str| {
                let figure = measured.get(name).and_then(serde_json::Value::as_f64);
                figure.with_context(|| format!("the script tells no {name}: {measured}"))
            };
            let (rate, p50_us) = (figure("ops_per_s")?, figure("p50_us")?);
            eprintln!(
                "round {} of {}: TCPStore {} by {} clients: {rate:.0} op/s",
                round + 1,
                rounds.rounds,
                load.op,
                load.clients()
            );
            record.rate.push(rate);
            record.p50_us.push(p50_us);
            record.p99_us.push(figure("p99_us")?);
            record.errors += measured.get("errors").and_then(serde_json::Value::as_u64).unwrap_or_default();
            if let Some(version) = measured.get("version").and_then(serde_json::Value::as_str) {
                version.clone_into(&mut self.version);
            }
        }
        Ok(())
    }

    /// The figures, with the ratios to `ours`.
    pub(super) fn table<'a>(&self, ours: &dyn Fn(Ours) -> Option<&'a Record>) -> String {
        let mut text = format!(
            "\nPeer: the `TCPStore` of torch {}, which keeps everything in the memory of one process; values of \
             {VALUE_BYTES} B, clients of many as threads of 4 processes in Python. The ratio is that of p50, ours to the \
             store's: of puts to `compare_set`, since `set` is not acknowledged, and of gets.\n\n\
             | call | clients | op/s (median) | min..max | p50 ms | p99 ms | errors | ours | ratio | goal | |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
            self.version
        );
        for (load, record) in LOADS.iter().zip(&self.records) {
            let compared = load.ours.and_then(|(row, goal)| Some((row, ours(row)?, goal)));
            let compared = compared.map_or(" | | | ".to_owned(), |(row, ours, goal)| {
                let ratio = ours.p50_us.median_ratio(&record.p50_us);
                let goal = goal.map_or(" | ".into(), |goal| goal.cells(ratio, "x"));
                let by = if row.streams > 0 { " by one stream" } else { "" };
                format!("{}{by} | {ratio:.2}x | {goal}", row.op)
            });
            let _ = writeln!(
                text,
                "| {} | {} | {:.0} | {:.0}..{:.0} | {:.3} | {:.3} | {} | {compared} |",
                load.op,
                load.clients(),
                record.rate.median(),
                record.rate.min(),
                record.rate.max(),
                record.p50_us.median() / 1000.0,
                record.p99_us.median() / 1000.0,
                record.errors,
            );
        }
        text
    }
}

impl StoreLoad {
    fn clients(&self) -> usize {
        self.processes * self.threads
    }
}

/// One round, by processes of their own.
async fn measure(python: &Path, load: StoreLoad, plan: Plan) -> anyhow::Result<serde_json::Value> {
    let directory = tempfile::tempdir().context("temporary directory")?;
    // It starts itself once more for each process of clients, so it must be a file.
    let script = directory.path().join("measure_tcpstore.py");
    std::fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    let mut command = Command::new(python);
    command
        .arg(&script)
        .args([load.op, &load.processes.to_string(), &load.threads.to_string()])
        .args([&plan.warm_up.as_secs_f64().to_string(), &plan.measured.as_secs_f64().to_string()])
        .arg(VALUE_BYTES.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let patience = START_PATIENCE + plan.warm_up + plan.measured;
    let output = tokio::time::timeout(patience, command.output()).await;
    let output = output.with_context(|| format!("the TCPStore did not end within {patience:?}"))?;
    let output = output.with_context(|| format!("cannot start {}", python.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "the TCPStore cannot be measured with {}:\n{said}",
        python.display()
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("the script says no figures:\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_has_all_columns_and_the_ratio_where_we_do_the_same() {
        let mut stores = StoreRecords::new(Path::new("python"));
        for record in &mut stores.records {
            for samples in [&mut record.rate, &mut record.p50_us, &mut record.p99_us] {
                samples.push(500.0);
            }
        }
        let mut ours = Record::default();
        ours.p50_us.push(1_000.0);
        for known in [true, false] {
            let text = stores.table(&|_| known.then_some(&ours));
            let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
            assert_eq!(rows.len(), 2 + LOADS.len());
            for row in &rows {
                assert_eq!(row.matches('|').count(), 12, "{row}");
            }
            assert_eq!(text.contains("put | 2.00x | <= 6x | met"), known, "{text}");
        }
    }
}
