//! The scheduler of a job, as one of its processes calls it: a worker, a driver or an object store.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Request, Response, Status};
use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;
use tripod_proto::metadata as key;
use tripod_proto::ray;
use tripod_proto::ray::scheduler_client::SchedulerClient;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::membership_client::MembershipClient;
use crate::wire::ray_client::RayClient;

/// The reason of refusals that end when the cluster's feature level rises.
const LEVEL: &str = "level";
/// The longest wait at one node: shorter than the time after which another node is asked.
const WAIT_SLICE: Duration = Duration::from_secs(2);
const LEVEL_PAUSE: Duration = Duration::from_millis(250);

/// One process of a job's scheduler. Its mutating calls are made one after the other, each exactly once: it is sent
/// with the same number until it is answered.
#[derive(Debug)]
pub struct Scheduler {
    client: Client,
    job: String,
    /// 128 bits that are this process's own.
    session: u128,
    /// How long a call is sent again before the process gives up.
    patience: Duration,
    /// The number of the next mutating call; held while one is under way. `None` after one of which nobody knows
    /// whether it took effect: a call under another number might then come before it.
    next: tokio::sync::Mutex<Option<u64>>,
}

/// What a worker or driver says of itself when it registers.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The host that the process runs on, as an IP address.
    pub host: String,
    /// The address of the store to use; empty: one of the same host.
    pub store: String,
    pub is_driver: bool,
    /// How many tasks it may be given at a time.
    pub slots: u32,
    /// What a worker has; without a word one processor. To say something needs feature level 10.
    pub offers: Offers,
    /// How long it waits for a cluster that has no schedulers yet, since it is at an earlier feature level; `None`: as
    /// long as it takes.
    pub level_patience: Option<Duration>,
}

/// What a worker has for its tasks. Amounts are in thousandths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// Processors; `None`: 1000.
    pub cpus_milli: Option<u64>,
    /// Bytes of memory; `None`: nobody knows, and no task may ask for any.
    pub memory_bytes: Option<u64>,
    /// Other things by their names, which have no `,` and no `=`.
    pub named_milli: BTreeMap<String, u64>,
}

/// A whole scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    pub reply: ray::SchedulerInfoReply,
    /// The object of which the first places of its lists tell.
    pub base_object: u64,
    /// The operation that is the first of its graph.
    pub base_operation: u64,
}

impl Offers {
    /// What is said of them when a worker registers.
    fn headers(&self) -> Result<Vec<(&'static str, MetadataValue<Ascii>)>, Error> {
        let numbers = [(key::RAY_CPUS_MILLI, self.cpus_milli), (key::RAY_MEMORY_BYTES, self.memory_bytes)];
        let numbers = numbers.into_iter().filter_map(|(key, number)| Some((key, number?.into())));
        let mut headers: Vec<(&'static str, MetadataValue<Ascii>)> = numbers.collect();
        if !self.named_milli.is_empty() {
            let unfit = |name: &&String| name.is_empty() || name.contains([',', '=']);
            if let Some(name) = self.named_milli.keys().find(unfit) {
                return Err(Error::Config(format!("a resource cannot be called {name:?}")));
            }
            let named = self.named_milli.iter().map(|(name, amount)| format!("{name}={amount}"));
            let list = named.collect::<Vec<_>>().join(",");
            let unfit = |_| Error::Config(format!("resources can have names of ASCII only, not {list:?}"));
            headers.push((key::RAY_RESOURCES_MILLI, MetadataValue::try_from(list.as_str()).map_err(unfit)?));
        }
        Ok(headers)
    }
}

impl Scheduler {
    /// The scheduler of a job (empty: `default`), for one process. `session` must be drawn anew by each process, and
    /// again when it registers anew. A call is sent again for `patience`, longer than any election takes.
    #[must_use]
    pub fn new(client: Client, job: &str, session: u128, patience: Duration) -> Self {
        Self { client, job: job.to_owned(), session, patience, next: tokio::sync::Mutex::new(Some(1)) }
    }

    /// Begins as a worker or a driver that sends heartbeats. Must be the first mutating call.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no store for it, else as any call.
    pub async fn register_worker(&self, who: &Registration) -> Result<ray::RegisterWorkerReply, Error> {
        let message = ray::RegisterWorkerRequest {
            node_ip_address: who.host.clone(),
            objstore_address: who.store.clone(),
            is_driver: who.is_driver,
        };
        let slots = who.slots;
        let offers = who.offers.headers()?;
        self.change_at_level("register worker", who.level_patience, |way, mut stamped| {
            let (message, headers) = (message.clone(), stamped.metadata_mut());
            headers.insert(key::RAY_EXTENDED, MetadataValue::from_static("1"));
            headers.insert(key::RAY_SLOTS, slots.into());
            for (key, value) in &offers {
                headers.insert(*key, value.clone());
            }
            let request = stamped.map(|()| message);
            async move { SchedulerClient::new(way).register_worker(request).await }
        })
        .await
    }

