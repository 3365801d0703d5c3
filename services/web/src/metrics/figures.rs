//! The values of the metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use tripod_gate::Tally;
use tripod_gateway::{
    BeatCounts, GangCounts, LeaderClock, Measures, Role, StateLimits, Status, TokenTally, TurnCounts,
};
use tripod_local::Connections;
use tripod_port::{Budget, CallCount, CallOutcome, StreamTally};
use tripod_tls::{Outcome, Port, Tls};

use super::catalogue as all;
use super::census::Census;
use super::page::Page;
use super::process::Process;
use super::safety;

/// The labels of calls that are no RPC.
const OTHER: &str = "other";

/// Everything that the page shows, as it is at one moment.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) ready: bool,
    /// Asked of the leader just now; not on the leader.
    pub(super) leader_clock: Option<LeaderClock>,
    pub(super) status: Status,
    pub(super) measures: Measures,
    pub(super) calls: Vec<CallCount>,
    pub(super) beats: BeatCounts,
    pub(super) gangs: GangCounts,
    /// On the leader.
    pub(super) tasks_late: Option<u64>,
    pub(super) backup_age: Option<Duration>,
    pub(super) led_for: Option<Duration>,
    pub(super) snapshot_age: Option<Duration>,
    pub(super) state_limits: StateLimits,
    pub(super) waiting_calls: u64,
    pub(super) held_calls: u64,
    pub(super) held_calls_total: u64,
    pub(super) turns: TurnCounts,
    pub(super) connections: Connections,
    pub(super) memory: Budget,
    pub(super) streams: StreamTally,
    pub(super) tls: Option<Tls>,
    pub(super) authorised: Arc<Tally>,
    pub(super) tokens_refused: TokenTally,
    pub(super) viewers: u64,
    pub(super) insecure: bool,
    pub(super) census: Census,
    pub(super) process: Process,
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page::new(encoder);
        self.leadership(&mut page)?;
        self.log(&mut page)?;
        self.stages(&mut page)?;
        self.disk(&mut page)?;
        self.snapshots(&mut page)?;
        self.calls(&mut page)?;
        self.served(&mut page)?;
        self.jobs(&mut page)?;
        self.state(&mut page)?;
        self.streams(&mut page)?;
        self.scheduler(&mut page)?;
        self.process(&mut page)
    }
}

impl Figures {
    fn leadership(&self, page: &mut Page<'_>) -> fmt::Result {
        let (status, elections) = (&self.status, &self.measures.elections);
        let (version, level) = (env!("CARGO_PKG_VERSION"), tripod_state::level::NEWEST.0.to_string());
        page.info(&all::BUILD_INFO, &[version, &level])?;
        page.info(&all::CLUSTER_INFO, &[&status.cluster_id])?;
        page.gauge(&all::READY, u64::from(self.ready))?;
        page.gauge(&all::DRAINED, u64::from(self.census.drained))?;
        page.gauge(&all::LEADER, u64::from(status.role == Role::Leader))?;
        page.gauge(&all::LEADER_KNOWN, u64::from(status.leader.is_some()))?;
        page.gauge(&all::TERM, status.term.0)?;
        page.counter(&all::LEADER_CHANGES, elections.leader_changes)?;
        page.age(&all::LEADER_SINCE, self.led_for)?;
        page.counter(&all::ELECTIONS, elections.stood)?;
        let given_up = status.given_up;
        let reasons = [("disk-stalled", given_up.disk_stalled), ("no-quorum", given_up.no_quorum)];
        page.counters(&all::GAVE_UP, reasons)?;
        let voters = status.members.iter().filter(|member| member.voter).count();
        page.gauge(&all::VOTERS, voters as u64)?;
        page.gauge(&all::LEARNERS, (status.members.len() - voters) as u64)?;
        page.gauge(&all::CHANGE, u64::from(self.census.change_under_way))?;
        if let Some(safety) = safety::known_by(status, &self.measures, self.census.change_under_way) {
            page.gauge(&all::TOLERANCE, safety.tolerance as u64)?;
            page.gauge(&all::CHANGE_SAFE, u64::from(safety.change_safe))?;
        }
        Ok(())
    }

    fn log(&self, page: &mut Page<'_>) -> fmt::Result {
        let status = &self.status;
        page.gauge(&all::LAST_LOG, status.last_log.0)?;
        page.gauge(&all::COMMITTED, status.committed.0)?;
        page.gauge(&all::APPLIED, status.applied.0)?;
        page.gauge(&all::SNAPSHOT, status.snapshot.0)?;
        page.gauge(&all::PURGED, status.purged.0)?;
        let others = status.members.iter().filter(|member| member.node != status.node);
        let leads = status.role == Role::Leader;
        let lags = others.filter(|_| leads).map(|member| {
            let matched = member.matched.map_or(0, |index| index.0);
            (member.node.0, status.committed.0.saturating_sub(matched))
        });
        page.gauges(&all::PEER_LAG, lags)?;
        let heard = self.measures.heard.iter();
        page.gauges(&all::PEER_SILENCE, heard.map(|(node, ago)| (node.0, ago.as_secs_f64())))?;
        let told = self.leader_clock;
        page.gauges(&all::ROUND_TRIP, told.map(|told| (told.leader.0, told.round_trip.as_secs_f64())))?;
        page.gauges(&all::CLOCK_OFFSET, told.map(|told| (told.leader.0, told.offset_seconds)))
    }

