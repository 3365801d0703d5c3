//! A process that comes back as another one than it was, one that comes back where nobody may, and one that is begun
//! while it lives. JAX itself says what is wrong with the first two, and whoever did nothing wrong hears of it only what
//! JAX's own service tells; the third is not begun.

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

/// What a command ends with that did nothing.
const NOTHING_DONE: Ending = Ending::Exit(1);

/// All at a time.
pub(super) async fn run(given: Given<'_>, python: &Path, release: &str) -> Result<String> {
    let Given { folder, endpoints, .. } = given;
    let (devices, first) = (format!("other-devices-{release}"), format!("no-second-life-{release}"));
    let twice = format!("twice-{release}");
    let (pause, patience) = (Duration::from_millis(100), scaled(REFUSED));
    let setup = |job| Setup { python, folder, endpoints, job, tasks: 2, pause, patience };
    tokio::try_join!(
        async { other_devices(setup(&devices)).await.context("another number of devices") },
        async { no_second_life(setup(&first)).await.context("a job that is not recoverable") },
        async { twin(setup(&twice)).await.context("a second process 0") },
    )?;
    Ok("it was named what was wrong".to_owned())
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
    let died = format!("the process of task {VICTIM} was ended by SIGKILL, as whoever started it saw");
    let refused = "unexpectedly tried to connect while it is already in error";
    for (process, told) in program.processes.iter_mut().zip([&*died, refused]) {
        let ending = process.script.finish(LIMIT).await?;
        let said = process.script.output();
        let number = process.number;
        ensure!(ending == ABORTED && said.contains(told), "process {number} ended with {ending:?}:\n{said}");
    }
    Ok(())
}

/// Two processes with the same number: the second one is not begun, and both hosts are named.
async fn twin(setup: Setup<'_>) -> Result<()> {
    let processes = (0..setup.tasks).map(|number| setup.start(number, MORTAL, &UNLESS_HELD));
    let mut program = Program::of(setup, processes.collect::<Result<Vec<_>>>()?)?;
    program.go_on_together(0.0).await?;
    let mut twin = setup.start_as(&format!("{}-second", setup.job), 0, &["--recoverable"], &[])?;
    let ending = twin.script.finish(LIMIT).await?;
    let said = twin.script.output();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").context("a machine without a name")?;
    let host = host.trim();
    let told = format!("its process runs on {host}, and this would be another one, on {host};");
    ensure!(ending == NOTHING_DONE && said.contains(&told), "it ended with {ending:?}:\n{said}");
    program.go_on_together(now()?).await.context("after the second one")?;
    program.end().await?;
    Ok(())
}
