//! One command's work on the sessions of a job and on its scheduler.

use crate::ids::TimeMs;
use crate::mars::record::Mars;
use crate::ray::Ray;

/// Both while a command changes them.
pub(crate) struct Act<'a> {
    pub(crate) mars: &'a mut Mars,
    pub(crate) ray: &'a mut Ray,
    pub(crate) now: TimeMs,
    /// The command's place in the log.
    pub(crate) index: u64,
    /// Something changed that calls may wait for.
    pub(crate) is_changed: bool,
    /// There may be something to plan, or to order.
    pub(crate) is_ray_changed: bool,
}

impl<'a> Act<'a> {
    pub(crate) fn new(mars: &'a mut Mars, ray: &'a mut Ray, now: TimeMs, index: u64) -> Self {
        Self { mars, ray, now, index, is_changed: false, is_ray_changed: false }
    }
}
