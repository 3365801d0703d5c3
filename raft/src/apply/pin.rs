//! The note that this node is to say that it supports no more than a level. It comes from a command in the log, and
//! is written before any snapshot that covers the command: then it is not in the log any more.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tripod_state::ids::FeatureLevel;

use crate::disk::Files;

const FILE: &str = "level-pin";
const TEMPORARY: &str = "level-pin.tmp";
/// More than a number has digits.
const BYTES_MAX: usize = 32;

/// The place of the note.
#[derive(Clone)]
pub(crate) struct PinNote {
    files: Arc<dyn Files>,
}

impl PinNote {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }

    /// What the note says; `None` if there is none. Blocks.
    pub(crate) fn read(&self) -> io::Result<Option<FeatureLevel>> {
        if !self.files.list()?.iter().any(|name| name == FILE) {
            return Ok(None);
        }
        let mut text = [0; BYTES_MAX];
        let length = self.files.open(FILE)?.read_at(0, &mut text)?;
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        let level = text.trim().parse().map_err(|_| {
            let problem = format!("{}/{FILE} says {text:?}, which is no feature level", self.files.place());
            io::Error::new(ErrorKind::InvalidData, problem)
        })?;
        Ok(Some(FeatureLevel(level)))
    }

    /// Has the note say this, durably. Blocks.
    pub(crate) fn keep(&self, pin: Option<FeatureLevel>) -> io::Result<()> {
        if self.read()? == pin {
            return Ok(());
        }
        let Some(level) = pin else {
            self.files.remove(FILE)?;
            return self.files.sync_dir();
        };
        let file = self.files.create(TEMPORARY)?;
        file.write_at(0, format!("{level}\n").as_bytes())?;
        file.sync_data()?;
        self.files.rename(TEMPORARY, FILE)?;
        self.files.sync_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealFiles;

    #[test]
    fn a_pin_is_kept_replaced_and_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let note = || PinNote::new(Arc::new(RealFiles::open(directory.path()).unwrap()));
        assert_eq!(note().read().unwrap(), None);
        note().keep(None).unwrap();
        for level in [1, 2] {
            note().keep(Some(FeatureLevel(level))).unwrap();
            assert_eq!(note().read().unwrap(), Some(FeatureLevel(level)));
        }
        note().keep(None).unwrap();
        assert_eq!(note().read().unwrap(), None);
        std::fs::write(directory.path().join(FILE), "two").unwrap();
        assert!(note().read().unwrap_err().to_string().contains("no feature level"));
    }
}
