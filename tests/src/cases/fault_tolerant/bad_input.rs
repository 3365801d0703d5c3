//! A process that comes back as another one than it was, and one that comes back where nobody may. JAX itself says what is
//! wrong, and whoever did nothing wrong hears of it only what JAX's own service tells.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_tests::python::Ending;
use tripod_tests::wait::scaled;

use super::history::now;
use super::program::{LIMIT, MORTAL, Program, Setup, UNLESS_HELD};
use crate::cases::Given;

const VICTIM: usize = 1;
/// What jaxlib does to its process when it learns of an error; `tripod run` ends as after that signal.
const ABORTED: Ending = Ending::Exit(128 + 6);
/// Begins the program, but in its first life with two devices. A file tells that it has lived.
const LATER_WITH_TWO_DEVICES: [&str; 3] = [
    "sh",
    "-c",
    r#"[ -e "$HOLD-lived" ] && export XLA_FLAGS=--xla_force_host_platform_device_count=2; : > "$HOLD-lived"; exec "$0" "$@""#,
];

/// How long a process tries to take part that is refused.
const REFUSED: Duration = Duration::from_secs(10);

/// Both at a time.
pub(super) async fn run(given: Given<'_>, python: &Path, release: &str) -> Result<String> {
    let Given { folder, endpoints, .. } = given;
    let (devices, first) = (format!("other-devices-{release}"), format!("no-second-life-{release}"));
    let (pause, patience) = (Duration::from_millis(100), scaled(REFUSED));
    let setup = |job| Setup { python, folder, endpoints, job, tasks: 2, pause, patience };
    tokio::try_join!(
        async { other_devices(setup(&devices)).await.context("another number of devices") },
        async { no_second_life(setup(&first)).await.context("a job that is not recoverable") },
    )?;
    Ok("JAX named what was wrong".to_owned())
}

/// The process that comes back is refused by JAX, and the other one goes on without it.
async fn other_devices(setup: Setup<'_>) -> Result<()> {
    let once = ["--recoverable", "--restarts", "1"];
    let first = setup.start(0, MORTAL, &UNLESS_HELD)?;
    let processes = vec![first, setup.start(VICTIM, &once, &LATER_WITH_TWO_DEVICES)?];
    let mut program = Program::of(setup, processes)?;
    program.go_on_together(0.0).await?;
    let killed = program.kill(&[VICTIM])?;
    program.go_on(&[VICTIM], killed).await?;
    let victim = &mut program.processes[VICTIM];
    let ending = victim.script.finish(LIMIT).await?;
    let said = victim.script.output();
    let told = format!(
        "Different local topology for node {VICTIM} has been set previously, possibly before a restart."
    );
    ensure!(ending != Ending::Exit(0) && said.contains(&told), "it ended with {ending:?}:\n{said}");
    let over = now()?;
    program.go_on(&[VICTIM], over).await.context("when it was gone again")?;
    program.processes.truncate(VICTIM);
    program.end().await?;
    Ok(())
}

/// The other process ends and names the one that was killed, which is refused when it comes back.
async fn no_second_life(setup: Setup<'_>) -> Result<()> {
    let processes = vec![setup.start(0, &[], &[])?, setup.start(VICTIM, &["--restarts", "1"], &[])?];
    let mut program = Program::of(setup, processes)?;
    program.go_on_together(0.0).await?;
    program.kill(&[VICTIM])?;
    let died = format!(
        "The following tasks are unhealthy (stopped sending heartbeats):\n{VICTIM}\nThe tasks have crashed."
    );
    let refused = "unexpectedly tried to connect while it is already in error";
    for (process, told) in program.processes.iter_mut().zip([&*died, refused]) {
        let ending = process.script.finish(LIMIT).await?;
        let said = process.script.output();
        let number = process.number;
        ensure!(ending == ABORTED && said.contains(told), "process {number} ended with {ending:?}:\n{said}");
    }
    Ok(())
}
