//! Where the Python programs of a job's tasks stand: of those that `tripod run` has started on this machine, by `py-spy`, which
//! asks neither the programs nor the cluster.
//!
//! Which process a task is anybody may have told the cluster who may speak for its job, and a number may have become another
//! process's since. So only such are read of which this machine says itself that they were started as that task.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tripod_client::{Client, wire};

use crate::failure::Failure;
use crate::launch::TASK_VARIABLE;
use crate::operator;
use crate::output;
use crate::view::tasks;

/// How long one process may take to be read.
const LIMIT: Duration = Duration::from_secs(10);
/// Processes that are read at the same time.
const AT_ONCE: usize = 8;
/// Processes that are read.
const TASKS_MAX: usize = 256;
/// Frames of a stack that are kept, the innermost first, and letters of each.
const FRAMES_MAX: usize = 32;
const FRAME_CHARS_MAX: usize = 160;
/// Frames that a line shows; all are in JSON.
const FRAMES_SHOWN: usize = 6;
/// Reasons why there are none that are told, each a line; all are in JSON.
const REASONS_SHOWN: usize = 16;
/// Bytes of each of its outputs that are kept of `py-spy`.
const SAID_BYTES_MAX: u64 = 1 << 20;
/// Bytes of an environment that are looked through: Linux gives no program more.
const ENVIRONMENT_BYTES_MAX: u64 = 6 << 20;
/// Processes below a task's own that are looked through for one of Python.
const BELOW_MAX: usize = 64;

/// Stacks of tasks. Those that stand at the same place are a group.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stacks {
    /// Frames, the innermost first, and who stands there.
    groups: BTreeMap<Vec<String>, Vec<i32>>,
    /// Why there are none, and of whom.
    not_taken: BTreeMap<String, Vec<i32>>,
}

/// As JSON has it.
#[derive(Debug, Serialize)]
struct GroupView<'a> {
    stack: &'a [String],
    tasks: &'a [i32],
}

/// A finding with the stacks of the tasks.
///
/// # Errors
/// The job cannot be looked at.
pub(super) async fn add(
    client: &Client,
    job: &str,
    mut found: wire::DiagnoseJobResponse,
) -> Result<wire::DiagnoseJobResponse, Failure> {
    let shown = client.jobs().get_or_remembered(job).await?.unwrap_or_default();
    let stacks = take(&shown.tasks, &operator::host().unwrap_or_default()).await;
    found.text = format!("{}\n{}", found.text, stacks.render());
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(&found.json) {
        let view = |(stack, tasks)| GroupView { stack, tasks };
        let groups: Vec<_> = stacks.smallest_first().into_iter().map(view).collect();
        let not_taken = stacks.not_taken.iter().map(|(why, tasks)| json!({ "why": why, "tasks": tasks }));
        fields.insert("groups".to_owned(), json!(groups));
        fields.insert("stacks_not_taken".to_owned(), Value::Array(not_taken.collect()));
        found.json = Value::Object(fields).to_string();
    }
    Ok(found)
}

/// Looks at the processes of the tasks that are connected, each once.
async fn take(all: &[wire::TaskState], own_host: &str) -> Stacks {
    let (room, mut looks) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    let mut stacks = Stacks::default();
    for task in all.iter().filter(|task| task.state == "connected") {
        match process_of(task, own_host) {
            Ok(_) if looks.len() >= TASKS_MAX => {
                stacks.refuse(task.task_id, format!("no more than {TASKS_MAX} are looked at"));
            }
            Ok(pid) => {
                let (room, id) = (Arc::clone(&room), task.task_id);
                looks.spawn(async move {
                    let _place = room.acquire_owned().await;
                    (id, dump(pid, id).await)
                });
            }
            Err(why) => stacks.refuse(task.task_id, why),
        }
    }
    while let Some(look) = looks.join_next().await {
        match look.expect("looking at a process does not panic") {
            (id, Ok(stack)) => stacks.groups.entry(stack).or_default().push(id),
            (id, Err(why)) => stacks.refuse(id, why),
        }
    }
    stacks.groups.values_mut().chain(stacks.not_taken.values_mut()).for_each(|ids| ids.sort_unstable());
    stacks
}

/// The process of a task on this machine, or why there is none.
fn process_of(task: &wire::TaskState, own_host: &str) -> Result<u32, String> {
    match task.origin.as_ref().map_or(0, |origin| origin.pid) {
        0 => Err("nobody has said which processes they are: start them by `tripod run`".to_owned()),
        _ if task.host != own_host => Err(format!("they run on {}: ask there", task.host)),
        pid => Ok(pid),
    }
}

/// Says why not, unless `tripod run` has started this process as that task, and this user may look at it.
fn check_started(pid: u32, task: i32) -> Result<(), String> {
    let mut environment = Vec::new();
    let looked = File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment));
    let wanted = format!("{TASK_VARIABLE}={task}");
    match looked {
        Ok(_) if environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()) => Ok(()),
        Ok(_) => Err("the processes that are told of were not started as them by `tripod run`".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("their processes have ended".to_owned()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(not_allowed()),
        Err(error) => Err(format!("their processes cannot be looked at: {error}")),
    }
}

