//! Lines of the audit log for what only the log of the process tells: connections that TLS refused, and new certificates. They are
//! written as they are logged, so an address that comes again and again has one a minute; and also if `TRIPOD_LOG` has them not
//! logged.

use std::fmt;
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tripod_audit::{Auditor, Change, Outcome, Record};
use tripod_proto::code::Code;

/// Where such lines end.
static AUDITOR: OnceLock<Auditor> = OnceLock::new();
/// Whose events these are.
const TARGET: &str = "tripod_tls";
/// What certificates that were taken are logged as.
const TAKEN: &str = "new certificates taken";

/// From now on such lines are written there. The first word counts.
pub(crate) fn audit(auditor: &Auditor) {
    let _ = AUDITOR.set(auditor.clone());
}

/// Looks at every event that may make a line, whatever others look at.
pub(super) fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    Layer::<S>::with_filter(Audited, Targets::new().with_target(TARGET, LevelFilter::INFO))
}

struct Audited;

/// The fields of an event that make a line.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    code: String,
    outcome: String,
    from: String,
    port: String,
    why: String,
    fault: String,
    serial: String,
}

impl Fields {
    fn place(&mut self, field: &Field) -> Option<&mut String> {
        Some(match field.name() {
            "message" => &mut self.message,
            "code" => &mut self.code,
            "outcome" => &mut self.outcome,
            "from" => &mut self.from,
            "port" => &mut self.port,
            "why" => &mut self.why,
            "fault" => &mut self.fault,
            "serial" => &mut self.serial,
            _ => return None,
        })
    }

    /// The line of this event; `None`: it has none.
    fn record(&self) -> Option<Record> {
        let is = |code: Code| self.code == format!("T{}", code.number());
        if is(Code::TlsHandshake) {
            let resource = format!("{} port: {}", self.port, self.why);
            return Some(Record {
                from: self.from.as_str().into(),
                resource: resource.as_str().into(),
                outcome: Outcome::Refused,
                reason: self.outcome.as_str().into(),
                ..Record::default()
            });
        }
        let reloaded = |resource: &str, outcome| Record {
            change: Some(Change::Reloaded),
            resource: resource.into(),
            outcome,
            ..Record::default()
        };
        if is(Code::TlsReload) {
            return Some(reloaded(&self.fault, Outcome::Failed));
        }
        (self.message == TAKEN).then(|| reloaded(&format!("certificate {}", self.serial), Outcome::Done))
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if let Some(place) = self.place(field) {
            value.clone_into(place);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if let Some(place) = self.place(field) {
            *place = format!("{value:?}");
        }
    }
}

impl<S: Subscriber> Layer<S> for Audited {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with(TARGET) {
            return;
        }
        let Some(auditor) = AUDITOR.get() else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(record) = fields.record() {
            auditor.tell(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(code: &str, message: &str) -> Fields {
        let text = str::to_owned;
        Fields { code: text(code), message: text(message), from: text("10.0.0.7"), ..Fields::default() }
    }

    #[test]
    fn refused_connections_and_new_certificates_have_lines() {
        let refused = Fields {
            outcome: "unknown_ca".to_owned(),
            ..fields("T1515", "a connection was not made by TLS")
        };
        let line = refused.record().expect("it has one");
        assert_eq!((line.reason.as_str(), line.from.as_str()), ("unknown_ca", "10.0.0.7"));
        let taken = Fields { serial: "0a".to_owned(), ..fields("", TAKEN) }.record().expect("it has one");
        assert_eq!((taken.change, taken.outcome), (Some(Change::Reloaded), Outcome::Done));
        let failed = fields("T1514", "new certificates not taken").record().expect("it has one");
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(fields("", "something else").record().is_none());
    }
}