    /// Begins as an object store that sends heartbeats. Must be the first mutating call.
    ///
    /// # Errors
    /// As any call.
    pub async fn register_store(&self, address: &str) -> Result<ray::RegisterObjStoreReply, Error> {
        let message = ray::RegisterObjStoreRequest { objstore_address: address.to_owned() };
        self.change("register object store", |way, mut stamped| {
            stamped.metadata_mut().insert(key::RAY_EXTENDED, MetadataValue::from_static("1"));
            let request = stamped.map(|()| message.clone());
            async move { SchedulerClient::new(way).register_obj_store(request).await }
        })
        .await
    }

    /// Several calls in their order. Every one is answered by itself: look at the codes.
    ///
    /// # Errors
    /// As any call; then it is not known which of the calls took effect.
    pub async fn batch(&self, message: wire::RayBatchRequest) -> Result<wire::RayBatchResponse, Error> {
        self.change("scheduler batch", |way, stamped| {
            let request = stamped.map(|()| message.clone());
            async move { ray_client(way).batch(request).await }
        })
        .await
    }

    /// Makes a function known to all workers, those that come later too.
    ///
    /// # Errors
    /// As any call.
    pub async fn export_function(&self, message: ray::ExportFunctionRequest) -> Result<(), Error> {
        let export = |way, stamped: Request<()>| {
            let request = stamped.map(|()| message.clone());
            async move { SchedulerClient::new(way).export_function(request).await }
        };
        self.change("export function", export).await.map(|_: ray::ExportFunctionReply| ())
    }

    /// Makes a reusable variable known to all workers, those that come later too.
    ///
    /// # Errors
    /// As any call.
    pub async fn export_variable(&self, message: ray::ExportReusableVariableRequest) -> Result<(), Error> {
        let export = |way, stamped: Request<()>| {
            let request = stamped.map(|()| message.clone());
            async move { SchedulerClient::new(way).export_reusable_variable(request).await }
        };
        self.change("export variable", export).await.map(|_: ray::AckReply| ())
    }

    /// Ends all workers, if none of them has anything to do; answers whether that was so.
    ///
    /// # Errors
    /// As any call.
    pub async fn kill_workers(&self) -> Result<bool, Error> {
        let kill = |way, stamped: Request<()>| {
            let request = stamped.map(|()| ray::KillWorkersRequest {});
            async move { SchedulerClient::new(way).kill_workers(request).await }
        };
        self.change("kill workers", kill).await.map(|reply: ray::KillWorkersReply| reply.success)
    }

    /// Says that this process is alive. Not in the order of the other calls.
    ///
    /// # Errors
    /// [`Error::Refused`] with reason `expired` when the process was given up, else as any call.
    pub async fn heartbeat(&self, message: wire::HeartbeatRequest) -> Result<wire::HeartbeatResponse, Error> {
        let beat = |way, request: Request<()>| {
            let request = request.map(|()| message.clone());
            async move { MembershipClient::new(way).heartbeat(request).await }
        };
        self.look("heartbeat", beat).await
    }