    fn stages(&self, page: &mut Page<'_>) -> fmt::Result {
        let stages = &self.measures.stages;
        page.histogram(&all::QUEUE, &stages.queue)?;
        page.histogram(&all::APPEND, &stages.append)?;
        page.histogram(&all::FLUSH, &stages.flush)?;
        page.histogram(&all::REPLICATE, &stages.replicate)?;
        page.histogram(&all::APPLY, &stages.apply)?;
        page.histogram(&all::REPLY, &stages.reply)?;
        page.gauge(&all::PROPOSALS, self.measures.proposals)?;
        page.gauge(&all::FORWARDING, self.measures.forwarding)
    }

    fn disk(&self, page: &mut Page<'_>) -> fmt::Result {
        let disk = &self.status.disk;
        let p99 = self.measures.flush.p99.unwrap_or(Duration::ZERO);
        page.fraction(&all::FLUSH_P99, p99.as_secs_f64())?;
        page.gauge(&all::DISK_FREE, disk.free_bytes)?;
        page.gauge(&all::DISK_RESERVE, disk.reserve_bytes)?;
        page.gauge(&all::DISK_FULL, u64::from(disk.full))?;
        page.gauge(&all::GROWTH_REFUSED, u64::from(self.status.growth_refused.is_some()))
    }

    fn snapshots(&self, page: &mut Page<'_>) -> fmt::Result {
        let (snapshots, comparisons) = (&self.measures.snapshots, &self.status.comparisons);
        page.counter(&all::SNAPSHOTS_BUILT, snapshots.built)?;
        page.counter(&all::SNAPSHOTS_SENT, snapshots.sent)?;
        page.counter(&all::SNAPSHOTS_INSTALLED, snapshots.installed)?;
        page.age(&all::SNAPSHOT_AGE, self.snapshot_age)?;
        page.age(&all::BACKUP_AGE, self.backup_age)?;
        page.gauge(&all::COMPARED, comparisons.last.0)?;
        page.counter(&all::DIVERGED, comparisons.diverged)
    }

