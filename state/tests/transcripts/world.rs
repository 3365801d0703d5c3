//! A state machine, and clients that wait on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tripod_state::identity::{Identity, IdentityCommand};
use tripod_state::ids::{
    DurationMs, FeatureLevel, Incarnation, JobId, Key, LogIndex, Sequence, ServiceIncarnation, TaskVersion,
    Term, TimeMs,
};
use tripod_state::ray::ids::OrderId;
use tripod_state::task::Beat;
use tripod_state::{
    Answer, ApplyContext, Command, Effect, Envelope, Scope, Stamp, State, Ticket, Topic, barrier, job, level,
    task,
};

use crate::script::Line;
use crate::{commands, events, mars, mindspore, ray, show, token};

/// A state, a clock, and the calls that wait, by number.
#[derive(Default)]
pub(crate) struct World {
    state: State,
    now: u64,
    /// How often another leader was elected.
    elections: u64,
    index: u64,
    job: JobId,
    calls: u64,
    waiting: BTreeMap<u64, Ticket>,
    /// What the last command's effects wake.
    topics: Vec<Topic>,
    /// The first order that was not told of.
    orders: OrderId,
}

impl World {
    /// Executes one line and tells what came of it, ended waits included.
    pub(crate) fn step(&mut self, text: &str, place: &str) -> String {
        let mut text = text;
        if let Some(rest) = text.strip_prefix("at ") {
            let (time, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("{place}: nothing happens"));
            self.now = time.parse().unwrap_or_else(|_| panic!("{place}: {time} is no time"));
            text = rest;
        }
        let line = Line::parse(text, place);
        let before = self.calls;
        let mut said = self.act(&line);
        let (state, topics) = (&self.state, &self.topics);
        self.waiting.retain(|number, ticket| match state.resolve(ticket) {
            None => true,
            Some(reply) => {
                let woken = topics.contains(&ticket.topic()) || topics.contains(&Topic::Jobs);
                assert!(woken || *number > before, "{place}: nobody woke #{number}");
                writeln!(said, "  #{number} {}", show::reply(&reply)).expect("a string takes all");
                false
            }
        });
        self.check_snapshot(place);
        said
    }

    fn act(&mut self, line: &Line<'_>) -> String {
        if let Some(said) = self.read(line) {
            return said + "\n";
        }
        let command = match line.word(0) {
            "insert" | "cas" | "increment" | "erase" => Command::Kv(commands::kv(self.scope(line), line)),
            "arrive" | "cancel" | "deadline" => Command::Barrier(commands::barrier(self.scope(line), line)),
            "create" | "delete" => Command::Job(commands::job(line)),
            "session" | "session-for" | "close" | "idle" | "idle-owned" => {
                Command::Session(commands::session(line))
            }
            "announce" => Command::Member(commands::announce(line)),
            "note" => {
                Command::Job(job::Command::Note { name: line.text(1), note: line.text(2).replace('_', " ") })
            }
            "level" => Command::Level(self.level(line)),
            "floor" => Command::Identity(IdentityCommand::SetFloor {
                mode: line.word(1).parse().unwrap_or_else(|_| line.unknown()),
                by: line.option("by").unwrap_or("ops").to_owned(),
            }),
            verb if verb.starts_with("token-") => Command::Token(token::command(line)),
            verb if verb.starts_with("ray-") => return self.ray(line),
            verb if verb.starts_with("topo-") || verb.starts_with("ps-") => return self.mindspore(line),
            verb if verb.starts_with("m-") => return self.mars(line),
            verb if verb.starts_with("runtime-") => {
                Command::Runtime(commands::runtime(self.scope(line), line))
            }
            _ => Command::Task(commands::task(self.scope(line), TimeMs(self.now), line)),
        };
        let retried = line.flag("retried");
        self.apply(if retried { Command::Retried(Box::new(command)) } else { command }, line)
    }

    /// Up or down to a level.
    fn level(&self, line: &Line<'_>) -> level::Command {
        let to = FeatureLevel(line.number(line.word(1)));
        if to > self.state.level() {
            level::Command::Raise { to, heard: Vec::new() }
        } else {
            level::Command::Pin { level: to, by: String::new() }
        }
    }

    /// A command to the scheduler, with the orders that it gives. The books must balance after it.
    fn ray(&mut self, line: &Line<'_>) -> String {
        if self.state.level() == level::FIRST {
            let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
            self.apply(Command::Level(raise), line);
        }
        let ray = self.state.ray(self.job);
        let command = ray::command(self.scope(line), ray, TimeMs(self.now), line);
        let said = self.apply(Command::Ray(command), line);
        let Some(ray) = self.state.ray(self.job) else { return said };
        ray.check().unwrap_or_else(|problem| panic!("{}: {problem}", line.place()));
        let said = said.replace(&format!("  DomainChanged {{ domain: Ray, job: {} }}\n", self.job), "");
        let told = ray::told(ray, self.orders, said.trim_end()) + "\n";
        if let Some((last, _)) = ray.orders(None, usize::MAX).last() {
            self.orders = self.orders.max(OrderId(last.0 + 1));
        }
        told
    }

