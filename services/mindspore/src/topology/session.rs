//! The messages of one connection, one after the other.

use bytes::Bytes;
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_port::CallerAddress;
use tripod_proto::code::Code;
use tripod_state::ids::NodeName;
use tripod_state::mindspore::topology::{Dialect, PortRange, Request, View};
use tripod_state::mindspore::{self, Answer, Refusal};
use tripod_state::{Command, Fault, Reply, Scope, Stamp, State};

use super::answer;
use super::asked::{Asked, NotUnderstood};
use crate::connection::{Complaints, Ended, Port, held, outage_code, shown};
use crate::marked;
use crate::pulse::{Beat, Pulse};
use crate::wire::rpc0::Frame;
use crate::wire::{Name, Word};

/// The entry that says which ports each node may use.
const PORTS: &str = "node_port_range";
/// What a worker of no known release is answered in.
const DIALECT: Dialect = Dialect::V2_0;

pub(crate) struct Session {
    gateway: Gateway,
    pulse: Pulse,
    complaints: Complaints,
    scope: Scope,
    peer: CallerAddress,
    /// Of the node that registered on this connection.
    dialect: Option<Dialect>,
    /// A message that nobody handles was told of already.
    told_unknown: bool,
}

impl Session {
    pub(crate) fn new(port: Port, scope: Scope, peer: CallerAddress) -> Self {
        let Port { gateway, pulse, complaints, .. } = port;
        Self { gateway, pulse, complaints, scope, peer, dialect: None, told_unknown: false }
    }

    /// What to say to a message; for some that is nothing, unless an agent has passed it on.
    ///
    /// # Errors
    /// The connection must end.
    pub(crate) async fn answer(&mut self, frame: &Frame) -> Result<Option<Frame>, Ended> {
        let Some(mark) = frame.mark() else { return self.said(frame, None).await };
        match self.said(frame, mark.stamp.map(marked::stamp)).await {
            Ok(answer) => Ok(Some(answer.unwrap_or_else(|| Frame::of_word(Word::Silent)))),
            Err(ended) if marked::is_refusal(&ended) => {
                self.complaints.tell(self.peer, &format_args!("{ended}; an agent's client is refused"));
                Ok(Some(Frame::of_word(Word::Refused)))
            }
            Err(ended) => Err(ended),
        }
    }

    async fn said(&mut self, frame: &Frame, stamp: Option<Stamp>) -> Result<Option<Frame>, Ended> {
        match Asked::of(frame) {
            Ok(Asked::Change(request)) => self.change(frame, request, stamp).await,
            Ok(Asked::Beat { node }) => self.beat(frame, node).await,
            Ok(Asked::Read { name }) => self.read(frame, name).await.map(Some),
            Ok(Asked::HostNames { role }) => self.host_names(frame, &role).await.map(Some),
            Err(NotUnderstood::Unknown) => {
                self.tell_unknown(frame);
                Ok(None)
            }
            Err(NotUnderstood::Unreadable { what, error }) => Err(Ended::Unreadable { what, error }),
            Err(NotUnderstood::Role { role }) => {
                let why = format!(
                    "a node of role `{}` takes no part; there are MS_WORKER and MS_PSERVER",
                    shown(&role)
                );
                Ok(Some(self.not_registered(frame, Code::MessageRefused, why)))
            }
        }
    }

    async fn change(
        &mut self,
        frame: &Frame,
        request: Request,
        stamp: Option<Stamp>,
    ) -> Result<Option<Frame>, Ended> {
        if let Request::Register { node, dialect, .. } = &request {
            self.dialect = Some(*dialect);
            self.lives(node).await;
        }
        let reply = match self.submit(&request, stamp).await {
            Ok(reply) => reply,
            // What it needs is not there, and will not be soon.
            Err(outage) if held::is_refusal(&outage) && matches!(request, Request::Register { .. }) => {
                return Ok(Some(self.not_registered(frame, outage_code(&outage), outage.to_string())));
            }
            Err(outage) => {
                let is_done = matches!(outage, Outage::Unknown(_)) && self.is_written(&request).await;
                return if is_done { Ok(None) } else { Err(Ended::Outage(outage)) };
            }
        };
        let fault = match reply {
            Ok(tripod_state::Answer::Mindspore(told)) => return self.told(frame, request, told).await,
            Ok(_) => return Ok(None),
            Err(fault) => fault,
        };
        if let Some(word) = stamp.and_then(|_| marked::word_of(&fault)) {
            return Ok(Some(Frame::of_word(word)));
        }
        let told = match request {
            Request::Register { .. } => {
                return Ok(Some(self.not_registered(frame, Code::MessageRefused, fault.text())));
            }
            Request::Unregister { .. } => match &fault {
                Fault::Mindspore(Refusal::NotInitialized) => {
                    Some(answer::unregistered(frame, Name::UninitTopo))
                }
                _ => Some(answer::unregistered(frame, Name::InvalidNode)),
            },
            Request::Delete { name } => Some(answer::metadata(frame, self.dialect().await?, name, None)),
            // There is no word for it.
            Request::Write { .. } => None,
        };
        self.complain(Code::MessageRefused, &fault.text());
        Ok(told)
    }

    async fn told(&mut self, frame: &Frame, request: Request, told: Answer) -> Result<Option<Frame>, Ended> {
        Ok(match (told, request) {
            (Answer::Registered { rank, nodes }, _) => Some(answer::registered(frame, rank, nodes)),
            (Answer::Unregistered, _) => Some(answer::unregistered(frame, Name::Success)),
            (Answer::Deleted { existed }, Request::Delete { name }) => {
                let value = existed.then(Default::default);
                Some(answer::metadata(frame, self.dialect().await?, name, value))
            }
            // Nothing is said to a write; the rest is answered to other requests.
            (
                Answer::Written
                | Answer::Deleted { .. }
                | Answer::Joined { .. }
                | Answer::Accepted { .. }
                | Answer::Scaling { .. }
                | Answer::Switching { .. }
                | Answer::Noted,
                _,
            ) => None,
        })
    }

