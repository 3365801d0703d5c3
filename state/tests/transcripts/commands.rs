//! Commands as lines write them, but for those of domains that have a file of their own.

use bytes::Bytes;
use tripod_state::ids::{
    BarrierCounter, BarrierName, ClientId, DurationMs, Incarnation, NodeId, ServiceIncarnation, SessionId,
    TaskId, TimeMs,
};
use tripod_state::job::{Group, Listener, Poll, Spec};
use tripod_state::{Scope, barrier, job, kv, member, runtime, session, task};

use crate::script::Line;

/// The service incarnation of a transcript's jobs.
const SERVICE: ServiceIncarnation = ServiceIncarnation(99);

pub(crate) fn kv(scope: Scope, line: &Line<'_>) -> kv::Command {
    let key = line.text(1);
    let value = || Bytes::from(line.text(2).replace('_', " "));
    match line.word(0) {
        "insert" => match line.get("task").zip(line.get("incarnation")) {
            Some((task, incarnation)) => kv::Command::InsertAs {
                scope,
                key,
                value: value(),
                task: TaskId(task),
                incarnation: Incarnation(incarnation),
            },
            None => kv::Command::Insert { scope, key, value: value(), overwrite: line.flag("overwrite") },
        },
        "cas" => kv::Command::CompareAndSet { scope, key, value: value(), expected: line.or("expected", 0) },
        "increment" => {
            let caller = line.get("caller").map(Incarnation);
            kv::Command::Increment { scope, key, by: line.or("by", 1), caller }
        }
        _ => kv::Command::Delete { scope, key },
    }
}

pub(crate) fn barrier(scope: Scope, line: &Line<'_>) -> barrier::Command {
    let barrier = line.text(1);
    let counter = BarrierCounter(line.or("counter", 0));
    match line.word(0) {
        "arrive" => barrier::Command::Arrive {
            scope,
            barrier,
            counter,
            timeout_ms: line.or("timeout", 5000),
            tasks: line.tasks("of"),
            task: line.task(2),
        },
        "cancel" => barrier::Command::Cancel { scope, barrier, counter, task: line.task(2) },
        _ => {
            barrier::Command::Expire { job: scope.job, barrier: BarrierName::from(barrier.as_str()), counter }
        }
    }
}

pub(crate) fn job(line: &Line<'_>) -> job::Command {
    let name = line.text(1);
    if line.word(0) == "delete" {
        return job::Command::Delete { name };
    }
    let group = |name: &str| {
        let tasks = line.get(name)?;
        Some(Group { name: name.trim_end_matches('s').to_owned(), tasks })
    };
    let groups: Vec<Group> = [group("workers"), group("servers")].into_iter().flatten().collect();
    let tasks = groups.iter().map(|group| group.tasks).reduce(|one, other| one + other);
    let spec = Spec {
        reconnect: line.flag("reconnect"),
        listeners: line.tasks("listeners").into_iter().map(listener).collect(),
        heartbeat_timeout_ms: DurationMs(line.or("heartbeat", 10_000)),
        shutdown_timeout_ms: DurationMs(line.or("shutdown", 20_000)),
        register_timeout_ms: DurationMs(line.or("register", 30_000)),
        recoverable: line.flag("recoverable"),
        shutdown_barrier: !line.flag("alone"),
        poll: if line.flag("release") { Poll::Release } else { Poll::Hold },
        groups,
        ..Spec::of_tasks(tasks.unwrap_or_else(|| line.or("tasks", 2)))
    };
    job::Command::Create { name, spec, service: SERVICE }
}

pub(crate) fn session(line: &Line<'_>) -> session::Command {
    match line.word(0) {
        "session" => session::Command::Open,
        "session-for" => session::Command::OpenFor {
            id: session_id(line, line.word(1)),
            owner: match line.option("node") {
                Some(node) => session::Owner::Node(NodeId(line.number(node))),
                None => {
                    session::Owner::Client(line.option("from").map(|from| from.parse().expect("an address")))
                }
            },
        },
        "close" => session::Command::Close { session: session_id(line, line.word(1)) },
        "idle-owned" => session::Command::ExpireOwned {
            clients_before_ms: TimeMs(line.number(line.word(1))),
            nodes_before_ms: TimeMs(line.number(line.word(2))),
        },
        _ => session::Command::ExpireIdle { before_ms: TimeMs(line.number(line.word(1))) },
    }
}

