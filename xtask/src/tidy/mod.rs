//! Rules about files that no compiler checks. Each rule is a pure function from a file's text to
//! complaints, so that its test can feed it a bad sample.

mod blanks;
mod decisions;
mod length;
mod licence;
pub(crate) mod links;
pub(crate) mod mask;
mod named;
mod paths;
mod purity;
mod summary;
mod walk;

use std::path::Path;

use anyhow::{Result, bail};

/// Checks every text file below `root`. Warnings go to standard error.
///
/// # Errors
/// Every file that breaks a rule, with its line where there is one.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    let files = walk::text_files(root)?;
    for file in &files {
        if file.is_rust() {
            match length::check(&file.text) {
                length::Verdict::Fine => {}
                length::Verdict::Long(lines) => {
                    eprintln!("warning: {}: {lines} lines, more than {}", file.path, length::LINES_SOFT);
                }
                length::Verdict::TooLong(lines) => {
                    wrong.push(format!("{}: {lines} lines, more than {}", file.path, length::LINES_HARD));
                }
            }
        }
        let mut complaints = blanks::check(file);
        complaints.extend(links::check(root, file));
        complaints.extend(named::check(root, file));
        complaints.extend(paths::check(file));
        complaints.extend(purity::check(file));
        complaints.extend(licence::check_manifest(file));
        wrong.extend(complaints.into_iter().map(|complaint| format!("{}:{complaint}", file.path)));
    }
    wrong.extend(decisions::check(root)?);
    wrong.extend(licence::check_texts(root)?);
    wrong.extend(summary::check(root, &files)?);
    wrong.extend(crate::mutants::check(root));
    if !wrong.is_empty() {
        bail!("{} untidy places:\n  {}", wrong.len(), wrong.join("\n  "));
    }
    Ok(())
}
