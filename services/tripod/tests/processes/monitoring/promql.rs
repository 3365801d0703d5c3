//! Of expressions only the names of what they ask for.

/// Ends that the series of a histogram have.
const ENDS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The metrics that it asks for, by way of recorded series as well: in the middle of their names stands the metric's.
pub(super) fn metrics(expr: &str) -> Vec<String> {
    let is_ours = |word: &&str| word.starts_with("tripod_") || word.starts_with("process_") || *word == "up";
    let words = names(expr).flat_map(|name| name.split(':')).filter(is_ours);
    let base = |word: &str| {
        let base = ENDS.into_iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        base.to_owned()
    };
    words.map(base).collect()
}

/// The recorded series that it asks for.
pub(super) fn recorded(expr: &str) -> Vec<String> {
    names(expr).filter(|name| name.contains(':')).map(str::to_owned).collect()
}

/// Words outside of texts.
fn names(expr: &str) -> impl Iterator<Item = &str> {
    let outside = expr.split('"').step_by(2);
    let is_apart = |letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':'));
    outside.flat_map(move |part| part.split(is_apart)).filter(|word| !word.is_empty())
}

#[test]
fn names_are_found_wherever_they_stand() {
    let expr = "histogram_quantile(0.99, sum by (le) (rate(tripod_call_seconds_bucket{call=\"tripod_x\"}[5m]))) > 2 * \
                instance:tripod_beat_handling_seconds:p99_5m and on (job) up == 0";
    assert_eq!(metrics(expr), ["tripod_call_seconds", "tripod_beat_handling_seconds", "up"]);
    assert_eq!(recorded(expr), ["instance:tripod_beat_handling_seconds:p99_5m"]);
}
