//! What a command says of its failure.

use serde_json::Value;

/// Standard error of a command as a person would read it. One that was asked for JSON tells its failure as an object,
/// which is a line of text here again.
#[must_use]
pub fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let object = serde_json::from_str::<Value>(line).unwrap_or_default();
    match (object["code"].as_str(), object["slug"].as_str(), object["error"].as_str()) {
        (Some(code), Some(slug), Some(error)) => format!("error: {code} {slug}: {error}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reads_the_same_in_both_forms() {
        let json = br#"{"error":"node 4 is behind","code":"T4306","slug":"member-lagging","exit_code":1}"#;
        assert_eq!(complaint(json), "error: T4306 member-lagging: node 4 is behind");
        assert_eq!(complaint(b"warning: x\n{}\n"), "warning: x\n{}");
    }
}
