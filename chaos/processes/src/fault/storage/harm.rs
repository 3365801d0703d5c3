//! Files that are shorter, gone, or another node's.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::flip::Flip;
use super::structure::FileKind;

/// What is done to a file of a stopped node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    Flip(Flip),
    /// Everything from byte `length` on is lost.
    Truncate {
        file: PathBuf,
        length: u64,
    },
    Delete {
        file: PathBuf,
    },
    /// The file is replaced by the one of the same name in the data directory `donor`.
    Replace {
        file: PathBuf,
        donor: PathBuf,
    },
}

impl Harm {
    /// Does it to the data directory `data` of a node that does not run. Blocks.
    ///
    /// # Errors
    /// The file is not there.
    pub fn apply(&self, data: &Path) -> anyhow::Result<()> {
        match self {
            Self::Flip(flip) => flip.apply(data),
            Self::Truncate { file, length } => {
                let file = OpenOptions::new().write(true).open(data.join(file))?;
                file.set_len(*length).with_context(|| format!("{self}"))
            }
            Self::Delete { file } => std::fs::remove_file(data.join(file)).with_context(|| format!("{self}")),
            Self::Replace { file, donor } => {
                std::fs::copy(donor.join(file), data.join(file)).with_context(|| format!("{self}"))?;
                Ok(())
            }
        }
    }

    /// The kind of the file.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        FileKind::of(self.file())
    }

    /// The file, below the data directory.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Flip(flip) => &flip.file,
            Self::Truncate { file, .. } | Self::Delete { file } | Self::Replace { file, .. } => file,
        }
    }

    /// The kind of the damage, for tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Flip(flip) => flip.region.name(),
            Self::Truncate { .. } => "truncated",
            Self::Delete { .. } => "deleted",
            Self::Replace { .. } => "another node's",
        }
    }
}

impl std::fmt::Display for Harm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flip(flip) => flip.fmt(f),
            Self::Truncate { file, length } => write!(f, "{} cut to {length} bytes", file.display()),
            Self::Delete { file } => write!(f, "{} deleted", file.display()),
            Self::Replace { file, donor } => write!(f, "{} taken from {}", file.display(), donor.display()),
        }
    }
}