/// The stack of a process's main thread, the innermost frame first, or why it cannot be read.
async fn dump(pid: u32, task: i32) -> Result<Vec<String>, String> {
    check_started(pid, task)?;
    let mut command = Command::new("py-spy");
    command.args(["dump", "--nonblocking", "--pid", &python_below(pid).to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    match timeout(LIMIT, said_by(command)).await {
        Err(_) => Err(format!("py-spy has not read them within {} s", LIMIT.as_secs())),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
            Err("there is no py-spy in PATH; next: pip install py-spy".to_owned())
        }
        Ok(Err(error)) => Err(format!("py-spy cannot be started: {error}")),
        Ok(Ok((true, said, _))) => {
            main_thread(&said).ok_or_else(|| "py-spy tells no stack of them".to_owned())
        }
        Ok(Ok((false, _, complaint))) => Err(refusal(&complaint)),
    }
}

/// Whether the command went well, and what it wrote to its two outputs.
async fn said_by(mut command: Command) -> io::Result<(bool, String, String)> {
    let mut process = command.spawn()?;
    let (said, complaint) = (process.stdout.take(), process.stderr.take());
    let (said, complaint) = tokio::try_join!(beginning(said), beginning(complaint))?;
    Ok((process.wait().await?.success(), said, complaint))
}

/// The beginning of what comes by a pipe. Who writes more is not kept waiting.
async fn beginning<P: AsyncRead + Unpin>(pipe: Option<P>) -> io::Result<String> {
    let mut said = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(SAID_BYTES_MAX).read_to_end(&mut said).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// What it says, with what helps where that is known.
fn refusal(said: &str) -> String {
    if said.to_ascii_lowercase().contains("permission") {
        return not_allowed();
    }
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim();
    format!("py-spy says: {}", first.chars().take(FRAME_CHARS_MAX).collect::<String>())
}

fn not_allowed() -> String {
    "this user may not read them: ask as their user or as root; under Yama only root may, and a container needs SYS_PTRACE"
        .to_owned()
}

/// The main thread's frames in what `py-spy dump` prints; of a process without one the first thread's.
fn main_thread(said: &str) -> Option<Vec<String>> {
    let mut threads: Vec<(bool, Vec<String>)> = Vec::new();
    for line in said.lines() {
        if line.starts_with("Thread ") {
            threads.push((line.contains("\"MainThread\""), Vec::new()));
        } else if line.starts_with("    ")
            && let Some((_, frames)) = threads.last_mut()
            && frames.len() < FRAMES_MAX
        {
            frames.push(line.trim().chars().take(FRAME_CHARS_MAX).collect());
        }
    }
    let place = threads.iter().position(|(is_main, _)| *is_main).unwrap_or(0);
    let (_, frames) = threads.into_iter().nth(place)?;
    (!frames.is_empty()).then_some(frames)
}

/// The process itself if it is one of Python or nothing else is known, else the first one below it that is, and is of the same
/// user.
fn python_below(pid: u32) -> u32 {
    let owner = owner(pid);
    let (mut seen, mut next) = (BTreeSet::from([pid]), vec![pid]);
    while let Some(one) = next.pop() {
        let name = std::fs::read_to_string(format!("/proc/{one}/comm")).unwrap_or_default();
        if name.starts_with("python") {
            return one;
        }
        for child in children(one).into_iter().filter(|child| self::owner(*child) == owner) {
            if seen.len() < BELOW_MAX && seen.insert(child) {
                next.push(child);
            }
        }
    }
    pid
}

/// Whose a process is; `None`: it is no more.
fn owner(pid: u32) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: std::fs::DirEntry| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()
    };
    threads.flatten().flat_map(of_thread).collect()
}

impl Stacks {
    fn refuse(&mut self, task: i32, why: String) {
        self.not_taken.entry(why).or_default().push(task);
    }

    /// They are looked for.
    fn smallest_first(&self) -> Vec<(&[String], &[i32])> {
        let mut groups: Vec<(&[String], &[i32])> =
            self.groups.iter().map(|(stack, ids)| (&stack[..], &ids[..])).collect();
        groups.sort_by_key(|(_, ids)| ids.len());
        groups
    }

