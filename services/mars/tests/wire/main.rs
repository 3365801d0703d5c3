//! Sessions, graphs and metas over the wire, with played workers and object stores: what clients are answered, and what
//! becomes of their graphs.

mod bad_input;
mod cluster;
mod graphs;
mod mutables;
mod parts;
mod readme;
mod sealing;
mod sealing_store;
mod sessions;
mod support;
mod watching;
