//! The text of metrics, as the catalogue describes them.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use tripod_gateway::HistogramView;
use tripod_port::TimingsView;

use super::catalogue::{Kind, Metric};

/// Ends of names that are units by the library's word.
static UNITS: [(&str, Unit); 2] = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];

/// Writes metrics as the catalogue describes them.
pub(super) struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

/// Writes the values of one metric, each with its own labels.
pub(super) struct Series<'a> {
    metric: &'static Metric,
    encoder: MetricEncoder<'a>,
}

impl<'a> Page<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self { encoder }
    }

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

    /// A metric whose values `write` writes, which may be none.
    pub(super) fn many(
        &mut self,
        metric: &'static Metric,
        write: impl FnOnce(&mut Series<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.head(metric)?;
        write(&mut Series { metric, encoder })
    }

    pub(super) fn gauge(&mut self, metric: &'static Metric, value: u64) -> fmt::Result {
        self.head(metric)?.encode_gauge(&value)
    }

    pub(super) fn fraction(&mut self, metric: &'static Metric, value: f64) -> fmt::Result {
        self.head(metric)?.encode_gauge(&value)
    }

    /// How long ago something was, if it was.
    pub(super) fn age(&mut self, metric: &'static Metric, age: Option<Duration>) -> fmt::Result {
        age.map_or(Ok(()), |age| self.fraction(metric, age.as_secs_f64()))
    }

    /// What is said by labels alone.
    pub(super) fn info(&mut self, metric: &'static Metric, labels: &[&str]) -> fmt::Result {
        self.many(metric, |series| series.gauge(labels, &1_u64))
    }

    pub(super) fn counter(&mut self, metric: &'static Metric, value: u64) -> fmt::Result {
        self.head(metric)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(super) fn seconds(&mut self, metric: &'static Metric, value: f64) -> fmt::Result {
        self.head(metric)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// One value for each value of the metric's label.
    pub(super) fn gauges<L: fmt::Display, V: EncodeGaugeValue>(
        &mut self,
        metric: &'static Metric,
        values: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        self.many(metric, |series| {
            values.into_iter().try_for_each(|(label, value)| series.gauge(&[&label.to_string()], &value))
        })
    }

    pub(super) fn counters<L: fmt::Display>(
        &mut self,
        metric: &'static Metric,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        self.many(metric, |series| {
            values.into_iter().try_for_each(|(label, value)| series.counter(&[&label.to_string()], value))
        })
    }

    pub(super) fn histogram(&mut self, metric: &'static Metric, view: &HistogramView) -> fmt::Result {
        let buckets = buckets(view.cumulative(), view.count());
        let sum = view.sum.as_secs_f64();
        self.head(metric)?.encode_histogram::<NoLabelSet>(sum, view.count(), &buckets, None)
    }

    pub(super) fn timings(&mut self, metric: &'static Metric, view: &TimingsView) -> fmt::Result {
        let buckets = buckets(view.cumulative(), view.count());
        let sum = view.sum.as_secs_f64();
        self.head(metric)?.encode_histogram::<NoLabelSet>(sum, view.count(), &buckets, None)
    }
}

impl Series<'_> {
    /// Writes a value with the labels of these values, in the catalogue's order.
    fn labelled(
        &mut self,
        values: &[&str],
        write: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let labels = self.metric.label.expect("a metric with values by label has one");
        let labels: Vec<(&str, &str)> = labels.split(',').zip(values.iter().copied()).collect();
        write(self.encoder.encode_family(&labels)?)
    }

    pub(super) fn gauge(&mut self, labels: &[&str], value: &impl EncodeGaugeValue) -> fmt::Result {
        self.labelled(labels, |mut encoder| encoder.encode_gauge(value))
    }

    pub(super) fn counter(&mut self, labels: &[&str], value: u64) -> fmt::Result {
        self.labelled(labels, |mut encoder| encoder.encode_counter::<NoLabelSet, _, u64>(&value, None))
    }

    pub(super) fn timings(&mut self, labels: &[&str], view: &TimingsView) -> fmt::Result {
        let buckets = buckets(view.cumulative(), view.count());
        let sum = view.sum.as_secs_f64();
        self.labelled(labels, |mut encoder| {
            encoder.encode_histogram::<NoLabelSet>(sum, view.count(), &buckets, None)
        })
    }
}

/// How many there are between two bounds, which the library adds up again.
fn buckets(cumulative: impl IntoIterator<Item = (Duration, u64)>, count: u64) -> Vec<(f64, u64)> {
    let mut below = 0;
    let mut buckets = Vec::new();
    for (bound, until) in cumulative {
        buckets.push((bound.as_secs_f64(), until - below));
        below = until;
    }
    buckets.push((f64::INFINITY, count - below));
    buckets
}
