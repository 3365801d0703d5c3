//! The binary as its users meet it: real processes on loopback. Numbers at the beginning of tests' names, as `n7`,
//! are those of the walk-through of a new operator.

mod agent;
mod audit;
mod backup;
mod config;
mod dev;
mod diagnose;
mod ended;
mod events;
mod gang;
mod gate;
mod habits;
mod job_ports;
mod join;
mod levels;
mod mindspore;
mod modes;
mod monitoring;
#[path = "../runbooks/page.rs"]
mod page;
#[path = "../runbooks/parameter_server.rs"]
mod parameter_server;
mod recover;
mod run;
mod running;
mod safe_defaults;
mod scheduler;
mod schemas;
#[path = "../runbooks/screen.rs"]
mod screen;
mod sealed_backup;
mod site;
mod start;
mod status;
mod support;
mod tls;
mod tokens;
mod why;
