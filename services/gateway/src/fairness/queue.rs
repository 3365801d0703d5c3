//! Who waits for a turn: by address, and within an address by connection.

use std::collections::BTreeMap;

use tripod_port::{CallerAddress, CallerConnection};

use super::order::Order;

/// Bytes that cost as much as a command without any: about what a disk writes in the time that a small command takes of
/// a processor.
const COST_BYTES: u64 = 8 << 10;

/// Those who wait. What is kept of each is a `T`.
#[derive(Debug)]
pub(super) struct Queue<T> {
    addresses: Order<CallerAddress>,
    waiting: BTreeMap<CallerAddress, Address<T>>,
    len: usize,
    /// How many have ever waited.
    tickets: u64,
}

#[derive(Debug)]
struct Address<T> {
    connections: Order<u64>,
    /// By connection, in the order in which they came.
    waiting: BTreeMap<u64, BTreeMap<u64, Waiting<T>>>,
}

#[derive(Debug)]
struct Waiting<T> {
    bytes: u64,
    who: T,
}

/// The place of one who waits.
#[derive(Debug)]
pub(super) struct Ticket {
    caller: CallerConnection,
    number: u64,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self { addresses: Order::new(), waiting: BTreeMap::new(), len: 0, tickets: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many have ever waited.
    pub(super) fn total(&self) -> u64 {
        self.tickets
    }

    /// Somebody waits with so many bytes.
    pub(super) fn push(&mut self, caller: CallerConnection, bytes: u64, who: T) -> Ticket {
        self.tickets += 1;
        self.len += 1;
        let (address, number) = (caller.address(), self.tickets);
        let here = self.waiting.entry(address).or_insert_with(Address::new);
        here.waiting.entry(caller.number()).or_default().insert(number, Waiting { bytes, who });
        here.settle(caller.number());
        if let Some(cost) = here.first_cost() {
            self.addresses.want(address, cost);
        }
        Ticket { caller, number }
    }

    /// Somebody waits no more; nothing happens if that was over already.
    pub(super) fn remove(&mut self, ticket: &Ticket) {
        let (address, connection) = (ticket.caller.address(), ticket.caller.number());
        let Some(here) = self.waiting.get_mut(&address) else { return };
        let gone = here.waiting.get_mut(&connection).and_then(|waiting| waiting.remove(&ticket.number));
        if gone.is_none() {
            return;
        }
        self.len -= 1;
        here.settle(connection);
        match here.first_cost() {
            Some(cost) => self.addresses.want(address, cost),
            None => {
                self.waiting.remove(&address);
                self.addresses.leave(address);
            }
        }
    }

    /// The bytes of whoever is next.
    pub(super) fn first_bytes(&self) -> Option<u64> {
        Some(self.waiting.get(&self.addresses.first()?)?.first()?.bytes)
    }

    /// Takes whoever is next, and their bytes.
    pub(super) fn pop(&mut self) -> Option<(T, u64)> {
        let address = self.addresses.first()?;
        let here = self.waiting.get_mut(&address)?;
        let taken = here.pop()?;
        self.len -= 1;
        let next_cost = here.first_cost();
        if next_cost.is_none() {
            self.waiting.remove(&address);
        }
        self.addresses.served(address, next_cost);
        Some((taken.who, taken.bytes))
    }
}

impl<T> Address<T> {
    fn new() -> Self {
        Self { connections: Order::new(), waiting: BTreeMap::new() }
    }

    /// Tells the order what a connection of which somebody came or went wants next.
    fn settle(&mut self, connection: u64) {
        match self.cost_of(connection) {
            Some(cost) => self.connections.want(connection, cost),
            None => {
                self.waiting.remove(&connection);
                self.connections.leave(connection);
            }
        }
    }

    fn pop(&mut self) -> Option<Waiting<T>> {
        let connection = self.connections.first()?;
        let (_, taken) = self.waiting.get_mut(&connection)?.pop_first()?;
        let next_cost = self.cost_of(connection);
        if next_cost.is_none() {
            self.waiting.remove(&connection);
        }
        self.connections.served(connection, next_cost);
        Some(taken)
    }