pub(crate) fn task(scope: Scope, now: TimeMs, line: &Line<'_>) -> task::Command {
    let incarnation = Incarnation(line.or("incarnation", 0));
    if line.word(0) == "pushed" {
        return task::Command::Pushed { job: scope.job, tasks: line.tasks("of") };
    }
    if line.word(0) == "silent" {
        return task::Command::Expire { job: scope.job, silent: silent(line) };
    }
    let task = line.task(1);
    match line.word(0) {
        "register" => {
            let recoverable = line.flag("recoverable");
            let protocol =
                if line.flag("tensorflow") { task::Protocol::TensorFlow } else { task::Protocol::Xla };
            task::Command::Register { scope, task, incarnation, recoverable, protocol }
        }
        "shutdown" => task::Command::Shutdown { scope, task },
        "reset" => task::Command::Reset { scope, task },
        "report" => {
            let message = line.option("text").unwrap_or("").to_owned();
            task::Command::ReportError { scope, task, code: line.or("code", 5), message }
        }
        "poll" => {
            let wish = match line.option("wish") {
                Some("hold") => Some(Poll::Hold),
                Some("release") => Some(Poll::Release),
                _ => None,
            };
            task::Command::Poll { scope, task, wish }
        }
        "alive" => task::Command::Alive { scope, task, tasks: line.tasks("of") },
        "devices" => {
            let list = line.option("list").unwrap_or("");
            let devices = list.split(',').map(|device| Bytes::from(device.to_owned())).collect();
            task::Command::ExchangeDevices { scope, task, devices }
        }
        "refuse" => task::Command::RefuseBeat { scope, task, incarnation },
        "host" => {
            let host = line.option("at").map_or_else(|| "h".repeat(line.or("long", 0)), str::to_owned);
            task::Command::NoteHost { scope, task, incarnation, host }
        }
        "end" => task::Command::End { scope, task, incarnation },
        "ended" => task::Command::Ended { scope, task, incarnation, end: end(now, line) },
        "interval" => {
            let interval_ms = DurationMs(line.or("ms", 5_000));
            task::Command::NoteInterval { scope, task, incarnation, interval_ms }
        }
        _ => line.unknown(),
    }
}

/// `exit=3` or `signal=9`, with `core` or `oom`; neither: the launcher is no more. `tail`: its last words, `|` between lines.
fn end(now: TimeMs, line: &Line<'_>) -> task::End {
    let (exit, signal) = (line.get("exit"), line.get("signal"));
    let how = match (exit, signal) {
        (Some(code), _) => task::How::Exited { code },
        (None, Some(signal)) => {
            let (core_dumped, out_of_memory) = (line.flag("core"), line.flag("oom"));
            task::How::Signalled { signal, core_dumped, out_of_memory }
        }
        (None, None) => task::How::LauncherEnded,
    };
    let tail = line.option("tail").map_or_else(|| "t".repeat(line.or("long", 0)), str::to_owned);
    task::End { how, at: now, tail: tail.replace('_', " ").replace('|', "\n") }
}

fn silent(line: &Line<'_>) -> Vec<(TaskId, Incarnation)> {
    let pair = |text: &str| {
        let (task, incarnation) = text.split_once(':').expect("silent tasks are written as task:incarnation");
        (TaskId(line.number(task)), Incarnation(line.number(incarnation)))
    };
    line.word(1).split(',').map(pair).collect()
}

fn listener(task: TaskId) -> Listener {
    Listener { task, address: format!("host-{task}:1") }
}

pub(crate) fn announce(line: &Line<'_>) -> member::Command {
    let addresses = member::Addresses {
        client: line.text(2),
        http: line.text(3),
        job_host: "h".to_owned(),
        job_port_first: 8000,
        job_port_count: 100,
    };
    member::Command::Announce { node: NodeId(line.number(line.word(1))), addresses }
}

pub(crate) fn runtime(scope: Scope, line: &Line<'_>) -> runtime::Command {
    use runtime::Command as C;
    let (client, waited_ms) = (ClientId(line.or("client", 1)), line.or("waited", 1000));
    let barrier = || runtime::BarrierId(bytes(line, 1));
    match line.word(0) {
        "runtime-connect" => C::Connect { scope, task: line.task(1), client },
        "runtime-withdraw" => C::Withdraw { scope, task: line.task(1), client, waited_ms },
        "runtime-enumerate" => C::Enumerate { scope, task: line.task(1), topology: bytes(line, 2) },
        "runtime-arrive" => C::Arrive { scope, barrier: barrier(), task: line.task(2) },
        "runtime-give-up" => C::GiveUp { scope, barrier: barrier(), waited_ms },
        "runtime-shutdown" => C::Shutdown { scope, task: line.task(1) },
        "runtime-give-up-shutdown" => C::GiveUpShutdown { scope, waited_ms },
        "runtime-put" => C::Put { scope, key: bytes(line, 1), value: bytes(line, 2) },
        _ => line.unknown(),
    }
}

pub(crate) fn bytes(line: &Line<'_>, index: usize) -> Bytes {
    Bytes::from(line.text(index))
}

/// `n7` is a node's own, `7` a client's, or one of an earlier level.
pub(crate) fn session_id(line: &Line<'_>, text: &str) -> SessionId {
    match text.strip_prefix('n') {
        Some(bits) => SessionId::of_node(line.number(bits)),
        None => SessionId::of_client(line.number(text)),
    }
}
