//! Which program listens at a port of this machine, as far as the user may see that.

use std::fs;

/// Tables of the kernel, of both families.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The state of a socket that listens, in such a table.
const LISTENS: &str = "0A";

/// The name and the number of a process that listens there; `None`: it cannot be told.
pub(super) fn of(port: u16) -> Option<String> {
    let tables = TABLES.into_iter().filter_map(|path| fs::read_to_string(path).ok());
    let sockets: Vec<String> = tables.flat_map(|table| listening(&table, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let is_one =
            |link: &std::path::Path| sockets.iter().any(|socket| link.as_os_str() == socket.as_str());
        let holds = files.any(|file| fs::read_link(file.path()).is_ok_and(|link| is_one(&link)));
        let name = fs::read_to_string(process.path().join("comm")).ok()?;
        holds.then(|| format!("{} (process {number})", name.trim_end()))
    })
}

/// Sockets that listen at a port, as links of open files name them.
fn listening(table: &str, port: u16) -> Vec<String> {
    let sockets = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (_, number) = local.rsplit_once(':')?;
        let is_it = *state == LISTENS && u16::from_str_radix(number, 16) == Ok(port);
        is_it.then(|| format!("socket:[{inode}]"))
    });
    sockets.collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_sockets_that_listen_at_the_port_are_found_in_a_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:20D3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n   \
                     1: 0100007F:20D3 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n   \
                     2: 0100007F:20D4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1\n";
        assert_eq!(listening(table, 8403), ["socket:[4711]"]);
        assert_eq!(listening(table, 8405), [] as [&str; 0]);
    }

    #[test]
    fn this_process_is_found_at_a_port_of_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let Some(holder) = of(port) else { return };
        assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
    }
}
