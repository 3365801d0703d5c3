//! The calls of one process of the scheduler: each is sent with its stamp until it is answered.

use std::rc::Rc;

use rand::RngExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tripod_proto::metadata;
use tripod_proto::ray::{
    DecrementRefCountRequest, IncrementRefCountRequest, Obj, PutObjReply, PutObjRequest, RequestObjRequest,
    SubmitTaskReply, SubmitTaskRequest, Task, Value as Argument,
};
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_client::RayClient;
use tripod_proto::tripod::v1::ray_result::Reply;
use tripod_proto::tripod::v1::{RayBatchRequest, RayCall, RayResult, RayRun};

use super::JOB;
use super::shelf::REFUSED_FOR;
use crate::client::{Answer, Client, to_job};
use crate::witness::now;

/// The process was given up by the cluster, or its store is gone: it has to begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A call of a running task that makes objects: the same call of a later attempt gets the same ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child {
    /// Which of the tasks that its worker has.
    pub(super) run: RayRun,
    /// Among the calls of that task.
    pub(super) place: u32,
}

/// One process, or one of the tasks that it has: they share a session, in which one call follows the other.
pub(super) struct Calls {
    pub(super) client: Client,
    session: Rc<Mutex<Session>>,
    /// Once it is registered.
    pub(super) process: Option<u64>,
}

struct Session {
    id: u128,
    /// Of the next call.
    number: u64,
}

impl Calls {
    pub(super) fn new(mut client: Client) -> Self {
        let session = Session { id: client.dice.random(), number: 1 };
        Self { client, session: Rc::new(Mutex::new(session)), process: None }
    }

    /// For something that the process does beside this.
    pub(super) fn beside(&mut self) -> Self {
        let (session, process) = (Rc::clone(&self.session), self.process);
        Self { client: self.client.sibling_here(), session, process }
    }

