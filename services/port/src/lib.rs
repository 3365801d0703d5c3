//! How connections are accepted, served and left, for every protocol that this project speaks.
//!
//! A front end brings routes, and rows that say how each of its calls may end ([`Manner`]), or handles connections of a
//! protocol that frames its bytes itself ([`Framed`]). This crate has listeners, what happens between a socket and h2, the
//! count of connections and of the bytes that are held for them, and the phases in which a port stops, so that no call is
//! cut that must not be.
//!
//! # What this crate does not know
//!
//! * Protocols, jobs and the cluster: it is below the gateway, and the node-local agent stands on it as nodes do. It knows
//!   that contact with the cluster can be lost ([`Contact`]), and not how that is found out.
//! * Which ports there are, flags and signals: the binary binds sockets and hands them to [`serve`](fn@serve).
//! * Whom one connects to: `tripod-dial`.
//!
//! # Invariants
//!
//! * Bytes of a connection whose authority is in order are not changed, until its node stops.
//! * A planned stop cuts no call that must not be executed twice: it is answered before its connection ends.
//! * Every connection has a permit, which is counted, and a time to begin.
//! * Every byte that is held for a client is counted, from the moment when it comes until its answer is written.
//! * Whatever a port itself says of a call is marked as no word of the domain's.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `manner` | what front ends say of their calls |
//! | `listen` | opening the places where clients find a process |
//! | `serve` | transport settings, serving a listener |
//! | `connection` | frames between socket and h2: mends `:authority` values, ends connections |
//! | `caller_address`, `caller_connection` | where a call comes from, and by which connection |
//! | `contact` | whether the node is in contact with the cluster |
//! | `stop` | the phases of a planned stop |
//! | `transport` | HTTP/2 on accepted connections, until they end |
//! | `direct`, `bodies`, [`unary`] | services that are called past the router, and calls that are one frame each way |
//! | `call_context` | what services find of a call |
//! | `call_tally`, `timings` | what became of calls, and how long they took |
//! | `followed`, `under_way` | around all services: which calls a stop waits for, and what it does to the others |
//! | `guard` | who is asked about every call before a service hears of it |
//! | `lapse` | that whoever had a call admitted is believed no longer |
//! | `speaker` | who makes a call, as a guard has said it |
//! | `framed` | protocols that frame their bytes themselves: how long clients may take, and what is given up when they have gone |
//! | `bytes_held` | what is held for clients, counted by node and connection |
//! | `holding` | around all services: how many bytes each call holds |
//! | [`refusal`] | what a call is told that this node cannot serve for a reason of its own |
//! | `lost` | connections of lost machines |
//! | `throttle` | what happens often is told seldom |
//! | [`label`] | the first label of the host that was dialled |
//! | `calls` | many calls by one stream |
//! | `arrived` | that a call has arrived, and waits |
//! | `stream_order` | the order in which ops of a stream change something |
//! | [`overlong`] | the answer to messages beyond the decode limit |
//! | [`deadline`] | the answer to calls whose time is over |

mod arrived;
mod bodies;
mod bytes_held;
mod call_context;
mod call_tally;
mod caller_address;
mod caller_connection;
mod calls;
mod connection;
mod contact;
pub mod deadline;
mod direct;
mod followed;
mod framed;
mod guard;
mod holding;
pub mod label;
mod lapse;
mod listen;
mod lost;
mod manner;
pub mod overlong;
pub mod refusal;
mod serve;
mod speaker;
mod stop;
mod stream_order;
mod throttle;
mod timings;
mod transport;
pub mod unary;
mod under_way;

pub use arrived::note_arrived;
pub use bodies::{AnswerBody, RequestBody, Whole};
pub use bytes_held::{
    Account, Budget, CALL_BYTES, CONNECTION_BYTES_FREE, CONNECTION_WINDOW_BYTES, CallBytes, Charge,
    Direction, Making, MemoryLimits, Reserved, Short, Turn,
};
pub use call_context::CallContext;
pub use call_tally::{CallCount, CallOutcome, CallTally};
pub use caller_address::CallerAddress;
pub use caller_connection::CallerConnection;
pub use calls::{Gather, PATH as CALLS_PATH, StreamEnd, StreamTally};
pub use connection::{
    ConnectionCalls, Listener, Mended, MendedIncoming, PRESENCE_TOLD_FOR, PortResources, Socket,
    tell_presence,
};
pub use contact::{Contact, ContactSwitch};
pub use direct::{Direct, DirectAnswer, DirectRequest, DirectService};
pub use followed::{Followed, Following, REFUSAL_BYTES};
pub use framed::{
    Accepted, Ahead, Bytestream, Deadlines, Framed, Handling, LEFT_TIME, Messages, Timeouts, is_slow,
};
pub use guard::{Guard, Guarding, Head};
pub use holding::{Content, Received, enter as enter_call};
pub use lapse::Lapse;
pub use listen::{Binder, NotOpened};
pub use lost::end_when_lost;
pub use manner::{Ending, Manner, Manners, Method, MethodKind};
pub use serve::{Grpc, Served, serve, serve_through, server};
pub use speaker::Speaker;
pub use stop::{Stop, Stopping};
pub use stream_order::{StreamOrder, StreamPosition};
pub use timings::{Timings, TimingsView};
pub use under_way::{Answer, Answering, Cut, UnderWay};
