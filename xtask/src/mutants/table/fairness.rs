//! Whose turn it is: no connection and no address keeps the others waiting.

use super::Mutant;

const GATEWAY: &str = "-p tripod-gateway";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "late-comer-has-arrears",
        promise: "INV-41: whoever comes late has its turns from then on, and not those of the time before it came.",
        file: "services/gateway/src/fairness/order.rs",
        original: &["None => self.now,"],
        replacement: &["None => 0,"],
        tests: GATEWAY,
    },
    Mutant {
        name: "turn-costs-nothing",
        promise: "INV-41: who has had a turn stands behind whoever has waited, and is not next again.",
        file: "services/gateway/src/fairness/order.rs",
        original: &["Some(cost) => self.put(key, member.done_at, cost),"],
        replacement: &["Some(cost) => self.put(key, member.begun_at, cost),"],
        tests: GATEWAY,
    },
    Mutant {
        name: "time-of-turns-stands-still",
        promise: "INV-41: whoever comes back after it wanted nothing for a while has no more turns than those who stayed.",
        file: "services/gateway/src/fairness/order.rs",
        original: &["self.now = self.now.max(member.done_at);"],
        replacement: &[],
        tests: GATEWAY,
    },
    Mutant {
        name: "turn-is-one-whatever-it-costs",
        promise: "A command with many bytes costs its caller as many turns as it costs the cluster.",
        file: "services/gateway/src/fairness/queue.rs",
        original: &["1 + self.bytes / COST_BYTES"],
        replacement: &["1 + (self.bytes / COST_BYTES).min(1)"],
        tests: GATEWAY,
    },
    Mutant {
        name: "address-keeps-its-turn",
        promise: "INV-41: of addresses none is served again before another one that waits.",
        file: "services/gateway/src/fairness/queue.rs",
        original: &["self.addresses.served(address, next_cost);"],
        replacement: &[
            "match next_cost {",
            "Some(cost) => self.addresses.want(address, cost),",
            "None => self.addresses.leave(address),",
            "}",
        ],
        tests: GATEWAY,
    },
    Mutant {
        name: "connection-keeps-its-turn",
        promise: "INV-41: of the connections of an address none is served again before another one that waits.",
        file: "services/gateway/src/fairness/queue.rs",
        original: &["self.connections.served(connection, next_cost);"],
        replacement: &[
            "match next_cost {",
            "Some(cost) => self.connections.want(connection, cost),",
            "None => self.connections.leave(connection),",
            "}",
        ],
        tests: GATEWAY,
    },
    Mutant {
        name: "small-overtakes-who-waits",
        promise: "While somebody waits for room, there is none for whoever comes later and would fit in.",
        file: "services/gateway/src/fairness/turns.rs",
        original: &["if occupancy.queue.len() > 0 || !occupancy.has_room(bytes, self.shared.limits) {"],
        replacement: &["if !occupancy.has_room(bytes, self.shared.limits) {"],
        tests: GATEWAY,
    },
    Mutant {
        name: "large-never-has-its-turn",
        promise: "A command that is larger than all that may be under way goes when there is nothing beside it.",
        file: "services/gateway/src/fairness/turns.rs",
        original: &[
            "self.count == 0 || (self.count < limits.count && self.bytes.saturating_add(bytes) <= limits.bytes)",
        ],
        replacement: &["self.count < limits.count && self.bytes.saturating_add(bytes) <= limits.bytes"],
        tests: GATEWAY,
    },
    Mutant {
        name: "bytes-under-way-unbounded",
        promise: "Commands under way are bounded by their bytes, too.",
        file: "services/gateway/src/fairness/turns.rs",
        original: &[
            "self.count == 0 || (self.count < limits.count && self.bytes.saturating_add(bytes) <= limits.bytes)",
        ],
        replacement: &["self.count == 0 || self.count < limits.count"],
        tests: GATEWAY,
    },
    Mutant {
        name: "turn-is-not-given-on",
        promise: "A turn that ends is given to whoever is next, without anybody asking again.",
        file: "services/gateway/src/fairness/turns.rs",
        original: &["occupancy.bytes -= self.bytes;", "drop(occupancy);", "self.shared.give();"],
        replacement: &["occupancy.bytes -= self.bytes;", "drop(occupancy);"],
        tests: GATEWAY,
    },
    Mutant {
        name: "room-of-who-goes-is-kept",
        promise: "Whoever stops waiting makes way for whoever it held up.",
        file: "services/gateway/src/fairness/turns.rs",
        original: &[
            "self.shared.occupancy.lock().queue.remove(&self.ticket);",
            "// It may have been what there was no room for.",
            "self.shared.give();",
        ],
        replacement: &["self.shared.occupancy.lock().queue.remove(&self.ticket);"],
        tests: GATEWAY,
    },
    Mutant {
        name: "own-commands-wait-for-turns",
        promise: "INV-41: what a node does for its own sake waits for no turn.",
        file: "services/gateway/src/hold.rs",
        original: &["let Some(caller) = CallerConnection::current() else { return Ok(None) };"],
        replacement: &["let caller = CallerConnection::current().unwrap_or_default();"],
        tests: GATEWAY,
    },
    Mutant {
        name: "stamped-commands-take-no-turn",
        promise: "INV-41: the commands of clients with sessions of their own take turns like all others.",
        file: "services/gateway/src/submit.rs",
        original: &[
            "let _turn = hold.turn(&self.turns, || command_bytes(&envelope.command)).await?;",
            "let applied = self.send(&envelope, &mut hold, envelope.stamp.is_some()).await?;",
        ],
        replacement: &["let applied = self.send(&envelope, &mut hold, envelope.stamp.is_some()).await?;"],
        tests: GATEWAY,
    },
];
