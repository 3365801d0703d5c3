//! Drivers of a scheduler: they submit tasks of which they know what comes of them, and read it.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_client::Scheduler;
use tripod_client::wire::RayTasksRequest;
use tripod_worker::{Config, Driver, GetError, ObjectRef, Task};

use super::setting::Setting;
use tripod_checkers::history::{Call, ClientId, Found, NotMade, Outcome, Reply, SchedulerSeen, Value, Work};

const DRIVERS: usize = 2;
const REST_MAX_MS: u64 = 60;
/// Results that a driver has not read yet, at most.
const HELD_MAX: usize = 60;
/// How long a result may take while faults are about; it is asked for again later.
const RESULT_PATIENCE: Duration = Duration::from_secs(10);
/// How long once they are over: an election, the time that everybody has after it, and a few tries of a chain.
const LAST_RESULT_PATIENCE: Duration = Duration::from_secs(120);
/// How long until nothing is left of what was dropped, and until there is a driver.
const EMPTY_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// How long the last look at the scheduler may take in all.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);

/// A task whose result was not read yet.
struct HeldObject {
    work: Work,
    result: ObjectRef,
    /// What it makes; `None`: it fails.
    makes: Option<u64>,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let drivers: Vec<_> = (0..DRIVERS).map(|_| run(setting.clone(), setting.client_id())).collect();
    let (setting, id) = (setting.clone(), setting.client_id());
    clients.spawn(async move {
        futures::future::join_all(drivers).await;
        look(&setting, id).await;
    });
}

async fn run(setting: Setting, id: ClientId) {
    let random = setting.random(id);
    let Some(driver) = begin(&setting).await else { return };
    let mut client = Client { setting, id, random, driver, held: Vec::new() };
    while client.setting.goes_on() {
        client.step().await;
        client.setting.rest(&mut client.random, REST_MAX_MS).await;
    }
    while let Some(held) = client.held.pop() {
        client.read(held, LAST_RESULT_PATIENCE).await;
    }
}

/// A driver, as soon as there is a store on its machine.
async fn begin(setting: &Setting) -> Option<Driver> {
    let endpoints = setting.endpoints.iter().map(|endpoint| endpoint.address.clone()).collect();
    let config = Config { host: setting.driver_host.clone(), ..Config::local(endpoints) };
    let deadline = Instant::now() + EMPTY_PATIENCE;
    loop {
        match Driver::begin(&config).await {
            Ok(driver) => return Some(driver),
            Err(error) if Instant::now() >= deadline => {
                setting.recorder.void(format!("no driver can begin: {error}"));
                return None;
            }
            Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
        }
    }
}

struct Client {
    setting: Setting,
    id: ClientId,
    random: StdRng,
    driver: Driver,
    held: Vec<HeldObject>,
}

impl Client {
    async fn step(&mut self) {
        if self.held.len() >= HELD_MAX || (self.random.random_ratio(1, 4) && !self.held.is_empty()) {
            let place = self.random.random_range(0..self.held.len());
            let held = self.held.swap_remove(place);
            self.read(held, RESULT_PATIENCE).await;
            return;
        }
        let number = self.random.random_range(0..1000);
        match self.random.random_range(0..10) {
            0..=2 => {
                let task = Task::of("tripod.add").arg(&number).and_then(|task| task.arg(&1));
                self.submit(task.ok(), Some(number + 1)).await;
            }
            3 => self.submit(Task::of("tripod.fail").arg("on purpose").ok(), None).await,
            4 => {
                let order = number % 7;
                self.submit(Task::of("tripod.fibonacci").arg(&order).ok(), Some(fibonacci(order))).await;
            }
            5 => self.with_what_was_put(number).await,
            6 => self.chain(number).await,
            _ => self.sum().await,
        }
    }

    /// Adds one to a number that was put, which then nobody but the task refers to.
    async fn with_what_was_put(&mut self, number: u64) {
        let Ok(put) = self.driver.put(&number).await else { return };
        let task = Task::of("tripod.add").object(&put).arg(&1);
        self.submit(task.ok(), Some(number + 1)).await;
    }

    /// Adds one again and again to the last result.
    async fn chain(&mut self, number: u64) {
        for step in 1..=5 {
            let last = self.held.last().filter(|held| step > 1 && held.makes == Some(number + step - 1));
            let task = match last {
                Some(last) => Task::of("tripod.add").object(&last.result).arg(&1),
                None => Task::of("tripod.add").arg(&number).and_then(|task| task.arg(&step)),
            };
            self.submit(task.ok(), Some(number + step)).await;
        }
    }

