//! `client_server_test` of the coordination service.

mod barriers;
mod keys;
mod life;
mod recoverable;
mod restarts;
