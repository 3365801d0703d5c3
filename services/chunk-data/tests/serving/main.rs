//! Workers as clients and other workers see them: over the wire, with a scheduler that says what the test says.

mod copies;
mod mutable;
mod reading;
mod support;
