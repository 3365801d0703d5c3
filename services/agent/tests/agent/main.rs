//! The agent between real clients' calls and nodes that are made to fail.

mod beat_sets;
mod beats;
mod calls;
mod fake;
mod listening;
mod memory;
mod mindspore;
mod nodes;
mod real;
mod streams;
mod support;
