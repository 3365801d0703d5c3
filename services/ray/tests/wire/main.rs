//! The scheduler over the wire, with scripted workers and stores: the calls of 2016 and what becomes of them.

mod bad_input;
mod batch_streams;
mod cancels;
mod counting;
mod elsewhere;
mod exports;
mod failover;
mod fuzz;
mod infos;
mod liveness;
mod native;
mod objects;
mod readme;
mod registration;
mod rows;
mod support;
mod tasks;
mod upstream;
