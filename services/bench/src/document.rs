//! A document whose generated sections stand between markers, so that a run replaces only what it
//! measured, and the words around stay.

use std::path::Path;

use anyhow::Context as _;

use super::Section;

/// Replaces `sections` in the file at `path`.
pub(super) fn update(path: &Path, sections: &[Section]) -> anyhow::Result<()> {
    let mut text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    for section in sections {
        text = replace(&text, section).with_context(|| format!("in {}", path.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn replace(text: &str, section: &Section) -> anyhow::Result<String> {
    let begin = format!("<!-- begin {} -->", section.name);
    let end = format!("<!-- end {} -->", section.name);
    let (head, rest) = text.split_once(&begin).with_context(|| format!("no line `{begin}`"))?;
    let (_, tail) = rest.split_once(&end).with_context(|| format!("no line `{end}` after `{begin}`"))?;
    Ok(format!("{head}{begin}\n\n{}\n\n{end}{tail}", section.markdown.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(markdown: &str) -> Section {
        Section { name: "kv", markdown: markdown.into() }
    }

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let text = "intro\n<!-- begin kv -->\nold\n<!-- end kv -->\nwords\n";
        let new = replace(text, &section("| a |\n")).unwrap();
        assert_eq!(new, "intro\n<!-- begin kv -->\n\n| a |\n\n<!-- end kv -->\nwords\n");
        assert_eq!(replace(&new, &section("| a |")).unwrap(), new, "a second time changes nothing");
    }

    #[test]
    fn a_document_without_the_markers_is_refused() {
        for text in ["", "<!-- end kv -->\n<!-- begin kv -->\n"] {
            let refused = replace(text, &section("x")).unwrap_err();
            assert!(refused.to_string().contains("no line"), "{refused}");
        }
    }
}
