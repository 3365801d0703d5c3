//! The rows of failures: each a fixed scenario, played once undisturbed and then with the leader killed in every step
//! and at every point of the work that a step makes, with every call sent twice, and with old calls that come late.
//!
//! A killed leader leaves the state and nothing else: not what it planned, not what it has told to whom. The next one
//! gets the state from a snapshot, gives all orders again and asks the stores what they hold. Clients send a call
//! again of which they have no answer. The outcome must be that of the undisturbed run.
//!
//! | module | rows |
//! |---|---|
//! | `clients` | F1, F2, F3, F27, F28 |
//! | `workers` | F4, F5, F6, F7, F14, F15, F16, F17 |
//! | `stores` | F8, F9, F10, F11, F12, F13, F26 |
//! | `bounds`, `planners` | F25, F24 |
//! | `stage`, `peers`, `words`, `play` | the frame |
//!
//! F18 to F22 are about replication and F23 is the watchdog's: `services/ray/tests/README.md` says which tests show
//! them.

mod bounds;
mod clients;
mod peers;
mod planners;
mod play;
mod stage;
mod stores;
mod words;
mod workers;
