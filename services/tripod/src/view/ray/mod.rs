//! A scheduler, as people and scripts see it.

pub(crate) mod graph;
pub(crate) mod status;
pub(crate) mod tasks;

/// Bytes in the largest unit that leaves at least one: `17 B`, `1.5 MiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1 << 10 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10).min(5) as usize;
    let tenths = (u128::from(count) * 10) >> (10 * power);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_their_largest_unit() {
        let shown = [0, 1023, 1024, 1536, (1 << 20) - 1, 1 << 20, 5 << 30, u64::MAX].map(bytes);
        let wanted =
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1023.9 KiB", "1.0 MiB", "5.0 GiB", "16383.9 PiB"];
        assert_eq!(shown, wanted);
    }
}
