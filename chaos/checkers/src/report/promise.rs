//! What each checker stands for.

/// Every checker with the promise that it judges, in a sentence.
pub(super) const PROMISES: &[(&str, &str)] = &[
    ("linear", "registers behave as one copy: a read sees the last acknowledged write, or a later one"),
    ("list", "appended elements have one order, and none is lost or there twice"),
    ("counter", "an increment counts once, however often it was sent"),
    (
        "barrier",
        "nobody passes before all have come, all pass or all fail, and who is named missing was missing",
    ),
    ("incarnation", "an old life of a task is not acknowledged after a newer one"),
    ("heartbeat", "who beats is not declared dead, and who is silent is, within the bounds below"),
    ("digest", "nodes that applied the same log have the same state"),
    ("lock", "one holder for each token, and nobody writes who was overtaken"),
    ("kept", "what was acknowledged is there at the end"),
    ("release", "whoever reads a key that was written is answered, within the bound below"),
    ("scheduled", "each task that was accepted has the right result, or a reason why not"),
    (
        "mindspore",
        "nodes of MindSpore have one rank each, hear what was told to all in one order, and that all have finished",
    ),
    (
        "mars",
        "graphs come to one end, with the right value; mutable tensors lose no acknowledged write, and take none that is stale",
    ),
    ("liveness", "after the faults the cluster serves again, within the bounds below"),
    ("processes", "no node ends, or goes on with damaged data, that was not made to"),
    ("membership", "no two lists of members that follow each other could decide apart, and no id comes back"),
    ("witness", "no acknowledged write of a well-behaved client is lost beside attackers"),
    ("memory", "no node takes more memory than it may"),
    ("logs", "no node writes that it panicked, or that it contradicts itself or another one"),
];

/// The promise that a checker judges, in a sentence; nothing if it is not known here.
pub(super) fn promise(checker: &str) -> &'static str {
    PROMISES.iter().find(|(name, _)| *name == checker).map_or("", |(_, promise)| promise)
}