    /// A command to a scheduler of MindSpore. Whatever it changes, somebody is told.
    fn mindspore(&mut self, line: &Line<'_>) -> String {
        if self.state.level() == level::FIRST {
            let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
            self.apply(Command::Level(raise), line);
        }
        // All but the first record, which tells the time.
        let before: Vec<_> = self.state.records().skip(1).collect();
        let command = mindspore::command(self.scope(line), &self.state, line);
        let said = self.apply(Command::Mindspore(command), line);
        let changed = format!("  DomainChanged {{ domain: Mindspore, job: {} }}\n", self.job);
        let is_told = said.contains(&changed);
        assert!(is_told || before.into_iter().eq(self.state.records().skip(1)), "{}: unheard", line.place());
        said.replace(&changed, "")
    }

    /// A command to sessions, or `m-work`: what the scheduler has is executed, a task at a time, by whichever worker is given
    /// it. `most`: so many; `fail`: the tasks that fail, with `text`. `m-due`: what is due is proposed.
    fn mars(&mut self, line: &Line<'_>) -> String {
        if self.state.level() == level::FIRST {
            let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
            self.apply(Command::Level(raise), line);
        }
        let scope = self.scope(line);
        let said = match line.word(0) {
            "m-work" => self.work(scope, line),
            "m-due" => {
                let due = self.state.mars_due(scope.job, TimeMs(self.now));
                let mut said = format!("due {}\n", show::plain(&due));
                for decision in due {
                    said += &self
                        .apply(Command::Mars(tripod_state::mars::Command::Lead { scope, decision }), line);
                }
                said
            }
            _ => self.apply(Command::Mars(mars::command(scope, &self.state, line)), line),
        };
        let Some(ray) = self.state.ray(scope.job) else { return said };
        ray.check().unwrap_or_else(|problem| panic!("{}: {problem}", line.place()));
        let mars = format!("  DomainChanged {{ domain: Mars, job: {} }}\n", scope.job);
        said.replace(&mars, "").replace(&mars.replace("Mars", "Ray"), "")
    }

    fn work(&mut self, scope: Scope, line: &Line<'_>) -> String {
        let mut said = "worked".to_owned();
        for _ in 0..line.or("most", 10_000) {
            let Some((command, run, worker)) = mars::plan(scope, &self.state, self.now) else { break };
            self.apply(Command::Ray(command), line);
            let failing = line.option("fail").unwrap_or("").split(',');
            let text = line.option("text").unwrap_or("it_failed");
            let error = |key: &str| failing.clone().any(|failing| failing == key).then(|| text.to_owned());
            let Some((key, commands)) = mars::report(scope, &self.state, (run, worker), error) else { break };
            write!(said, " {key}").expect("a string takes all");
            for command in commands {
                self.apply(Command::Ray(command), line);
            }
        }
        said + "\n"
    }

    fn apply(&mut self, command: Command, line: &Line<'_>) -> String {
        self.index += 1;
        let stamp = line.option("stamp").map(|stamp| {
            let (session, numbers) = stamp.split_once('/').expect("SESSION/SEQUENCE/ACKNOWLEDGED");
            let numbers: Vec<u64> = numbers.split('/').map(|part| line.number(part)).collect();
            Stamp {
                session: commands::session_id(line, session),
                sequence: Sequence(numbers[0]),
                acknowledged_below: Sequence(numbers[1]),
            }
        });
        let context = ApplyContext {
            index: LogIndex(self.index),
            term: Term(1 + self.elections),
            now_ms: TimeMs(self.now),
        };
        let command = match line.option("who") {
            Some(path) => command.by(Identity::of_path(path).unwrap_or_else(|| line.unknown())),
            None => command,
        };
        let outcome = self.state.apply(&context, Envelope { stamp, command });
        let mut said = match outcome.reply {
            Ok(Answer::Waiting(ticket)) => self.wait(ticket),
            reply => {
                if let Ok(Answer::Job(job)) = &reply {
                    self.job = job.id;
                    self.orders = OrderId::default();
                }
                show::reply(&reply)
            }
        };
        said.push('\n');
        self.topics = outcome.effects.iter().filter_map(Effect::topic).collect();
        for effect in outcome.effects {
            writeln!(said, "  {}", show::plain(&effect)).expect("a string takes all");
        }
        said
    }

    fn wait(&mut self, ticket: Ticket) -> String {
        self.calls += 1;
        self.waiting.insert(self.calls, ticket);
        format!("waits #{}", self.calls)
    }

