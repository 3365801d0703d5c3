//! `coordination_service_test`.

mod alive;
mod barriers;
mod failing_barriers;
mod heartbeats;
mod keys;
mod leaving;
mod polls;
mod recoverable;
mod registration;
mod watching;