    /// The sum of some results. One of a task that fails makes it fail.
    async fn sum(&mut self) {
        let (mut task, mut sum) = (Task::of("tripod.sum"), Some(0));
        for held in self.held.iter().rev().take(self.random.random_range(1..8)) {
            task = task.object(&held.result);
            sum = sum.zip(held.makes).map(|(sum, number)| sum + number);
        }
        self.submit(Some(task), sum).await;
    }

    async fn submit(&mut self, task: Option<Task>, makes: Option<u64>) {
        let Some(task) = task else { return };
        let work = Work(self.setting.fresh());
        let call = Call::Submit { work, makes: makes.map(Value) };
        let pending = self.setting.invoke(self.id, call);
        let outcome = match self.driver.submit(&task).await {
            Ok(mut results) => match results.pop() {
                Some(result) => {
                    self.held.push(HeldObject { work, result, makes });
                    Outcome::Ok(Reply::Done)
                }
                None => Outcome::Unknown("it has no result".to_owned()),
            },
            Err(error) => Outcome::Unknown(error.to_string()),
        };
        self.setting.complete(pending, outcome);
    }

    /// Reads a result and drops it, or keeps it for later.
    async fn read(&mut self, held: HeldObject, patience: Duration) {
        let pending = self.setting.invoke(self.id, Call::ReadResult { work: held.work });
        let got = self.driver.get_within::<u64>(&held.result, patience).await;
        let outcome = match got {
            Ok(number) => {
                Outcome::Ok(Reply::Value(Some(Found { value: Value(number), version: None, index: None })))
            }
            Err(GetError::Failed(error)) => {
                let reason = if error.is_exception() { NotMade::Failed } else { NotMade::Lost };
                let text = format!("{}: {}", error.reason, error.text);
                Outcome::Ok(Reply::NotMade { reason, text })
            }
            Err(error) => Outcome::Unknown(error.to_string()),
        };
        let later = outcome.reply().is_none() && patience < LAST_RESULT_PATIENCE;
        self.setting.complete(pending, outcome);
        if later {
            self.held.push(held);
        }
    }
}

fn fibonacci(order: u64) -> u64 {
    (0..order).fold((0, 1), |(this, next), _| (next, this + next)).0
}

/// Waits until nothing is left, and writes down what is.
async fn look(setting: &Setting, id: ClientId) {
    let mut random = setting.random(id);
    let scheduler = Scheduler::new(setting.library(&mut random), "", 0, LOOK_PATIENCE);
    let pending = setting.invoke(id, Call::ReadScheduler);
    let deadline = Instant::now() + EMPTY_PATIENCE;
    let outcome = loop {
        let seen = seen(&scheduler).await;
        let is_last = Instant::now() >= deadline;
        match seen {
            Ok(seen) if is_last || (seen.objects == 0 && seen.open == 0) => {
                break Outcome::Ok(Reply::Scheduler(seen));
            }
            Err(error) if is_last => break Outcome::Fail(error.to_string()),
            Ok(_) | Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
        }
    };
    setting.complete(pending, outcome);
}

async fn seen(scheduler: &Scheduler) -> Result<SchedulerSeen, tripod_client::Error> {
    let status = scheduler.status().await?;
    let ask = RayTasksRequest { limit: 10_000, state: String::new() };
    let tasks = scheduler.tasks(ask).await?.tasks;
    Ok(SchedulerSeen {
        objects: status.objects_live,
        open: status.tasks_queued + status.tasks_running,
        again: tasks.iter().filter(|task| was_begun_again(&task.history)).count() as u64,
    })
}

/// Whether an attempt before the present one was begun. One that its worker gave back, or never had, was not: of the
/// former the history says nothing.
fn was_begun_again(history: &[String]) -> bool {
    history.iter().any(|ended| !ended.ends_with("was never handed over"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_know_what_the_function_makes() {
        assert_eq!([0, 1, 2, 3, 6].map(fibonacci), [0, 1, 1, 2, 8]);
    }

    #[test]
    fn an_attempt_that_never_began_is_none() {
        let history = |ended: &[&str]| {
            was_begun_again(&ended.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert!(!history(&[]));
        assert!(!history(&["attempt 1: was never handed over"]));
        assert!(history(&["attempt 1: was never handed over", "attempt 2: its worker died"]));
    }
}
