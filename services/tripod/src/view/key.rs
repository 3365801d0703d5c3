//! A key as it is printed.

use std::fmt::Write as _;

use serde::Serialize;
use tripod_client::Entry;

use crate::output::Table;

/// A key in JSON. A value that is no UTF-8 text is written in hexadecimal.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeyView {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
    version: u64,
    modified_index: u64,
}

impl KeyView {
    pub(crate) fn of(entry: &Entry) -> Self {
        let text = std::str::from_utf8(&entry.value).ok();
        Self {
            value: text.map(ToOwned::to_owned),
            value_hex: text.is_none().then(|| hex(&entry.value)),
            ..Self::without_value(entry)
        }
    }

    pub(crate) fn without_value(entry: &Entry) -> Self {
        Self {
            key: entry.key.clone(),
            value: None,
            value_hex: None,
            version: entry.version,
            modified_index: entry.modified_index,
        }
    }
}

/// Keys, one a line; values are shortened to what fits a line.
pub(crate) fn list(entries: &[Entry], keys_only: bool) -> String {
    const SHOWN: usize = 60;
    let head: &[&str] =
        if keys_only { &["KEY", "VERSION", "MODIFIED"] } else { &["KEY", "VERSION", "MODIFIED", "VALUE"] };
    let mut table = Table::new(head);
    for entry in entries {
        let mut cells = vec![
            entry.key.escape_debug().to_string(),
            entry.version.to_string(),
            entry.modified_index.to_string(),
        ];
        if !keys_only {
            let text = String::from_utf8_lossy(&entry.value[..entry.value.len().min(4 * SHOWN)]).into_owned();
            let escaped = text.escape_debug().take(SHOWN).collect::<String>();
            cells.push(if escaped.chars().count() < SHOWN { escaped } else { format!("{escaped}...") });
        }
        table.row(cells);
    }
    table.render()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &'static [u8]) -> Entry {
        Entry { key: "a/b".into(), value: value.into(), version: 2, modified_index: 9 }
    }

    #[test]
    fn text_and_bytes_are_told_apart() {
        let text = serde_json::to_string(&KeyView::of(&entry(b"hello"))).expect("JSON");
        assert_eq!(text, r#"{"key":"a/b","value":"hello","version":2,"modified_index":9}"#);
        let bytes = serde_json::to_string(&KeyView::of(&entry(&[0xff, 0x01]))).expect("JSON");
        assert_eq!(bytes, r#"{"key":"a/b","value_hex":"ff01","version":2,"modified_index":9}"#);
    }

    #[test]
    fn a_listing_never_breaks_the_terminal() {
        let text = list(&[entry(b"a\x1b[31m\nb")], false);
        assert!(text.ends_with(r"a\u{1b}[31m\nb"), "{text}");
    }
}
