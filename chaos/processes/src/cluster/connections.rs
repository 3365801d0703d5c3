//! Who is connected to which port, from the kernel's tables: the only witness that neither client nor
//! server can fool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};

/// The kernel's numbers for the states of a connection.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";

/// How many established connections the process `pid` has to `port` on any address.
///
/// # Errors
/// The process has ended, or `/proc` cannot be read.
pub fn connections_to(pid: u32, port: u16) -> Result<usize> {
    let sockets = sockets(pid)?;
    Ok(sockets.iter().filter(|socket| socket.state == ESTABLISHED && socket.remote == port).count())
}

/// Every port on which the process `pid` listens.
///
/// # Errors
/// The process has ended, or `/proc` cannot be read.
pub fn listening_ports(pid: u32) -> Result<BTreeSet<u16>> {
    let sockets = sockets(pid)?;
    Ok(sockets.iter().filter(|socket| socket.state == LISTENING).map(|socket| socket.local).collect())
}

/// Which of the processes `pids` holds each of the established connections, given as its local and its remote port.
/// One pass over the kernel's tables answers for all of them; what nobody holds is left out.
#[must_use]
pub fn holders(pids: &[u32], connections: &[(u16, u16)]) -> BTreeMap<(u16, u16), u32> {
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/self/net/{table}")));
    let rows = tables.iter().flatten().flat_map(|table| table.lines().skip(1)).filter_map(row);
    let rows = rows.filter(|(_, socket)| socket.state == ESTABLISHED);
    let wanted = rows.map(|(inode, socket)| (inode, (socket.local, socket.remote)));
    let wanted: BTreeMap<String, (u16, u16)> =
        wanted.filter(|(_, connection)| connections.contains(connection)).collect();
    let mut holders = BTreeMap::new();
    for pid in pids {
        // A process that has ended holds nothing.
        let held = held(*pid).unwrap_or_default();
        let of_it = wanted.iter().filter(|(inode, _)| held.contains(*inode));
        holders.extend(of_it.map(|(_, connection)| (*connection, *pid)));
    }
    holders
}

/// One row of the kernel's table.
struct Socket {
    state: String,
    local: u16,
    remote: u16,
}

/// The TCP sockets that the process holds. gRPC reaches IPv4 addresses through IPv6 sockets, so both
/// tables count.
fn sockets(pid: u32) -> Result<Vec<Socket>> {
    let read = |table: &str| fs::read_to_string(format!("/proc/{pid}/net/{table}"));
    let ipv4 = read("tcp").context("the table of connections")?;
    // A kernel without IPv6 has no such table.
    let ipv6 = read("tcp6").unwrap_or_default();
    let held = held(pid)?;
    let rows = ipv4.lines().skip(1).chain(ipv6.lines().skip(1)).filter_map(row);
    // The kernel shows a socket twice when the table changes while it is read.
    let rows: BTreeMap<String, Socket> = rows.filter(|(inode, _)| held.contains(inode)).collect();
    Ok(rows.into_values().collect())
}

/// The numbers of all sockets that the process holds.
fn held(pid: u32) -> Result<BTreeSet<String>> {
    let mut held = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).with_context(|| format!("process {pid} is gone"))? {
        // A descriptor may be closed while we look.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        held.extend(inode.map(str::to_owned));
    }
    Ok(held)
}

/// The socket's number, and the rest: `sl local remote state tx:rx tr:when retransmit uid timeout inode ...`; ports in hexadecimal.
fn row(line: &str) -> Option<(String, Socket)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let port = |column: &str| u16::from_str_radix(column.rsplit_once(':')?.1, 16).ok();
    let inode = (*columns.get(9)?).to_owned();
    let state = columns[3].to_owned();
    Some((inode, Socket { state, local: port(columns[1])?, remote: port(columns[2])? }))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_through_ipv6_sockets_are_counted() {
        // A host without IPv6 has nothing to count.
        let Ok(listener) = TcpListener::bind("[::]:0") else { return };
        let port = listener.local_addr().unwrap().port();
        let _stream = TcpStream::connect(("::ffff:127.0.0.1", port)).unwrap();
        assert_eq!(connections_to(std::process::id(), port).unwrap(), 1);
    }

    #[test]
    fn own_connections_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id();
        assert!(listening_ports(me).unwrap().contains(&port));
        assert_eq!(connections_to(me, port).unwrap(), 0);
        let first = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let second = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(connections_to(me, port).unwrap(), 2);
        let local = first.local_addr().unwrap().port();
        let ours = holders(&[me], &[(local, port), (local, port - 1)]);
        assert_eq!(ours, BTreeMap::from([((local, port), me)]));
        assert!(holders(&[], &[(local, port)]).is_empty());
        drop((first, second));
        assert_eq!(connections_to(me, port).unwrap(), 0);
    }
}
