//! The values of the metrics.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use tripod_gateway::{HistogramView, Measures, Role, Status, TurnCounts};
use tripod_local::Connections;
use tripod_port::{Budget, StreamTally};
use tripod_tls::{Outcome, Port, Tls};

use super::catalogue::{self as all, Kind, Metric};
use super::census::Census;
use super::process::Process;

/// Everything that the page shows, as it is at one moment.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) ready: bool,
    pub(super) status: Status,
    pub(super) measures: Measures,
    pub(super) waiting_calls: u64,
    pub(super) held_calls: u64,
    pub(super) held_calls_total: u64,
    pub(super) turns: TurnCounts,
    pub(super) connections: Connections,
    pub(super) memory: Budget,
    pub(super) streams: StreamTally,
    pub(super) tls: Option<Tls>,
    pub(super) insecure: bool,
    pub(super) census: Census,
    pub(super) process: Process,
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page { encoder };
        self.leadership(&mut page)?;
        self.log(&mut page)?;
        self.stages(&mut page)?;
        self.disk(&mut page)?;
        self.snapshots(&mut page)?;
        self.state(&mut page)?;
        self.streams(&mut page)?;
        self.scheduler(&mut page)?;
        self.process(&mut page)
    }
}

impl Figures {
    fn leadership(&self, page: &mut Page<'_>) -> fmt::Result {
        let (status, elections) = (&self.status, &self.measures.elections);
        page.gauge(&all::READY, u64::from(self.ready))?;
        page.gauge(&all::DRAINED, u64::from(self.census.drained))?;
        page.gauge(&all::LEADER, u64::from(status.role == Role::Leader))?;
        page.gauge(&all::LEADER_KNOWN, u64::from(status.leader.is_some()))?;
        page.gauge(&all::TERM, status.term.0)?;
        page.counter(&all::LEADER_CHANGES, elections.leader_changes)?;
        page.counter(&all::ELECTIONS, elections.stood)?;
        let given_up = status.given_up;
        let reasons = [("disk-stalled", given_up.disk_stalled), ("no-quorum", given_up.no_quorum)];
        page.counters(&all::GAVE_UP, reasons)?;
        let voters = status.members.iter().filter(|member| member.voter).count();
        page.gauge(&all::VOTERS, voters as u64)?;
        page.gauge(&all::LEARNERS, (status.members.len() - voters) as u64)?;
        page.gauge(&all::CHANGE, u64::from(self.census.change_under_way))
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
        page.gauges(&all::PEER_SILENCE, heard.map(|(node, ago)| (node.0, ago.as_secs_f64())))
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
        page.gauge(&all::COMPARED, comparisons.last.0)?;
        page.counter(&all::DIVERGED, comparisons.diverged)
    }

    fn state(&self, page: &mut Page<'_>) -> fmt::Result {
        let census = &self.census;
        page.gauge(&all::WAITING, self.waiting_calls)?;
        page.gauge(&all::HELD, self.held_calls)?;
        page.counter(&all::HELD_TOTAL, self.held_calls_total)?;
        page.gauge(&all::TURNS_WAITING, self.turns.waiting)?;
        page.counter(&all::TURNS_WAITED, self.turns.waited_total)?;
        page.counter(&all::TURNS_REFUSED, self.turns.refused_total)?;
        page.gauge(&all::CONNECTIONS, self.connections.count() as u64)?;
        page.gauge(&all::CONNECTIONS_MAX, self.connections.limits().all as u64)?;
        page.counter(&all::CONNECTIONS_REFUSED, self.connections.refused())?;
        self.tls(page)?;
        page.gauge(&all::CLIENT_BYTES, self.memory.held())?;
        page.gauge(&all::CLIENT_LIMIT, self.memory.limits().all)?;
        page.counter(&all::CLIENT_BYTES_REFUSED, self.memory.refused())?;
        page.gauge(&all::SESSIONS, census.sessions)?;
        page.gauge(&all::JOBS, census.jobs)?;
        let tasks = [("connected", census.tasks_connected), ("error", census.tasks_in_error)];
        page.gauges(&all::TASKS, tasks)?;
        page.gauge(&all::BARRIERS, census.barriers_open)?;
        page.gauge(&all::KEYS, census.keys)?;
        page.gauge(&all::KEY_BYTES, census.key_bytes)?;
        page.gauge(&all::STATE_BYTES, census.state_bytes)?;
        page.gauge(&all::JOB_BYTES_LARGEST, census.largest_job_bytes)
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
        page.gauge(&all::INSECURE, u64::from(self.insecure))
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
        Ok(())
    }
}

/// Ends of names that are units by the library's word.
static UNITS: [(&str, Unit); 2] = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];

/// Writes metrics as the catalogue describes them.
struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    /// The head of a metric. The library puts unit and `_total` behind the name again.
    fn head(&mut self, metric: &'static Metric) -> Result<MetricEncoder<'_>, fmt::Error> {
        let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let unit = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, unit)));
        let kind = match metric.kind {
            Kind::Gauge => MetricType::Gauge,
            Kind::Counter => MetricType::Counter,
            Kind::Histogram => MetricType::Histogram,
        };
        match unit {
            Some((name, unit)) => self.encoder.encode_descriptor(name, metric.help, Some(unit), kind),
            None => self.encoder.encode_descriptor(name, metric.help, None, kind),
        }
    }

    fn gauge(&mut self, metric: &'static Metric, value: u64) -> fmt::Result {
        self.head(metric)?.encode_gauge(&value)
    }

    fn fraction(&mut self, metric: &'static Metric, value: f64) -> fmt::Result {
        self.head(metric)?.encode_gauge(&value)
    }

    fn counter(&mut self, metric: &'static Metric, value: u64) -> fmt::Result {
        self.head(metric)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn seconds(&mut self, metric: &'static Metric, value: f64) -> fmt::Result {
        self.head(metric)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// One value for each value of the metric's label.
    fn gauges<L: fmt::Display, V: EncodeGaugeValue>(
        &mut self,
        metric: &'static Metric,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut encoder = self.head(metric)?;
        for (label, value) in values {
            encoder.encode_family(&labels(metric, &label))?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counters<L: fmt::Display>(
        &mut self,
        metric: &'static Metric,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.head(metric)?;
        for (label, value) in values {
            let labels = labels(metric, &label);
            encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    fn histogram(&mut self, metric: &'static Metric, view: &HistogramView) -> fmt::Result {
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        // The library adds up what it is given.
        for (bound, count) in view.cumulative() {
            buckets.push((bound.as_secs_f64(), count - below));
            below = count;
        }
        buckets.push((f64::INFINITY, view.count() - below));
        self.head(metric)?.encode_histogram::<NoLabelSet>(
            view.sum.as_secs_f64(),
            view.count(),
            &buckets,
            None,
        )
    }
}

fn labels(metric: &'static Metric, value: &impl fmt::Display) -> [(&'static str, String); 1] {
    [(metric.label.expect("a metric with values by label has one"), value.to_string())]
}
