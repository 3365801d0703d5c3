//! Single facts about the original, written by hand; the model and the real scheduler must both know them. Those that
//! clients of 2016 see are in `services/ray/tests/wire`.

mod aliases;
mod registration;
mod script;
mod tasks;
mod unfit;
