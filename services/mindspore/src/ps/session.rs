//! The messages of one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tripod_dial::{Dialler, Refused};
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_port::CallerAddress;
use tripod_proto::code::Code;
use tripod_proto::mindspore::ps_core::{HeartbeatMessage, RegisterMessage};
use tripod_state::mindspore::cluster::{NodeView, Order, Request};
use tripod_state::mindspore::{self, Answer, Member};
use tripod_state::{Command, DomainId, Reply, Scope, State, Topic};

use super::answer;
use super::asked::{Asked, NotUnderstood, Report, registration};
use super::bound::Bound;
use super::release::Release;
use super::roster::Roster;
use crate::connection::{Complaints, Ended, Port, held, outage_code, shown};
use crate::marked;
use crate::pulse::{Beat, Pulse};
use crate::wire::ps::{Frame, Marked, Parts};
use crate::wire::{Mark, Word};

/// How long a heartbeat of somebody who is not known here may take: its node waits for an answer for three seconds.
const STRANGER_TIME: Duration = Duration::from_secs(1);
/// How long a registration of somebody who is known waits for what the node has answered before: likewise.
const ECHO_TIME: Duration = Duration::from_secs(1);

pub(crate) struct Session {
    gateway: Gateway,
    pulse: Pulse,
    complaints: Complaints,
    roster: Arc<Roster>,
    dialler: Dialler,
    scope: Scope,
    peer: CallerAddress,
    bound: Mutex<Bound>,
    /// What is not done here was told of already; likewise whoever does not belong to the cluster any more.
    told_undone: AtomicBool,
    told_replaced: AtomicBool,
}

/// What a heartbeat comes to.
pub(crate) struct Beaten {
    pub(crate) answer: Option<Frame>,
    /// What the leader is to hear.
    pub(crate) sign: Option<Beat>,
}

impl Session {
    pub(crate) fn new(port: Port, scope: Scope, peer: CallerAddress) -> Self {
        let Port { gateway, pulse, complaints, roster, dialler, .. } = port;
        Self {
            gateway,
            pulse,
            complaints,
            roster,
            dialler,
            scope,
            peer,
            bound: Mutex::default(),
            told_undone: AtomicBool::new(false),
            told_replaced: AtomicBool::new(false),
        }
    }

    /// The telling side of signs of life.
    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The bytes of what to say to a message; for some that is nothing, unless an agent has passed it on.
    ///
    /// # Errors
    /// The connection must end.
    pub(crate) async fn said(&self, asked: &Marked) -> Result<Option<Bytes>, Ended> {
        let Marked { frame, mark } = asked;
        let word = |word| Ok(Some(Parts::of_word(word).encode()));
        match (self.answer(frame, *mark).await, mark) {
            (Ok(Some(answer)), _) => Ok(Some(answer.encode())),
            (Ok(None), Some(_)) => word(Word::Silent),
            (Ok(None), None) => Ok(None),
            (Err(Ended::Stamp(told)), Some(_)) => word(told),
            (Err(ended), Some(_)) if marked::is_refusal(&ended) => {
                self.complaints.tell(self.peer, &format_args!("{ended}; an agent's client is refused"));
                word(Word::Refused)
            }
            (Err(ended), _) => Err(ended),
        }
    }

    async fn answer(&self, frame: &Frame, mark: Option<Mark>) -> Result<Option<Frame>, Ended> {
        match Asked::of(frame) {
            Ok(Asked::Register(message)) => self.register(frame, message, mark).await.map(Some),
            Ok(Asked::Beat(message)) => Ok(self.beat(frame, message).await?.answer),
            Ok(Asked::Fetch) => self.fetch(frame, mark).await,
            Ok(Asked::Report { node, report }) => self.report((frame, mark), &node, report).await,
            Ok(Asked::Undone) => {
                self.complain_once(&self.told_undone, Code::MessageUnknown, || {
                    format!("command {} of a node is not done by this build", frame.meta.cmd)
                });
                Ok(Some(answer::not_done(frame)))
            }
            Ok(Asked::Terminate) => Ok(None),
            Err(NotUnderstood::Unknown { command }) => Err(Ended::Unknown { command }),
            Err(NotUnderstood::Unreadable { what, error }) => Err(Ended::Unreadable { what, error }),
        }
    }