    /// Waits until objects are decided, at most for the request's time. Asks again and again: a node that is cut off
    /// must not be waited for.
    ///
    /// # Errors
    /// As any call, when no node could answer for the process's patience.
    pub async fn wait(&self, mut message: wire::RayWaitRequest) -> Result<wire::RayWaitResponse, Error> {
        let until = Instant::now() + Duration::from_millis(message.timeout_ms);
        let all = message.objectids.len();
        let enough = if message.at_least == 0 { all } else { all.min(message.at_least as usize) };
        let mut answered = Instant::now();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            message.timeout_ms = u64::try_from(left.min(WAIT_SLICE).as_millis()).unwrap_or(u64::MAX);
            let asked = self.look("wait for objects", |way, request| {
                let request = request.map(|()| message.clone());
                async move { ray_client(way).wait(request).await }
            });
            match asked.await {
                Ok(answer) if answer.objects.len() >= enough || left <= WAIT_SLICE => return Ok(answer),
                Ok(_) => answered = Instant::now(),
                Err(Error::Unavailable { .. }) if answered.elapsed() < self.patience => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Workers, stores, queues and objects, for people.
    ///
    /// # Errors
    /// As any call.
    pub async fn status(&self) -> Result<wire::RayStatusResponse, Error> {
        self.look("scheduler status", |way, request| async move {
            ray_client(way).status(request.map(|()| wire::RayStatusRequest {})).await
        })
        .await
    }

    /// Tasks, newest first.
    ///
    /// # Errors
    /// As any call.
    pub async fn tasks(&self, message: wire::RayTasksRequest) -> Result<wire::RayTasksResponse, Error> {
        self.look("scheduler tasks", |way, request| {
            let request = request.map(|()| message.clone());
            async move { ray_client(way).tasks(request).await }
        })
        .await
    }

    /// The queue, the functions, the objects and the graph.
    ///
    /// # Errors
    /// As any call.
    pub async fn info(&self) -> Result<Info, Error> {
        self.look("scheduler info", |way, request| async move {
            let mut client = SchedulerClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
            let response = client.scheduler_info(request.map(|()| ray::SchedulerInfoRequest {})).await?;
            let (told, reply, extensions) = response.into_parts();
            let base = |key| told.get(key).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
            let (base_object, base_operation) = (base(key::RAY_BASE_OBJECT), base(key::RAY_BASE_OPERATION));
            let info = Info { reply, base_object, base_operation };
            Ok(Response::from_parts(told, info, extensions))
        })
        .await
    }

    /// The tasks that run or failed, and how many succeeded.
    ///
    /// # Errors
    /// As any call.
    pub async fn task_info(&self) -> Result<ray::TaskInfoReply, Error> {
        self.look("task info", |way, request| async move {
            let mut client = SchedulerClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX);
            client.task_info(request.map(|()| ray::TaskInfoRequest {})).await
        })
        .await
    }

    /// A call that changes nothing.
    async fn look<T, F, Fut>(&self, what: &'static str, send: F) -> Result<T, Error>
    where
        F: Fn(Way, Request<()>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let request = || self.request();
        self.client.caller().call(what, Repeat::Freely, |way| send(way, request())).await
    }

    /// A mutating call: with the same number until it is answered, or patience ends.
    async fn change<T, F, Fut>(&self, what: &'static str, send: F) -> Result<T, Error>
    where
        F: Fn(Way, Request<()>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        self.change_at_level(what, Some(self.patience), send).await
    }

    /// [`Self::change`], with a patience of its own for a cluster that has no schedulers yet.
    async fn change_at_level<T, F, Fut>(
        &self,
        what: &'static str,
        level_patience: Option<Duration>,
        send: F,
    ) -> Result<T, Error>
    where
        F: Fn(Way, Request<()>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut next = self.next.lock().await;
        let begun = Instant::now();
        // Nodes that are upgraded are away for a while, too, and who waits for that must not give up then.
        let mut answered = begun;
        let Some(number) = *next else { return Err(Error::OutcomeUnknown { what, attempts: Vec::new() }) };
        let stamped = || {
            let mut request = self.request();
            let headers = request.metadata_mut();
            let session = format!("{:032x}", self.session);
            headers.insert(key::RAY_SESSION, session.parse().expect("hexadecimal digits are a value"));
            headers.insert(key::RAY_SEQ, number.into());
            headers.insert(key::RAY_ACKED, (number - 1).into());
            request
        };
        let mut told = String::new();
        loop {
            let sent = self.client.caller();
            let outcome = sent.call(what, Repeat::SameStamp, |way| send(way, stamped())).await;
            match outcome {
                Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. })
                    if answered.elapsed() < self.patience => {}
                // A cluster that was just started or upgraded raises its level by itself.
                Err(Error::Refused { reason, message, .. })
                    if reason == LEVEL
                        && level_patience.is_none_or(|patience| begun.elapsed() < patience) =>
                {
                    answered = Instant::now();
                    // Who holds the level down may be known only later.
                    if message != told {
                        tracing::warn!(
                            reason = message,
                            "the cluster has no schedulers yet and is waited for; its level rises by itself when the \
                             build of every node supports the next one, and, where it is pinned, after \
                             `tripod level unpin`"
                        );
                        told = message;
                    }
                    tokio::time::sleep(LEVEL_PAUSE).await;
                }
                // A refusal is an answer too, and is remembered; but a number is not used up by the word that there
                // is no room now, or no scheduler.
                Err(Error::Refused { code: Code::ResourceExhausted, .. }) => return outcome,
                Err(ref error) if error.has_reason(LEVEL) => return outcome,
                Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => {
                    *next = None;
                    return outcome;
                }
                outcome => {
                    *next = Some(number + 1);
                    return outcome;
                }
            }
        }
    }

    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        if !self.job.is_empty()
            && let Ok(job) = self.job.parse()
        {
            request.metadata_mut().insert(key::JOB, job);
        }
        request
    }
}

fn ray_client(way: Way) -> RayClient<Way> {
    RayClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}
