//! Every decision record is listed in the index of `docs/decisions/`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const INDEX: &str = "README.md";

/// Complaints about records that the index does not name. A project without records has none.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("docs/decisions");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    for entry in fs::read_dir(&folder).context("cannot list docs/decisions")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != INDEX {
            records.push(name);
        }
    }
    if records.is_empty() {
        return Ok(Vec::new());
    }
    records.sort();
    let index =
        fs::read_to_string(folder.join(INDEX)).context("docs/decisions has records and no README.md")?;
    Ok(unlisted(&index, &records))
}

fn unlisted(index: &str, records: &[String]) -> Vec<String> {
    let missing = records.iter().filter(|record| !index.contains(&format!("({record})")));
    missing.map(|record| format!("docs/decisions/{INDEX} does not link {record}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_must_be_linked() {
        let records = ["001-one.md".to_owned(), "002-two.md".to_owned()];
        assert!(unlisted("[one](001-one.md) [two](002-two.md)", &records).is_empty());
        assert_eq!(unlisted("[one](001-one.md) 002-two.md", &records).len(), 1);
    }
}