    async fn register(
        &self,
        frame: &Frame,
        message: RegisterMessage,
        mark: Option<Mark>,
    ) -> Result<Frame, Ended> {
        self.bound.lock().learn(Release::of_registration(&frame.meta, &message));
        let node = message.node_id.clone();
        if message.ip.is_empty() || message.port == 0 {
            // Nobody could ever tell it who the others are, and all would wait for it.
            let why = "it does not say where it listens";
            return Ok(self.not_registered(frame, &node, Code::MessageRefused, why));
        }
        let message = match self.admitted(message).await {
            Ok(message) => message,
            Err(refused) => {
                let (job, shown) = (self.scope.job, shown(&node));
                let why = format_args!("{refused}; node `{shown}` of job {job} is not registered");
                self.complaints.tell(self.peer, &why);
                return Ok(answer::not_registered(frame, &node));
            }
        };
        let (role, at) = (message.role, (message.ip.clone(), message.port));
        let Some(request) = registration(frame, message) else {
            let why = format!("a node of role {role} takes no part; there are 0, servers, and 1, workers");
            return Ok(self.not_registered(frame, &node, Code::MessageRefused, &why));
        };
        if let Some(known) = self.lives(&node, (at.0.as_str(), at.1)).await {
            // In time, or whoever answered has not answered since this process began: nothing of it is on its way.
            let _ = tokio::time::timeout(ECHO_TIME, self.has_answered(known.member)).await;
        }
        let reply = self.submit(request, mark, true).await;
        if let Some(word) = of_stamp(mark, &reply) {
            return Err(Ended::Stamp(word));
        }
        match reply {
            Ok(Ok(tripod_state::Answer::Mindspore(Answer::Joined { incarnation, rank, .. }))) => {
                self.bound.lock().bind(&node, incarnation);
                Ok(answer::registered(frame, &node, rank))
            }
            // The domain has no other answer.
            Ok(Ok(_)) => Ok(self.not_registered(frame, &node, Code::MessageRefused, "it is not noted")),
            Ok(Err(fault)) => Ok(self.not_registered(frame, &node, Code::MessageRefused, &fault.text())),
            Err(outage) if held::is_refusal(&outage) => {
                Ok(self.not_registered(frame, &node, outage_code(&outage), &outage.to_string()))
            }
            // It cannot be said that it was refused, and a node that hears nothing tries again.
            Err(outage) => Err(Ended::Outage(outage)),
        }
    }

    /// The message with an address in the place of the node's name. The leader connects to what is noted, and only the
    /// node that is asked sees where its caller comes from.
    async fn admitted(&self, message: RegisterMessage) -> Result<RegisterMessage, Refused> {
        let ip = self.dialler.admit_host(&message.ip, self.peer.0).await?;
        Ok(RegisterMessage { ip, ..message })
    }

    /// A process that registers again at the same place lives; which one it is, if it is such. Whoever leads hears of it
    /// before the state does, or would find it silent once more.
    async fn lives(&self, node: &str, at: (&str, u32)) -> Option<NodeView> {
        let look = |state: &State| state.cluster_node(self.scope, node).ok().flatten();
        let known = self.gateway.read(Consistency::Local, look).await.ok().flatten();
        let known = known.filter(|known| (known.ip.as_str(), known.port) == at)?;
        self.pulse.told(self.sign_of(&known)).await;
        Some(known)
    }

    /// Resolves when it stands in the log that a node has answered who belongs to the cluster, if it is to be told. A node that
    /// registers again may have lost that and is told once more; but an answer that comes into the log behind the registration
    /// would say that it was.
    async fn has_answered(&self, member: Member) {
        let is_told = |state: &State| {
            let orders = state.cluster_orders_of(self.scope.job, member).map(|node| node.orders);
            !orders.into_iter().flatten().any(|order| matches!(order, Order::Metadata { .. }))
        };
        // Before the looks: what changes later is noticed. What this node knows may be old, but for the first.
        let mut changes = self.gateway.watch(Topic::Domain(DomainId::Mindspore, self.scope.job));
        let mut told = self.gateway.read(Consistency::Linearizable, is_told).await;
        while matches!(told, Ok(false)) {
            changes.changed().await;
            told = self.gateway.read(Consistency::Local, is_told).await;
        }
    }

    /// The answer to a heartbeat, and whether the leader is to hear of it. Never held.
    ///
    /// # Errors
    /// The connection must end.
    pub(crate) async fn beat(&self, frame: &Frame, message: HeartbeatMessage) -> Result<Beaten, Ended> {
        self.bound.lock().learn(Release::of_heartbeat(&message));
        let HeartbeatMessage { node_id: node, has_address, ip, port, .. } = message;
        let at = has_address.then_some((ip.as_str(), port));
        let silent = |answer| Ok(Beaten { answer, sign: None });
        let view = match self.known(&node, at).await? {
            Known::Here(view) => *view,
            Known::Unsure => return silent(None),
            Known::Stranger => return silent(Some(answer::beat_of_stranger(frame))),
            Known::Over => return silent(Some(answer::beat_after_exit(frame))),
            Known::Replaced => {
                self.complain_once(&self.told_replaced, Code::MessageRefused, || {
                    let node = shown(&node);
                    format!("a heartbeat of a process of node `{node}` that does not belong to the cluster any more")
                });
                return silent(Some(answer::beat_of_replaced(frame)));
            }
        };
        let release = {
            let mut bound = self.bound.lock();
            bound.bind(&node, view.incarnation);
            bound.release()
        };
        let all = self.roster.all(&self.gateway, self.scope).await.map_err(Ended::Outage)?;
        let answer = answer::beat(frame, view.state, release, &all);
        Ok(Beaten { answer: Some(answer), sign: Some(self.sign_of(&view)) })
    }