    /// Lines that only look.
    fn read(&mut self, line: &Line<'_>) -> Option<String> {
        let scope = self.scope(line);
        if line.word(0) == "elected" {
            self.elections += 1;
            return Some("elected".to_owned());
        }
        Some(match line.word(0) {
            "beat" => return self.beat(line),
            "get" => show::plain(&self.state.get(scope, &line.text(1))),
            "wait" => self.wait(Ticket::Key { scope, asked: line.text(1) }),
            "watch" => self.wait(Ticket::Tasks { scope, seen: TaskVersion(line.or("seen", -1)) }),
            "tasks" => show::plain(&self.state.tasks(scope, &line.tasks("of"))),
            "directory" => keys(self.state.directory(scope, &line.text(1))),
            "list" => {
                let after = line.option("after").map(Key::from);
                keys(self.state.list(scope, &line.text(1), after.as_ref(), line.or("limit", 10)))
            }
            "runtime-get" => match self.state.runtime_value(scope, &commands::bytes(line, 1)) {
                Ok(Answer::Waiting(ticket)) => self.wait(ticket),
                reply => show::reply(&reply),
            },
            "barriers" => barriers(self.state.barriers(scope, line.or("limit", 10))),
            "gatherings" => match self.state.gatherings(scope, line.or("limit", 10)) {
                Ok(open) if open.is_empty() => "none".to_owned(),
                Ok(open) => open.iter().map(show::plain).collect::<Vec<_>>().join("\n"),
                Err(fault) => show::plain(&fault),
            },
            "floor?" => show::plain(self.state.floor()),
            "jobs-waiting" => show::plain(&self.state.jobs_waiting(TimeMs(line.or("before", 0)))),
            "job" => show::plain(&self.state.job(self.job)),
            "silence" => {
                let incarnation = Incarnation(line.or("incarnation", 0));
                let told = line.option("told").map(|ms| DurationMs(line.number(ms)));
                show::plain(&self.state.silence(self.job, line.task(1), incarnation, told))
            }
            "process" => {
                let incarnation = Incarnation(line.or("incarnation", 0));
                show::plain(&self.state.process(self.job, line.task(1), incarnation))
            }
            "ended?" => {
                let incarnation = Incarnation(line.or("incarnation", 0));
                show::plain(&self.state.end_of(self.job, line.task(1), incarnation))
            }
            "standing" => {
                let tasks = line.tasks("of").into_iter();
                let word = |task| self.state.standing(self.job, task).map_or("no job", task::Standing::word);
                tasks.map(|task| format!("{task} {}", word(task))).collect::<Vec<_>>().join(", ")
            }
            // Of the job, also of one that is gone; `cluster`: the cluster's own.
            "events" => events::look(&self.state, self.state.job_with_events(line.word(1)), line.word(1)),
            "slots" => show::plain(&self.state.job_slots()),
            "members" => show::plain(&self.state.members()),
            "untold" => show::plain(&self.state.untold()),
            "tokens?" => token::look(&self.state, TimeMs(self.now)),
            verb if verb.starts_with("ray-") => {
                return ray::look(self.state.ray(self.job)?, self.state.now_ms(), line);
            }
            verb if verb.starts_with("topo") || verb.starts_with("ps") => {
                return mindspore::look(scope, &self.state, line);
            }
            verb if verb.starts_with("m?") => return mars::look(scope, &self.state, self.now, line),
            "timers" => {
                let connected = self.state.connected_tasks();
                show::plain(&(connected, self.state.open_barriers()))
            }
            _ => return None,
        })
    }

    /// A heartbeat as the leader treats it: a verdict, which may be a command to propose.
    fn beat(&mut self, line: &Line<'_>) -> Option<String> {
        let incarnation = Incarnation(line.or("incarnation", 0));
        let beat = self.state.heartbeat(self.scope(line), line.task(1), incarnation, TimeMs(self.now));
        Some(match beat {
            Beat::Propose(command) => {
                let said = self.apply(Command::Task(command), line);
                format!("proposed, then {}", said.trim_end())
            }
            verdict => show::plain(&verdict),
        })
    }

    fn scope(&self, line: &Line<'_>) -> Scope {
        let job = line.get("job").map_or(self.job, JobId);
        Scope { job, service: line.get("service").map(ServiceIncarnation) }
    }

    /// Whatever happens, a snapshot holds it.
    fn check_snapshot(&self, place: &str) {
        let restored =
            State::from_records(self.state.records()).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(restored == self.state, "{place}: the snapshot differs");
        assert_eq!(restored.digest(), self.state.digest(), "{place}");
    }
}

/// One line for each place at which tasks wait, or waited in vain.
fn barriers(reports: Result<Vec<barrier::Report>, tripod_state::Fault>) -> String {
    match reports {
        Ok(reports) if reports.is_empty() => "none".to_owned(),
        Ok(reports) => reports.iter().map(show::plain).collect::<Vec<_>>().join("\n"),
        Err(fault) => show::plain(&fault),
    }
}

fn keys(entries: Result<Vec<tripod_state::state::Entry>, tripod_state::Fault>) -> String {
    show::plain(&entries.map(|entries| entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>()))
}
