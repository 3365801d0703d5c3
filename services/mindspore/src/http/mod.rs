//! What operators of a parameter server's cluster ask over HTTP, as they ask MindSpore's own scheduler, on the port of the
//! job. The method of a request says nothing, as upstream.
//!
//! | path | what it becomes | answer |
//! |---|---|---|
//! | `/scaleout`, `/scalein`, `/scaleoutRollback` | a command | that it begins |
//! | `/nodes`, `/state` | a linearizable read | nodes; the name of the state |
//! | `/newInstance`, `/enableFLS`, `/disableFLS` | a command | that all servers have been told, or that they were not in time |
//! | `/queryInstance` | nothing | that it is not done |
//!
//! A refusal is 400 with `error_message`: upstream's text where it has one.
//!
//! | module | holds |
//! |---|---|
//! | `connection` | requests of one connection, within times and bounds |
//! | `patient` | how long a client may take over an answer |
//! | `body` | a request's body, as JSON |
//! | `route` | which path is what |
//! | `caller` | what is done |
//! | `told` | answers, and what they hold until they are taken |
//! | `refused` | refusals, in upstream's words |

mod body;
mod caller;
mod connection;
mod patient;
mod refused;
mod route;
mod told;

pub(crate) use self::caller::Caller;
pub(crate) use self::connection::converse;