    /// Who sends a heartbeat. What this node knows is believed if it is that all is well; everything else is looked at
    /// again where nothing is missing.
    async fn known(&self, node: &str, at: Option<(&str, u32)>) -> Result<Known, Ended> {
        let look = |state: &State| state.cluster_node(self.scope, node).ok().flatten();
        let here = self.gateway.read(Consistency::Local, look).await.map_err(Ended::Outage)?;
        if let Some(view) = here.filter(|view| self.bound.lock().is_process_of(view, at)) {
            return Ok(Known::Here(Box::new(view)));
        }
        let certain = self.gateway.read(Consistency::Linearizable, look);
        let Ok(Ok(certain)) = tokio::time::timeout(STRANGER_TIME, certain).await else {
            return Ok(Known::Unsure);
        };
        let bound = self.bound.lock();
        Ok(match certain {
            Some(view) if bound.is_process_of(&view, at) => Known::Here(Box::new(view)),
            _ if bound.has_finished(node) => Known::Over,
            // A process that begins anew may beat before it registers.
            _ if bound.incarnation_of(node).is_none() => Known::Stranger,
            _ => Known::Replaced,
        })
    }

    async fn fetch(&self, frame: &Frame, mark: Option<Mark>) -> Result<Option<Frame>, Ended> {
        let look = |state: &State| state.cluster_nodes(self.scope);
        match held::look(&self.gateway, look).await {
            Ok(Ok(nodes)) => Ok(Some(answer::nodes(frame, self.bound.lock().release(), &nodes))),
            Ok(Err(fault)) => {
                self.complain(Code::MessageRefused, &fault.text());
                Ok(None)
            }
            Err(outage) => self.unanswered(outage, mark),
        }
    }

    /// A node is told that what it said was noted. Where it was not there are no words for it: a node that hears nothing
    /// logs that, and goes on.
    async fn report(
        &self,
        (frame, mark): (&Frame, Option<Mark>),
        node: &str,
        report: Report,
    ) -> Result<Option<Frame>, Ended> {
        let incarnation = self.bound.lock().incarnation_of(node);
        let reply = self.submit(report.request(node, incarnation), mark, report.is_repeatable()).await;
        if let Some(word) = of_stamp(mark, &reply) {
            return Err(Ended::Stamp(word));
        }
        match reply {
            Ok(Ok(_)) => {
                if report == Report::Finished {
                    self.bound.lock().finish(node);
                }
                Ok(Some(answer::noted(frame)))
            }
            Ok(Err(fault)) => {
                self.complain(Code::MessageRefused, &fault.text());
                Ok(None)
            }
            Err(outage) => self.unanswered(outage, mark),
        }
    }

    /// The cluster has no answer. A node of before 2.0 does not connect again, so that its connection is kept. An agent goes on
    /// with what another attempt may do.
    fn unanswered(&self, outage: Outage, mark: Option<Mark>) -> Result<Option<Frame>, Ended> {
        let is_tried_on = mark.is_some() && !held::is_refusal(&outage);
        if outage == Outage::Stopping || is_tried_on {
            return Err(Ended::Outage(outage));
        }
        self.complain(outage_code(&outage), &outage.to_string());
        Ok(None)
    }

    async fn submit(
        &self,
        request: Request,
        mark: Option<Mark>,
        is_repeatable: bool,
    ) -> Result<Reply, Outage> {
        let command = mindspore::Command::Cluster { scope: self.scope, request };
        let stamp = mark.and_then(|mark| mark.stamp).map(marked::stamp);
        held::submit(&self.gateway, Command::Mindspore(command), stamp, is_repeatable).await
    }

    fn sign_of(&self, view: &NodeView) -> Beat {
        Beat::Cluster { job: self.scope.job, member: view.member, incarnation: Some(view.incarnation) }
    }

    fn not_registered(&self, frame: &Frame, node: &str, code: Code, why: &str) -> Frame {
        self.complain(code, &format!("node `{}` is not registered: {why}", shown(node)));
        answer::not_registered(frame, node)
    }

    fn complain_once(&self, told: &AtomicBool, code: Code, what: impl FnOnce() -> String) {
        if !told.swap(true, Ordering::Relaxed) {
            self.complain(code, &what());
        }
    }

    fn complain(&self, code: Code, what: &str) {
        self.complaints.tell(self.peer, &format_args!("{code}: job {}: {what}", self.scope.job));
    }
}

/// What an agent is told of the stamp of its frame, if that did not lead to an outcome.
fn of_stamp(mark: Option<Mark>, reply: &Result<Reply, Outage>) -> Option<Word> {
    mark?.stamp?;
    match reply {
        Ok(Err(fault)) => marked::word_of(fault),
        _ => None,
    }
}

/// Who sends a heartbeat.
enum Known {
    /// The process that the cluster knows.
    Here(Box<NodeView>),
    /// One that has not registered.
    Stranger,
    /// One that has finished, and that the cluster does not know any more.
    Over,
    /// One in whose place there is another, or nobody.
    Replaced,
    /// That cannot be found out now.
    Unsure,
}
