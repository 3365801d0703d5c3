//! A simulated driver: submits tasks, and judges what comes of them.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, timeout_at};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::tripod::v1::heartbeat_request::Kind;

use super::Machine;
use super::beat::Beats;
use super::calls::{Calls, Gone, decrement, increment, number, object};
use super::function::{SLOW, exported_by};
use super::life::Life;
use super::shelf::{Refused, Shelf};
use super::value::{Expected, Value};
use crate::client::Client;
use crate::witness::now;

/// References that a driver has at a time, at most.
const HELD_MAX: usize = 10;
/// While faults are injected a driver goes on after waiting for so long, and asks again later.
const PATIENCE: Duration = Duration::from_millis(2500);

/// And when everything has settled every object comes, or the reason why not, within so long.
const COMES_WITHIN: Duration = Duration::from_secs(20);

/// An object that a driver refers to.
#[derive(Debug, Clone, Copy)]
struct HeldObject {
    id: u64,
    expected: Expected,
}

/// Lives as a driver with the store at that port until the run ends: `true`; or until it has to begin anew.
pub(super) async fn live(machine: &Machine, store_port: u16, client: Client, life: Life) -> bool {
    let mut calls = Calls::new(client);
    let register = pb::RegisterWorkerRequest {
        node_ip_address: machine.ip.clone(),
        objstore_address: machine.address(store_port),
        is_driver: true,
    };
    let send = async |channel, request| SchedulerClient::new(channel).register_worker(request).await;
    let registered = calls.change(register, &[(metadata::RAY_EXTENDED, 1)], send);
    let registered = tokio::select! {
        biased;
        () = life.end() => return false,
        registered = registered => registered,
    };
    let Ok(registered) = registered else { return false };
    let id = registered.workerid;
    calls.process = Some(id);
    let Some(shelf) = machine.shelf(&registered.objstore_address, registered.objstoreid) else {
        return false;
    };
    machine.witness.note(now(), "scheduler", format_args!("driver {id} of store {}", shelf.store));
    let (beats, _good_until) = Beats::new(Kind::Driver, id);
    let beating = calls.client.sibling_here();
    let mut driver = Driver { machine, calls, shelf, held: Vec::new(), exported: 0 };
    tokio::select! {
        biased;
        () = life.end() => false,
        () = beats.run(beating, &life) => false,
        done = driver.run() => done.is_ok(),
    }
}

struct Driver<'a> {
    machine: &'a Machine,
    calls: Calls,
    shelf: Arc<Shelf>,
    held: Vec<HeldObject>,
    /// Versions of its function.
    exported: u64,
}

