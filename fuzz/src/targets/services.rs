//! Services of a client port: a call goes from its bytes through the log into a state.

use std::sync::LazyLock;

use crate::calls;
use crate::message::{Method, methods};
use crate::target::Target;

macro_rules! services {
    ($(#[doc = $doc:literal] $name:ident $target:literal: $($service:literal),+;)*) => {$(
        #[doc = $doc]
        pub(crate) const $name: Target = {
            static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| methods(&[$($service),+]));
            Target {
                name: $target,
                what: $doc,
                generate: |source| calls::generate(source, &METHODS),
                run: |input| {
            calls::run(&METHODS, input);
        },
            }
        };
    )*};
}

services! {
    /// calls of jaxlib 0.10 and later
    N "coordination-n": "xla.coordination.CoordinationService";
    /// calls of jaxlib up to 0.9.2, and of TensorFlow, with those for its other services
    T "coordination-t": "tensorflow.CoordinationService", "tensorflow.WorkerService", "tensorflow.eager.EagerService";
    /// calls of jaxlib before 0.4.14
    L "coordination-l": "xla.DistributedRuntimeService";
    /// batches of heartbeats of node-local agents
    AGENTS "agents": "tripod.v1.Agents";
    /// calls of our own API
    NATIVE "native": "tripod.v1.Cluster", "tripod.v1.Jobs", "tripod.v1.Kv", "tripod.v1.Levels", "tripod.v1.Sessions",
        "tripod.v1.Snapshots", "tripod.v1.Mindspore", "tripod.v1.Tokens", "tripod.v1.Events";
    /// calls of the Ray of 2016
    SCHEDULER "ray-2016": "Scheduler", "ObjStore";
    /// calls, batches and lines of our own workers, drivers and stores
    RAY "ray": "tripod.v1.Ray", "tripod.v1.RayLine", "tripod.v1.Membership";
    /// calls of clients of Mars
    MARS "mars": "mars.v1.Scheduler";
    /// calls of all of them to one job
    MIXED "mixed": "xla.coordination.CoordinationService", "tensorflow.CoordinationService",
        "xla.DistributedRuntimeService", "tripod.v1.Jobs", "tripod.v1.Kv", "tripod.v1.Sessions", "Scheduler",
        "tripod.v1.Ray", "tripod.v1.RayLine", "tripod.v1.Membership";
}
