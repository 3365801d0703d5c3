//! The binary as its users meet it: real processes on loopback. Numbers at the beginning of tests' names, as `n7`,
//! are those of the walk-through of a new operator.

mod agent;
mod backup;
mod config;
mod dev;
mod ended;
mod gang;
mod habits;
mod job_ports;
mod join;
mod levels;
mod mindspore;
mod monitoring;
#[path = "../runbooks/page.rs"]
mod page;
#[path = "../runbooks/parameter_server.rs"]
mod parameter_server;
mod recover;
mod run;
mod running;
mod scheduler;
mod schemas;
#[path = "../runbooks/screen.rs"]
mod screen;
mod start;
mod status;
mod support;
mod tls;
mod why;