impl Driver<'_> {
    async fn run(&mut self) -> Result<(), Gone> {
        while !self.calls.client.done() {
            self.step().await?;
            self.calls.client.pause(80).await;
        }
        while let Some(held) = self.held.pop() {
            self.get(held, None).await?;
            self.calls.batch(vec![decrement(vec![held.id])], &[]).await?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Gone> {
        let full = self.held.len() >= HELD_MAX;
        match self.calls.client.dice.random_range(0..12) {
            0..=6 if !full => self.submit().await,
            7 if !full => self.put().await,
            8..=9 => match self.any() {
                Some(place) => {
                    let held = self.held[place];
                    let patience = (!self.calls.client.settled()).then_some(PATIENCE);
                    self.get(held, patience).await
                }
                None => Ok(()),
            },
            _ => match self.any() {
                Some(place) => {
                    let held = self.held.swap_remove(place);
                    self.calls.batch(vec![decrement(vec![held.id])], &[]).await.map(drop)
                }
                None => Ok(()),
            },
        }
    }

    fn any(&mut self) -> Option<usize> {
        (!self.held.is_empty()).then(|| self.calls.client.dice.random_range(0..self.held.len()))
    }

    async fn submit(&mut self) -> Result<(), Gone> {
        let n = self.calls.client.dice.random_range(0..1000);
        let plain = vec![number(n)];
        let exported;
        let (name, arguments, expected) = match self.calls.client.dice.random_range(0..15) {
            0..=1 => ("make", plain, vec![Expected::Number(n)]),
            2 => ("pair", plain, vec![Expected::Number(n), Expected::Number(n + 1)]),
            3..=4 => ("tree", plain, vec![Expected::Number(n)]),
            5 => ("wrap", plain, vec![Expected::Holding(n)]),
            6 => ("fail", plain, vec![Expected::Exception]),
            7 => (SLOW, plain, vec![Expected::Number(n)]),
            8..=9 => ("nest", plain, vec![Expected::Number(n)]),
            10..=11 => {
                exported = self.exported().await?;
                (exported.as_str(), vec![number(n), number(self.exported)], vec![Expected::Number(n)])
            }
            _ => {
                let (arguments, expected) = self.sum(n);
                ("sum", arguments, vec![expected])
            }
        };
        let results = self.calls.submit(name, arguments, None).await?;
        self.machine.witness.note(now(), "scheduler", format_args!("submitted {name}({n}): {results:?}"));
        for (id, expected) in results.into_iter().zip(expected) {
            self.machine.witness.scheduled(|rule| rule.acknowledged(id));
            self.held.push(HeldObject { id, expected });
        }
        Ok(())
    }

    /// The name of the driver's own function, of which there may be a new version now.
    async fn exported(&mut self) -> Result<String, Gone> {
        let name = exported_by(self.calls.process.unwrap_or_default());
        if self.exported == 0 || self.calls.client.dice.random_ratio(1, 2) {
            let version = self.exported + 1;
            let implementation = format!("{name}:{version}").into_bytes().into();
            let function = Some(pb::Function { implementation });
            let send = async |channel, request| SchedulerClient::new(channel).export_function(request).await;
            self.calls.change(pb::ExportFunctionRequest { function }, &[], send).await?;
            self.exported = version;
            self.machine.witness.note(now(), "scheduler", format_args!("exported {name}:{version}"));
        }
        Ok(name)
    }

    /// Up to three objects and a number.
    fn sum(&mut self, n: u64) -> (Vec<pb::Value>, Expected) {
        let (mut arguments, mut sum, mut fails) = (vec![number(n)], n, false);
        for _ in 0..self.calls.client.dice.random_range(1..=3) {
            let Some(place) = self.any() else { break };
            let held = self.held[place];
            match held.expected {
                Expected::Number(number) => sum = sum.wrapping_add(number),
                Expected::Exception => fails = true,
                Expected::Holding(_) => continue,
            }
            arguments.push(object(held.id));
        }
        (arguments, if fails { Expected::Exception } else { Expected::Number(sum) })
    }

    async fn put(&mut self) -> Result<(), Gone> {
        let n = self.calls.client.dice.random_range(0..1000);
        let (id, _) = self.calls.put(None, self.losses()).await?;
        self.shelf.put(id, Value::Number(n), None)?;
        self.machine.witness.note(now(), "scheduler", format_args!("put {n}: {id}"));
        self.held.push(HeldObject { id, expected: Expected::Number(n) });
        Ok(())
    }

    /// Reads an object and judges it.
    async fn get(&mut self, held: HeldObject, patience: Option<Duration>) -> Result<(), Gone> {
        let Some(value) = self.read(held.id, &[], patience).await? else { return Ok(()) };
        self.machine.witness.note(now(), "scheduler", format_args!("read {}: {value:?}", held.id));
        self.judge(held, &value);
        let (Expected::Holding(n), Value::Holding(inner)) = (held.expected, value) else { return Ok(()) };
        let counted = self.calls.batch(vec![increment(vec![inner])], self.losses()).await?;
        // What it was in may have been lost since, and made again with another one inside.
        if counted.iter().any(|result| result.code != 0) {
            return Ok(());
        }
        let within = HeldObject { id: inner, expected: Expected::Number(n) };
        if let Some(value) = self.read(inner, &[], patience).await? {
            self.judge(within, &value);
        }
        self.calls.batch(vec![decrement(vec![inner])], &[]).await.map(drop)
    }

    /// Refusals that are right when processes die.
    fn losses(&self) -> &'static [&'static str] {
        if self.machine.losses { &["deallocated"] } else { &[] }
    }

    fn judge(&self, held: HeldObject, value: &Value) {
        let HeldObject { id, expected } = held;
        let judged = expected.judge(value, self.machine.losses);
        self.machine.witness.scheduled(|rule| {
            rule.read(id);
            judged.map_err(|what| format!("object {id}: {what}"))
        });
    }

    async fn read(
        &mut self,
        id: u64,
        right: &[&str],
        patience: Option<Duration>,
    ) -> Result<Option<Value>, Gone> {
        let end = Instant::now() + patience.unwrap_or(COMES_WITHIN);
        loop {
            self.calls.request(id, right).await?;
            match timeout_at(end, self.shelf.get(id)).await {
                Ok(Ok(Ok(value))) => return Ok(Some(value)),
                Ok(Err(Gone)) => return Err(Gone),
                // It cannot come now. Who asks later is brought it.
                Ok(Ok(Err(Refused))) => self.calls.client.pause(300).await,
                Err(_) => break,
            }
        }
        if patience.is_none() {
            let what = format!("object {id}, which a driver waits for since {COMES_WITHIN:?}");
            self.machine.witness.broken(now(), "every result comes to be", what);
        }
        Ok(None)
    }
}
