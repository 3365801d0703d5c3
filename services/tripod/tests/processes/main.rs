//! The binary as its users meet it: real processes on loopback.

mod config;
mod dev;
mod job_ports;
mod start;
mod support;
