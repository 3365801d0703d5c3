//! `tripod explain`: what an error code means.

use clap::Args;
use serde::Serialize;
use tripod_proto::code::Code;

use crate::cli::Global;
use crate::failure::{Failure, exit};
use crate::output::{self, Format, Table};
use crate::pages;

const EXAMPLES: &str = "\
Examples:
  tripod explain T3101         what it means, what causes it, how to check, how to mend it
  tripod explain log-damaged   the same
  tripod explain               every code in one line";

/// Flags of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A code as an error prints it: its number, or the word beside it [default: all of them in a list]
    code: Option<String>,
}

/// One code. Fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct CodeView {
    code: String,
    slug: &'static str,
    title: &'static str,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

impl CodeView {
    fn of(code: Code) -> Self {
        Self {
            code: format!("T{}", code.number()),
            slug: code.slug(),
            title: code.title(),
            exit_code: exit(code) as u8,
            page: None,
        }
    }
}

pub(crate) fn run(args: &ExplainArgs, global: &Global) -> Result<(), Failure> {
    let Some(name) = &args.code else { return list(global.format()) };
    let code = pages::named(name).ok_or_else(|| {
        Failure::new(Code::CodeUnknown, format!("there is no code `{name}`; `tripod explain` lists all"))
    })?;
    let page = pages::of(code);
    match global.format() {
        Format::Json => output::json(&CodeView { page: Some(page), ..CodeView::of(code) })?,
        Format::Table => output::line(page.trim_end())?,
    }
    Ok(())
}

fn list(format: Format) -> Result<(), Failure> {
    let views = Code::ALL.iter().copied().map(CodeView::of);
    match format {
        Format::Json => output::json(&views.collect::<Vec<_>>())?,
        Format::Table => {
            let mut table = Table::new(&["CODE", "WORD", "MEANING"]);
            for view in views {
                table.row(vec![view.code, view.slug.to_owned(), view.title.to_owned()]);
            }
            output::line(&table.render())?;
        }
    }
    Ok(())
}
