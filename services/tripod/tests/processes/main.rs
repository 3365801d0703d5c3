//! The binary as its users meet it: real processes on loopback.

mod agent;
mod config;
mod dev;
mod job_ports;
mod run;
mod running;
mod start;
mod support;
mod why;
