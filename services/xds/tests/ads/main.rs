//! xDS over a real connection and a gateway in memory, asked as gRPC asks.

mod changes;
mod content;
mod stream;
mod support;
