//! How much slower than usual the machine is, the other programs on it included.

use std::hint::black_box;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Overrides the measurement: a number from 1 on, by which every limit is multiplied.
pub const VARIABLE: &str = "TRIPOD_TIME_SCALE";
/// A limit never grows beyond this many times itself, or a test that hangs would hold up everything.
const SCALE_MAX: f64 = 10.0;
/// What the measured steps take on a machine of usual speed that does nothing else (two cores of a virtual machine,
/// in a build as tests have).
const STEPS_USUALLY: Duration = Duration::from_millis(10);
/// Steps of one measurement.
const STEPS: u64 = 8_000_000;
/// What one write and one flush of a file take there.
const FLUSH_USUALLY: Duration = Duration::from_millis(4);
/// Measurements, of which the middle one counts.
const TIMES: usize = 5;

/// How many times longer than usual things take, at least once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowness {
    /// What needs a processor.
    pub processor: f64,
    /// What needs a disk.
    pub disk: f64,
}

impl Slowness {
    /// The greater of both, within its bounds.
    #[must_use]
    pub fn scale(self) -> f64 {
        self.processor.max(self.disk).clamp(1.0, SCALE_MAX)
    }

    /// What is to be added to a limit.
    #[must_use]
    pub fn more(self, limit: Duration) -> Duration {
        limit.mul_f64(self.scale() - 1.0)
    }
}

/// By how much limits are multiplied in this process: what [`VARIABLE`] says, or else one measurement.
#[must_use]
pub fn scale() -> f64 {
    static SCALE: OnceLock<f64> = OnceLock::new();
    *SCALE.get_or_init(|| match said() {
        Some(slowness) => slowness.scale(),
        None => measured().scale(),
    })
}

/// What [`VARIABLE`] says, or else how slow it is at this moment; takes a tenth of a second.
#[must_use]
pub fn now_and_here() -> Slowness {
    said().unwrap_or_else(measured)
}

fn said() -> Option<Slowness> {
    let text = std::env::var(VARIABLE).ok()?;
    let factor = text.parse::<f64>().ok().filter(|factor| factor.is_finite())?;
    Some(Slowness { processor: factor, disk: factor })
}

fn measured() -> Slowness {
    let processor = middle(steps).map_or(1.0, |took| took.div_duration_f64(STEPS_USUALLY));
    // Where no file can be written, the tests of disks say so themselves.
    let disk = middle(flush).map_or(1.0, |took| took.div_duration_f64(FLUSH_USUALLY));
    Slowness { processor, disk }
}

fn middle(mut measure: impl FnMut() -> Option<Duration>) -> Option<Duration> {
    let mut took = (0..TIMES).map(|_| measure()).collect::<Option<Vec<_>>>()?;
    took.sort_unstable();
    took.get(TIMES / 2).copied()
}

/// Numbers that each need the one before.
#[allow(clippy::unnecessary_wraps, reason = "measurements have one shape")]
fn steps() -> Option<Duration> {
    let begun = Instant::now();
    let mut number = black_box(88_172_645_463_325_252_u64);
    for _ in 0..STEPS {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
    }
    black_box(number);
    Some(begun.elapsed())
}

/// A page that is on the disk.
fn flush() -> Option<Duration> {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tripod-wait-{}-{number}", std::process::id()));
    let begun = Instant::now();
    let written = std::fs::File::create_new(&path).and_then(|mut file| {
        file.write_all(&[7; 4096])?;
        file.sync_data()
    });
    let took = begun.elapsed();
    // One that was made is removed, whatever came of it.
    let removed = std::fs::remove_file(&path);
    (written.is_ok() && removed.is_ok()).then_some(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_speed() {
        let slowness = measured();
        assert!(slowness.processor > 0.0 && slowness.disk > 0.0, "{slowness:?}");
    }

    #[test]
    fn the_slower_part_counts_within_bounds() {
        let of = |processor, disk| Slowness { processor, disk }.scale();
        assert_eq!((of(0.3, 0.9), of(2.0, 3.0), of(5.0, 3.0), of(70.0, 3.0)), (1.0, 3.0, 5.0, SCALE_MAX));
        let twice = Slowness { processor: 2.0, disk: 0.1 };
        assert_eq!(twice.more(Duration::from_secs(60)), Duration::from_secs(60));
    }
}