    /// Series of calls appear when the first of them has ended.
    fn calls(&self, page: &mut Page<'_>) -> fmt::Result {
        page.many(&all::CALLS, |series| {
            for count in &self.calls {
                let (dialect, call) = named(count);
                for (outcome, calls) in CallOutcome::ALL.into_iter().zip(count.outcomes) {
                    if calls > 0 {
                        series.counter(&[dialect, &call, outcome.name()], calls)?;
                    }
                }
            }
            Ok(())
        })?;
        for (metric, waits) in [(&all::CALL_TIMES, false), (&all::WAITING_CALL_TIMES, true)] {
            page.many(metric, |series| {
                for count in
                    self.calls.iter().filter(|count| count.rpc.is_some_and(tripod_gate::Rpc::waits) == waits)
                {
                    let (dialect, call) = named(count);
                    series.timings(&[dialect, &call], &count.took)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn served(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge(&all::WAITING, self.waiting_calls)?;
        page.gauge(&all::HELD, self.held_calls)?;
        page.counter(&all::HELD_TOTAL, self.held_calls_total)?;
        page.gauge(&all::TURNS_WAITING, self.turns.waiting)?;
        page.counter(&all::TURNS_WAITED, self.turns.waited_total)?;
        page.counter(&all::TURNS_REFUSED, self.turns.refused_total)?;
        page.gauge(&all::CONNECTIONS, self.connections.count() as u64)?;
        page.gauge(&all::CONNECTIONS_MAX, self.connections.limits().all as u64)?;
        page.counter(&all::CONNECTIONS_REFUSED, self.connections.refused())?;
        page.gauge(&all::UI_VIEWERS, self.viewers)?;
        self.tls(page)?;
        page.counter(&all::AUDIT_LOST, tripod_audit::lost())?;
        page.gauge(&all::CLIENT_BYTES, self.memory.held())?;
        page.gauge(&all::CLIENT_LIMIT, self.memory.limits().all)?;
        page.counter(&all::CLIENT_BYTES_REFUSED, self.memory.refused())?;
        page.gauge(&all::SESSIONS, self.census.sessions)
    }

    fn jobs(&self, page: &mut Page<'_>) -> fmt::Result {
        let (census, gangs) = (&self.census, &self.gangs);
        page.gauge(&all::JOBS, census.jobs)?;
        page.gauge(&all::JOBS_WAITING, census.jobs_waiting)?;
        let tasks = [("connected", census.tasks_connected), ("error", census.tasks_in_error)];
        let late = self.tasks_late.map(|late| ("late", late));
        page.gauges(&all::TASKS, tasks.into_iter().chain(late))?;
        page.counters(&all::TASKS_LOST, gangs.lost.iter().map(|(why, tasks)| (why.name(), *tasks)))?;
        page.counter(&all::BEATS, self.beats.beats)?;
        page.timings(&all::BEAT_HANDLING, &self.beats.handling)?;
        page.gauge(&all::BARRIERS, census.barriers_open)?;
        page.timings(&all::BARRIER_WAITS, &gangs.barrier_waits)?;
        let failed = gangs.barriers_failed.iter().map(|(ending, count)| (ending.name(), *count));
        page.counters(&all::BARRIERS_FAILED, failed)
    }

    fn state(&self, page: &mut Page<'_>) -> fmt::Result {
        let census = &self.census;
        page.gauge(&all::KEYS, census.keys)?;
        page.gauge(&all::KEY_BYTES, census.key_bytes)?;
        page.gauge(&all::STATE_BYTES, census.state_bytes)?;
        page.gauge(&all::STATE_LIMIT, self.state_limits.state_bytes)?;
        page.gauge(&all::JOB_BYTES_LARGEST, census.largest_job_bytes)?;
        page.gauge(&all::JOB_LIMIT, self.state_limits.job_bytes)
    }

    fn tls(&self, page: &mut Page<'_>) -> fmt::Result {
        let tls = self.tls.as_ref();
        let handshakes = |outcome: Outcome| {
            let on = |tls: &Tls| {
                Port::ALL.into_iter().map(|port| tls.handshakes().count(port, outcome)).sum::<u64>()
            };
            (outcome.label(), tls.map_or(0, on))
        };
        page.counters(&all::TLS_HANDSHAKES, Outcome::ALL.into_iter().map(handshakes))?;
        page.gauge(&all::TLS_NOT_AFTER, tls.map_or(0, Tls::not_after))?;
        page.counter(&all::TLS_RELOAD_FAILURES, tls.map_or(0, Tls::reload_failures))?;
        page.gauge(&all::INSECURE, u64::from(self.insecure))?;
        let calls = &self.authorised;
        let outcomes = [
            ("allowed", calls.allowed()),
            ("in_apply", calls.in_apply()),
            ("refused", calls.refused()),
            ("would_refuse", calls.would_refuse()),
        ];
        page.counters(&all::AUTHORISED_CALLS, outcomes)?;
        page.counters(&all::TOKENS_REFUSED, self.tokens_refused.refused())
    }

    fn streams(&self, page: &mut Page<'_>) -> fmt::Result {
        let streams = &self.streams;
        page.gauge(&all::STREAMS, streams.open())?;
        page.counters(&all::STREAMS_ENDED, streams.ended().map(|(end, count)| (end.name(), count)))?;
        page.counter(&all::STREAM_OPS, streams.ops())?;
        page.gauge(&all::STREAM_OPS_WAITING, streams.waiting())?;
        page.counters(&all::STREAM_FRAMES, [("in", streams.frames_in()), ("out", streams.frames_out())])
    }

    fn scheduler(&self, page: &mut Page<'_>) -> fmt::Result {
        let counts = &self.census.scheduler;
        page.gauge(&all::WORKERS, counts.workers)?;
        page.gauge(&all::STORES, counts.stores)?;
        page.gauges(&all::SCHEDULED, [("queued", counts.queued), ("running", counts.running)])?;
        page.gauges(&all::ENDED, [("succeeded", counts.succeeded), ("failed", counts.failed)])?;
        page.gauge(&all::OBJECTS, counts.objects)?;
        page.gauge(&all::ORDERS, counts.orders)
    }

    fn process(&self, page: &mut Page<'_>) -> fmt::Result {
        let process = &self.process;
        if let Some(bytes) = process.memory_bytes {
            page.gauge(&all::MEMORY, bytes)?;
        }
        if let Some(seconds) = process.cpu_seconds {
            page.seconds(&all::CPU, seconds)?;
        }
        if let Some(files) = process.open_fds {
            page.gauge(&all::FDS, files)?;
        }
        if let Some(files) = process.max_fds {
            page.gauge(&all::FDS_MAX, files)?;
        }
        if let Some(seconds) = process.started_seconds {
            page.fraction(&all::STARTED, seconds)?;
        }
        Ok(())
    }
}

/// The words by which a call is labelled. Paths are anybody's text, so those that are no RPC have one word.
fn named(count: &CallCount) -> (&'static str, String) {
    count.rpc.map_or_else(|| (OTHER, OTHER.to_owned()), |rpc| (rpc.dialect(), rpc.call()))
}