    /// A node that registers again lives. Whoever leads hears of it before the state does, or would find it silent once more.
    async fn lives(&self, node: &str) {
        let look = |state: &State| state.topology_node(self.scope, node).ok().flatten();
        let known = self.gateway.read(Consistency::Local, look).await.ok().flatten();
        if let Some(known) = known {
            self.pulse.told(Beat::Topology { job: self.scope.job, member: known.member }).await;
        }
    }

    async fn beat(&mut self, frame: &Frame, node: String) -> Result<Option<Frame>, Ended> {
        let look = |state: &State| {
            let known = state.topology_node(self.scope, &node).ok().flatten();
            Some((known?.member, state.topology(self.scope).ok()?))
        };
        let mut seen = self.gateway.read(Consistency::Local, look).await.map_err(Ended::Outage)?;
        if seen.is_none() {
            // It may have registered a moment ago through another node.
            seen = self.looked(look).await?;
        }
        let Some((member, view)) = seen else {
            self.complain(
                Code::MessageRefused,
                &format!("a heartbeat of node `{}`, which is not registered", shown(&node)),
            );
            return Ok(None);
        };
        self.pulse.note(Beat::Topology { job: self.scope.job, member });
        Ok(Some(answer::beat(frame, &view)))
    }

    async fn read(&mut self, frame: &Frame, name: String) -> Result<Frame, Ended> {
        let look = |state: &State| (entry(state, self.scope, &name), dialect(state, self.scope));
        let (found, common) = self.looked(look).await?;
        let value = match found {
            Ok(Entry::Written(value)) => value,
            Ok(Entry::Ports(ports)) => Some(answer::port_ranges(ports)),
            Err(fault) => {
                self.complain(Code::MessageRefused, &fault.text());
                None
            }
        };
        Ok(answer::metadata(frame, self.dialect.unwrap_or(common), name, value))
    }

    async fn host_names(&mut self, frame: &Frame, role: &str) -> Result<Frame, Ended> {
        let look = |state: &State| (state.topology_hosts(self.scope, role), dialect(state, self.scope));
        let (names, common) = self.looked(look).await?;
        let names = names.unwrap_or_else(|fault| {
            self.complain(Code::MessageRefused, &fault.text());
            None
        });
        Ok(answer::host_names(frame, self.dialect.unwrap_or(common), names))
    }

    /// In which dialect this connection's answers are: that of the node that registered on it. The second connection of a
    /// node carries no registration, so that it is answered as the nodes of its cluster registered.
    async fn dialect(&self) -> Result<Dialect, Ended> {
        match self.dialect {
            Some(dialect) => Ok(dialect),
            None => {
                let look = |state: &State| dialect(state, self.scope);
                self.gateway.read(Consistency::Local, look).await.map_err(Ended::Outage)
            }
        }
    }

    /// Replicates a request, however long that takes while nobody leads. With a stamp it takes effect once.
    async fn submit(&self, request: &Request, stamp: Option<Stamp>) -> Result<Reply, Outage> {
        let command = mindspore::Command::Topology { scope: self.scope, request: request.clone() };
        // An entry is not: what others have written since would be written over.
        let is_repeatable = matches!(request, Request::Register { .. });
        held::submit(&self.gateway, Command::Mindspore(command), stamp, is_repeatable).await
    }

    /// Whether an entry says what a write was to have it say of which nobody knows what became.
    async fn is_written(&self, request: &Request) -> bool {
        let Request::Write { name, value } = request else { return false };
        let look = |state: &State| state.topology_metadata(self.scope, name);
        let found = self.gateway.read(Consistency::Linearizable, look).await;
        found.is_ok_and(|found| found.is_ok_and(|entry| entry.unwrap_or_default() == *value))
    }

    /// Looks at everything that was acknowledged before, however long that takes while nobody leads.
    async fn looked<T>(&self, look: impl Fn(&State) -> T) -> Result<T, Ended> {
        held::look(&self.gateway, look).await.map_err(Ended::Outage)
    }

    fn not_registered(&self, frame: &Frame, code: Code, why: String) -> Frame {
        self.complain(code, &format!("a node is not registered: {why}"));
        answer::not_registered(frame, why)
    }

    fn tell_unknown(&mut self, frame: &Frame) {
        if !std::mem::replace(&mut self.told_unknown, true) {
            let name = String::from_utf8_lossy(&frame.name);
            self.complain(
                Code::MessageUnknown,
                &format!("there is no handler for messages of the name `{}`", shown(&name)),
            );
        }
    }

    fn complain(&self, code: Code, what: &str) {
        self.complaints.tell(self.peer, &format_args!("{code}: job {}: {what}", self.scope.job));
    }
}

/// What a name stands for.
enum Entry {
    Written(Option<Bytes>),
    /// Derived from the nodes, from when all of them are there.
    Ports(Vec<(NodeName, PortRange)>),
}

fn entry(state: &State, scope: Scope, name: &str) -> Result<Entry, Fault> {
    if name == PORTS
        && let Some(ports) = state.topology_ports(scope)?
    {
        return Ok(Entry::Ports(ports));
    }
    state.topology_metadata(scope, name).map(Entry::Written)
}

/// How the nodes of a cluster registered.
fn dialect(state: &State, scope: Scope) -> Dialect {
    state.topology(scope).ok().and_then(|view: View| view.dialect).unwrap_or(DIALECT)
}
