//! A history as lines of JSON: one record a line, so that a file that was cut short still tells most of it.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{Fault, Header, History, Micros, Operation};

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header(Header),
    Fault(Fault),
    TimersRestarted(Micros),
    Operation(Operation),
    Void(String),
}

impl History {
    /// Writes all lines.
    ///
    /// # Errors
    /// When `output` refuses them.
    pub fn write(&self, output: impl Write) -> anyhow::Result<()> {
        let mut output = BufWriter::new(output);
        let mut put = |line: &Line| -> anyhow::Result<()> {
            serde_json::to_writer(&mut output, line)?;
            output.write_all(b"\n")?;
            Ok(())
        };
        put(&Line::Header(self.header.clone()))?;
        if let Some(reason) = &self.void {
            put(&Line::Void(reason.clone()))?;
        }
        for fault in &self.faults {
            put(&Line::Fault(fault.clone()))?;
        }
        for at in &self.timers_restarted {
            put(&Line::TimersRestarted(*at))?;
        }
        for operation in &self.operations {
            put(&Line::Operation(operation.clone()))?;
        }
        output.flush()?;
        Ok(())
    }

    /// Writes all lines to a new file, or over an old one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        self.write(file).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads what [`History::write`] wrote.
    ///
    /// # Errors
    /// At the first line that is none of ours, with its number.
    pub fn read(input: impl BufRead) -> anyhow::Result<Self> {
        let mut history = Self::default();
        for (number, line) in input.lines().enumerate() {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            let line =
                serde_json::from_str(&line).with_context(|| format!("line {} is no record", number + 1))?;
            match line {
                Line::Header(header) => history.header = header,
                Line::Fault(fault) => history.faults.push(fault),
                Line::TimersRestarted(at) => history.timers_restarted.push(at),
                Line::Operation(operation) => history.operations.push(operation),
                Line::Void(reason) => history.void = Some(reason),
            }
        }
        history.operations.sort_by_key(|operation| (operation.invoked, operation.id));
        Ok(history)
    }

    /// Reads a file that [`History::save`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Self::read(BufReader::new(file)).with_context(|| format!("in {}", path.display()))
    }
}
