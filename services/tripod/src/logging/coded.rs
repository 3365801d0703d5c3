//! Lines of the log about trouble tell its code as a field, so that whoever collects them can count, alarm and look up
//! by it. The crates of a node write codes into their texts, where people see them; here they become fields, in one
//! place for all crates.

use std::fmt;

use tracing::field::{DisplayValue, display};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tripod_proto::code::Code;

/// The name of the field.
const FIELD: &str = "code";

/// How a line is made a field longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// ` code=T3101` behind the other fields.
    Text,
    /// `"code":"T3101"` as the last member of the object.
    Json,
}

/// Writes events as another format does, and the code of warnings and errors behind.
pub(super) struct Coded<F> {
    pub(super) format: F,
    pub(super) ending: Ending,
}

/// What the field holds, for an event that has it: `T3101`, the part of a code that never changes.
pub(crate) fn number(code: Code) -> DisplayValue<String> {
    display(digits(code))
}

fn digits(code: Code) -> String {
    format!("T{}", code.number())
}

impl<S, N, F> FormatEvent<S, N> for Coded<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN || metadata.fields().field(FIELD).is_some() {
            return self.format.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        // A cause is better to know than where it was noticed.
        match Code::find_cause(&line).or_else(|| Code::find(&line)) {
            Some(code) => writer.write_str(&self.ending.put(&line, &digits(code))),
            None => writer.write_str(&line),
        }
    }
}

impl Ending {
    fn put(self, line: &str, code: &str) -> String {
        let whole = line.trim_end_matches('\n');
        match self {
            Self::Text => format!("{whole} {FIELD}={code}\n"),
            Self::Json => match whole.strip_suffix('}') {
                Some(open) => format!("{open},\"{FIELD}\":\"{code}\"}}\n"),
                None => line.to_owned(),
            },
        }
    }
}