    fn render(&self) -> String {
        let ids = |ids: &[i32]| tasks::ids(ids, ids.len());
        let mut lines = vec!["stacks of main threads, the innermost frame first:".to_owned()];
        for (stack, who) in self.smallest_first() {
            let shown = stack.iter().take(FRAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(" < ");
            let more = if stack.len() > FRAMES_SHOWN { " < ..." } else { "" };
            lines.push(format!("  {:<8} {}{more}", ids(who), output::text(&shown)));
        }
        for (why, who) in self.not_taken.iter().take(REASONS_SHOWN) {
            lines.push(format!("  {:<8} not taken: {}", ids(who), output::text(why)));
        }
        if let Some(more) = self.not_taken.len().checked_sub(REASONS_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("  and for {more} more reasons, which --json has"));
        }
        if lines.len() == 1 {
            lines.push("  no task is connected".to_owned());
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Process 4711: python3 prog.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 4720 (idle): \"beats\"
    wait (threading.py:324)
Thread 4711 (active): \"MainThread\"
    load_shard_from_store (prog.py:12)
    main (prog.py:31)
";

    #[test]
    fn the_main_thread_is_told_with_its_innermost_frame_first() {
        let frames = main_thread(SAID).expect("a thread");
        assert_eq!(frames, ["load_shard_from_store (prog.py:12)", "main (prog.py:31)"]);
        let other = SAID.replace("MainThread", "other");
        assert_eq!(main_thread(&other).expect("a thread"), ["wait (threading.py:324)"], "the first one");
        assert_eq!((main_thread(""), main_thread("Thread 1\n")), (None, None));
    }

    #[test]
    fn v21_a_refusal_is_one_line_with_what_helps() {
        let refused = refusal("Error: Permission Denied: Try running again with elevated permissions\nmore");
        assert!(refused.contains("SYS_PTRACE") && !refused.contains('\n'), "{refused}");
        assert_eq!(
            refusal("\n Failed to find python version\n"),
            "py-spy says: Failed to find python version"
        );
        assert_eq!(refusal(""), "py-spy says: nothing");
    }

    #[tokio::test]
    async fn of_whom_no_stack_can_be_taken_is_told_with_the_reason() {
        let task = |task_id, host: &str, pid| wire::TaskState {
            task_id,
            state: "connected".into(),
            host: host.into(),
            origin: Some(wire::TaskOrigin { pid, ..Default::default() }),
            ..Default::default()
        };
        let left = wire::TaskState { state: "disconnected".into(), ..task(9, "here", 7) };
        let stacks = take(&[task(0, "b1", 7), task(1, "b1", 8), task(2, "here", 0), left], "here").await;
        let expected = "\
stacks of main threads, the innermost frame first:
  2        not taken: nobody has said which processes they are: start them by `tripod run`
  0, 1     not taken: they run on b1: ask there";
        assert_eq!(stacks.render(), expected);
        assert!(Stacks::default().render().ends_with("\n  no task is connected"));
    }

    #[test]
    fn whatever_a_host_is_called_a_reason_is_one_line_and_there_are_not_many() {
        let mut stacks = Stacks::default();
        stacks.refuse(7, "they run on a\n  7        main (prog.py:1): ask there".to_owned());
        let told = stacks.render();
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(told.ends_with(r"they run on a\n  7        main (prog.py:1): ask there"), "{told}");
        (0..500).for_each(|task| stacks.refuse(task, format!("they run on host {task}: ask there")));
        let told = stacks.render();
        assert_eq!(told.lines().count(), 1 + REASONS_SHOWN + 1, "{told}");
        assert!(told.ends_with("\n  and for 485 more reasons, which --json has"), "{told}");
    }

    #[test]
    fn who_stands_elsewhere_comes_first() {
        let frames = |frame: &str| vec![frame.to_owned(), "main (prog.py:31)".to_owned()];
        let groups = BTreeMap::from([
            (frames("a (x.py:1)"), vec![0, 1, 3]),
            (frames("load_shard_from_store (prog.py:12)"), vec![2]),
        ]);
        let stacks = Stacks { groups, ..Stacks::default() };
        let expected = "\
stacks of main threads, the innermost frame first:
  2        load_shard_from_store (prog.py:12) < main (prog.py:31)
  0, 1, 3  a (x.py:1) < main (prog.py:31)";
        assert_eq!(stacks.render(), expected);
    }

    #[test]
    fn only_a_process_that_was_started_as_that_task_is_read() {
        let other = check_started(std::process::id(), 3).expect_err("a process of this number, and no task");
        assert!(other.contains("not started as them"), "{other}");
        // A process has an environment from some moment after it was made, which is past once it has said something.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo; read -r wait"]).env(TASK_VARIABLE, "3");
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut started = started.expect("there is a shell");
        let said = started.stdout.as_mut().expect("it is piped").read(&mut [0]);
        assert_eq!(said.expect("it says something"), 1);
        let (own, others) = (check_started(started.id(), 3), check_started(started.id(), 33));
        started.kill().expect("it is a child");
        started.wait().expect("it has ended");
        assert_eq!((own, others.is_err()), (Ok(()), true));
        assert_eq!(check_started(started.id(), 3), Err("their processes have ended".to_owned()));
    }

    #[tokio::test]
    async fn of_what_is_written_without_an_end_only_the_beginning_is_kept() {
        let long = vec![b'x'; 3 << 20];
        let kept = beginning(Some(&long[..])).await.expect("read");
        assert_eq!(kept.len() as u64, SAID_BYTES_MAX);
        assert_eq!(beginning(Some(&b"abc"[..])).await.expect("read"), "abc");
        assert_eq!(beginning(None::<&[u8]>).await.expect("nothing"), "");
    }

    #[test]
    fn a_process_without_python_below_it_is_looked_at_itself() {
        let own = std::process::id();
        assert_eq!(python_below(own), own);
    }
}