    fn first(&self) -> Option<&Waiting<T>> {
        Some(self.waiting.get(&self.connections.first()?)?.first_key_value()?.1)
    }

    fn first_cost(&self) -> Option<u64> {
        self.first().map(Waiting::cost)
    }

    fn cost_of(&self, connection: u64) -> Option<u64> {
        Some(self.waiting.get(&connection)?.first_key_value()?.1.cost())
    }
}

impl<T> Waiting<T> {
    fn cost(&self) -> u64 {
        1 + self.bytes / COST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: usize = 10_000;
    const LARGE_BYTES: u64 = 60 << 20;

    fn at(last: u8) -> CallerAddress {
        CallerAddress::at([10, 0, 0, last].into())
    }

    /// Takes turns until `who` has one, and counts those of others before.
    fn turns_until(queue: &mut Queue<&'static str>, who: &str) -> usize {
        let mut others = 0;
        loop {
            let (taken, _) = queue.pop().expect("it comes");
            if taken == who {
                return others;
            }
            others += 1;
        }
    }

    #[test]
    fn one_call_is_next_but_one_whoever_came_before_it() {
        let flood = CallerConnection::from(at(1));
        for caller in [CallerConnection::from(at(1)), CallerConnection::from(at(2))] {
            let mut queue = Queue::new();
            for _ in 0..FLOOD {
                queue.push(flood, 0, "flood");
            }
            for _ in 0..FLOOD / 2 {
                queue.pop();
            }
            queue.push(caller, 0, "other");
            assert!(turns_until(&mut queue, "other") <= 1);
        }
    }

    #[test]
    fn an_address_with_many_connections_has_as_many_turns_as_one_with_one_that_comes_late() {
        let mut queue = Queue::new();
        for _ in 0..FLOOD {
            queue.push(CallerConnection::from(at(1)), 0, "many");
        }
        for _ in 0..FLOOD / 2 {
            queue.pop();
        }
        let one = CallerConnection::from(at(2));
        for _ in 0..FLOOD {
            queue.push(one, 0, "one");
        }
        let ones = std::iter::from_fn(|| queue.pop()).take(200).filter(|(who, _)| *who == "one").count();
        assert_eq!(ones, 100);
    }

    #[test]
    fn a_large_command_costs_its_caller_the_turns_of_as_many_small_ones() {
        let (large, small) = (CallerConnection::from(at(1)), CallerConnection::from(at(2)));
        let mut queue = Queue::new();
        for _ in 0..3 {
            queue.push(large, LARGE_BYTES, "large");
        }
        for _ in 0..FLOOD {
            queue.push(small, 100, "small");
        }
        let cost = usize::try_from(LARGE_BYTES / COST_BYTES).unwrap();
        assert!(turns_until(&mut queue, "large").abs_diff(cost) <= 1);
    }

    #[test]
    fn a_small_command_of_a_connection_overtakes_a_large_one_of_its_neighbour() {
        let (neighbour, other) = (CallerConnection::from(at(1)), CallerConnection::from(at(2)));
        let mut queue = Queue::new();
        queue.push(neighbour, LARGE_BYTES, "large");
        for _ in 0..100 {
            queue.push(other, 0, "other");
        }
        queue.push(CallerConnection::from(at(1)), 0, "small");
        assert!(turns_until(&mut queue, "small") <= 2);
    }

    #[test]
    fn who_goes_leaves_nothing_behind() {
        let mut queue = Queue::new();
        let tickets: Vec<_> = (0..100)
            .map(|call: u8| queue.push(CallerConnection::from(at(call % 7)), u64::from(call), "gone"))
            .collect();
        let staying = CallerConnection::from(at(200));
        queue.push(staying, 1, "stays");
        let taken = queue.pop().unwrap();
        assert_eq!(taken.0, "gone");
        for ticket in &tickets {
            queue.remove(ticket);
        }
        assert_eq!((queue.len(), queue.waiting.len(), queue.first_bytes()), (1, 1, Some(1)));
        assert_eq!(queue.pop(), Some(("stays", 1)));
        assert_eq!((queue.pop(), queue.len(), queue.waiting.len()), (None, 0, 0));
    }
}
