//! The page in words: for text browsers, for `curl -H 'Accept: text/plain'` and for whoever has no script.

use std::fmt::Write as _;

use serde_json::Value;
use tripod_state::ids::TaskId;

use crate::ui::facts::{RANGES_MAX, ranges};
use crate::ui::frames::Shown;
use crate::ui::letters;

/// The cluster and its jobs.
pub(crate) fn overview(shown: &Shown) -> String {
    let mut text = String::new();
    let cluster = &shown.fields["cluster"];
    let leader =
        cluster["leader"].as_u64().map_or("nobody leads".to_owned(), |node| format!("node {node} leads"));
    line(
        &mut text,
        &format!(
            "cluster {}   {leader}, term {}   told by node {}",
            word(&cluster["id"]),
            cluster["term"],
            cluster["node"]
        ),
    );
    for member in list(&cluster["members"]) {
        let role = if member["voter"] == true { "voter" } else { "learner" };
        let lag = member["lag"].as_u64().map_or(String::new(), |lag| format!("   lag {lag}"));
        let drained = if member["drained"] == true { "   drained" } else { "" };
        line(
            &mut text,
            &format!(
                "  node {:<3} {role:<8} http {}{lag}{drained}",
                member["node"],
                member["http"].as_str().map_or("not known".to_owned(), plain)
            ),
        );
    }
    line(&mut text, "");
    let jobs = list(&shown.fields["jobs"]);
    if jobs.is_empty() {
        line(&mut text, "no jobs");
    }
    for job in jobs {
        let headline = job["headline"]["text"].as_str().map_or("not looked at one by one".to_owned(), plain);
        line(&mut text, &format!("job {}   {} tasks   {headline}", word(&job["name"]), job["tasks"]));
    }
    text
}

/// A job.
pub(crate) fn job(shown: &Shown) -> String {
    let mut text = String::new();
    let (job, headline) = (&shown.fields["job"], &shown.fields["headline"]);
    line(&mut text, &format!("job {}   {} tasks", word(&job["name"]), job["tasks"]));
    line(&mut text, &word(&headline["text"]));
    line(&mut text, "");
    for letter in letters::ALL {
        let tasks = (0..).zip(&shown.states).filter(|(_, one)| **one == letter).map(|(id, _)| TaskId(id));
        let count = shown.states.iter().filter(|one| **one == letter).count();
        if count > 0 {
            let (named, more) = ranges(tasks, RANGES_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            line(&mut text, &format!("{:>8}  {:<13} {named}{more}", count, letters::word(letter)));
        }
    }
    for barrier in list(&shown.fields["barriers"]) {
        line(
            &mut text,
            &format!(
                "open    {}   {} of {} have come; missing {}",
                word(&barrier["name"]),
                barrier["arrived"],
                barrier["arrived"].as_u64().unwrap_or(0) + barrier["missing"].as_u64().unwrap_or(0),
                word(&barrier["missing_tasks"])
            ),
        );
    }
    for barrier in list(&shown.fields["failed"]) {
        line(&mut text, &format!("failed  {}   {}", word(&barrier["name"]), word(&barrier["why"])));
    }
    for trouble in list(&shown.fields["troubles"]) {
        line(&mut text, &format!("task {}   {}", trouble["task"], word(&trouble["text"])));
    }
    text
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> String {
    plain(value.as_str().unwrap_or_default())
}

/// A text of a client's, which must not be an order to a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_plain(letter) { letter } else { '\u{fffd}' }).collect()
}

/// Neither a control character nor one that changes the direction of those behind it.
fn is_plain(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("a text grows");
}
