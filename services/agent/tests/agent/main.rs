//! The agent between real clients' calls and nodes that are made to fail.

mod beats;
mod calls;
mod fake;
mod held;
mod nodes;
mod places;
mod real;
mod support;
