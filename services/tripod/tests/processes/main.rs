//! The binary as its users meet it: real processes on loopback.

mod dev;
mod start;
mod support;
