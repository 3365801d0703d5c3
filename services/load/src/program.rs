//! Sets and gets as a training program's client makes them: over dialect T, which needs no registration.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tonic::Status;
use tonic::transport::Channel;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_proto::tensorflow::{InsertKeyValueRequest, KeyValueEntry, TryGetKeyValueRequest};

use crate::closed_loop::{self, Plan};
use crate::connect;
use crate::report::{Report, Setting};

/// How long a job's port, or an agent's, may take to open.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a value: an address, a topology, a rank.
const VALUE_BYTES: usize = 256;

/// What each client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Overwrites a key of its own.
    Set,
    /// Reads it, linearizably.
    Get,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Set => "set",
            Self::Get => "get",
        })
    }
}

/// Measures `clients` clients, each with a connection of its own to `address`, which serves one job.
/// `system` and `target` are names for the report.
///
/// # Errors
/// No connection, or the first write fails.
pub async fn run(
    system: &str,
    target: &str,
    address: &str,
    op: Op,
    clients: usize,
    plan: Plan,
) -> anyhow::Result<Report> {
    let mut workers = Vec::with_capacity(clients);
    for number in 0..clients {
        let channel = connect::connect_within(address, CONNECT_PATIENCE).await?;
        let client = CoordinationServiceClient::new(channel);
        let mut worker = Worker { client, op, key: format!("bench/program/{number}") };
        worker.set().await?;
        workers.push(worker);
    }
    let (outcome, _) = closed_loop::run(plan, workers).await?;
    let setting = Setting {
        op: &op.to_string(),
        system,
        clients,
        connections: clients,
        target,
        value_bytes: Some(VALUE_BYTES),
    };
    Ok(Report::new(setting, &outcome))
}

struct Worker {
    client: CoordinationServiceClient<Channel>,
    op: Op,
    key: String,
}

impl Worker {
    async fn set(&mut self) -> Result<(), Status> {
        let kv = KeyValueEntry { key: self.key.clone(), value: Bytes::from_static(&[7; VALUE_BYTES]) };
        self.client.insert_key_value(InsertKeyValueRequest { kv: Some(kv), allow_overwrite: true }).await?;
        Ok(())
    }

    async fn get(&mut self) -> Result<(), Status> {
        let answer = self.client.try_get_key_value(TryGetKeyValueRequest { key: self.key.clone() }).await?;
        match answer.into_inner().kv {
            Some(kv) if kv.value.len() == VALUE_BYTES => Ok(()),
            _ => Err(Status::data_loss("the value is not the one that was set")),
        }
    }
}

impl closed_loop::Client for Worker {
    async fn step(&mut self) -> Result<(), Status> {
        match self.op {
            Op::Set => self.set().await,
            Op::Get => self.get().await,
        }
    }
}