    /// A call that changes something. Whoever gives up waiting for it must make no other one.
    pub(super) async fn change<M: Clone, R>(
        &mut self,
        message: M,
        headers: &[(&'static str, u64)],
        send: impl AsyncFn(Channel, Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<R, Gone> {
        let session = Rc::clone(&self.session);
        let mut session = session.lock().await;
        loop {
            let channel = self.client.channel();
            let request = session.stamped(message.clone(), headers);
            match self.client.ask(send(channel, request)).await {
                Answer::Yes(reply) => {
                    session.number += 1;
                    return Ok(reply);
                }
                Answer::No(status) => match reason(&status) {
                    "expired" => return Err(Gone),
                    "level" | "no-store" | "no-job" => self.client.pause(300).await,
                    _ if status.code() == Code::Unavailable => self.client.pause(200).await,
                    _ => {
                        self.refused(&format!("a whole call: {status}"));
                        return Err(Gone);
                    }
                },
                Answer::NotExecuted(_) | Answer::Lost(_) => self.client.pause(100).await,
            }
        }
    }

    /// Several calls in their order. A refusal is a violation, unless the caller says that its reason is right.
    pub(super) async fn batch(
        &mut self,
        calls: Vec<RayCall>,
        right: &[&str],
    ) -> Result<Vec<RayResult>, Gone> {
        let asked = calls.clone();
        let batch = RayBatchRequest { workerid: self.process, calls };
        let send = async |channel, request| RayClient::new(channel).batch(request).await;
        let results = self.change(batch, &[], send).await?.results;
        for (call, result) in asked.iter().zip(&results) {
            match result.reason.as_str() {
                "expired" => return Err(Gone),
                reason if result.code == 0 || right.contains(&reason) => {}
                _ => self.refused(&format!("{call:?}: {}", result.text)),
            }
        }
        Ok(results)
    }

    fn refused(&self, what: &str) {
        let process = self.process;
        self.client.witness.broken(now(), "no call is refused", format!("process {process:?}: {what}"));
    }

    /// Submits a task, and waits while nobody knows its function.
    pub(super) async fn submit(
        &mut self,
        name: &str,
        arguments: Vec<Argument>,
        child: Option<Child>,
    ) -> Result<Vec<u64>, Gone> {
        let by_reference = |argument: &Argument| argument.obj.is_none().then_some(argument.id);
        let referred: Vec<u64> = arguments.iter().filter_map(by_reference).collect();
        let task = Task { name: name.to_owned().into(), arg: arguments, result: Vec::new() };
        let workerid = self.process.unwrap_or_default();
        let submit = Call::Submit(SubmitTaskRequest { workerid, task: Some(task) });
        let submit = of_task(call(submit), child);
        let mut calls = vec![submit];
        if !referred.is_empty() {
            calls.insert(0, increment(referred));
        }
        loop {
            let mut results = self.batch(calls.clone(), &[]).await?;
            match results.pop().and_then(|result| result.reply) {
                Some(Reply::Submit(SubmitTaskReply { result, function_registered: true })) => {
                    return Ok(result);
                }
                // What it refers to is counted already.
                _ => calls = calls.split_off(calls.len() - 1),
            }
            self.client.pause(200).await;
        }
    }

    /// Has the cluster bring an object to the store of this process, which then waits for it there.
    pub(super) async fn request(&mut self, object: u64, right: &[&str]) -> Result<(), Gone> {
        let workerid = self.process.unwrap_or_default();
        let get = RequestObjRequest { workerid, objectid: object };
        loop {
            let sent = Instant::now();
            self.batch(vec![call(Call::Request(get))], right).await?;
            // The answer may be late. What the store could not have after the cluster had heard this is told those who
            // come to it within a while; who comes later would wait for nobody.
            if sent.elapsed() < REFUSED_FOR {
                return Ok(());
            }
        }
    }

    /// An id for an object that is then to be written, unless that was done before. `losses`: refusals of its first
    /// reference that are right, as when the store ended meanwhile, in which it would have been written.
    pub(super) async fn put(&mut self, child: Option<Child>, losses: &[&str]) -> Result<(u64, bool), Gone> {
        let put = PutObjRequest { workerid: self.process.unwrap_or_default(), hold: false };
        let put = of_task(call(Call::Put(put)), child);
        let reply = self.batch(vec![put], &[]).await?.pop().and_then(|result| result.reply);
        let Some(Reply::Put(PutObjReply { objectid, already_present })) = reply else { return Err(Gone) };
        let counted = self.batch(vec![increment(vec![objectid])], losses).await?;
        if counted.iter().any(|result| result.code != 0) {
            return Err(Gone);
        }
        Ok((objectid, already_present))
    }
}

impl Session {
    fn stamped<M>(&self, message: M, headers: &[(&'static str, u64)]) -> Request<M> {
        let mut request = to_job(JOB, message);
        let told = request.metadata_mut();
        let session = format!("{:032x}", self.id);
        told.insert(metadata::RAY_SESSION, session.parse().expect("digits are ASCII"));
        told.insert(metadata::RAY_SEQ, self.number.into());
        told.insert(metadata::RAY_ACKED, (self.number - 1).into());
        for (key, value) in headers {
            told.insert(*key, (*value).into());
        }
        request
    }
}

/// The reason word of a refusal.
pub(super) fn reason(status: &Status) -> &str {
    status.metadata().get(metadata::RAY_REASON).and_then(|word| word.to_str().ok()).unwrap_or_default()
}

/// A call without options.
pub(super) fn call(call: Call) -> RayCall {
    RayCall { call: Some(call), ..RayCall::default() }
}

/// The same call, made by a running task.
fn of_task(call: RayCall, child: Option<Child>) -> RayCall {
    RayCall { run: child.map(|child| child.run), child: child.map(|child| child.place), ..call }
}

pub(super) fn increment(objectid: Vec<u64>) -> RayCall {
    call(Call::Increment(IncrementRefCountRequest { objectid }))
}

pub(super) fn decrement(objectid: Vec<u64>) -> RayCall {
    call(Call::Decrement(DecrementRefCountRequest { objectid }))
}

/// An argument by value.
pub(super) fn number(number: u64) -> Argument {
    let data = number.cast_signed();
    let obj = Obj { int_data: Some(tripod_proto::ray::Int { data }), ..Obj::default() };
    Argument { id: 0, obj: Some(obj) }
}

/// An argument by reference.
pub(super) fn object(id: u64) -> Argument {
    Argument { id, obj: None }
}
