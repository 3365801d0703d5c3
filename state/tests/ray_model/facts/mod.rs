//! Single facts about the original, written by hand; the model and the real scheduler must both know them.

mod aliases;
mod counts;
mod exports;
mod registration;
mod script;
mod tasks;
mod unfit;
