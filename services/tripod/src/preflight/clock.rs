//! This machine's clock against that of nodes that run. Every answer over HTTP tells the time, to the second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tripod_client::{Client, Config};

use super::{Check, Plan, Verdict};

/// How long all nodes together may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// An answer tells whole seconds, and is under way for a moment.
const EXACT_S: i64 = 1;
/// Beyond this somebody's clock is wrong. The cluster is not harmed by it (its time is the leader's, and never runs
/// backwards), but times in logs and listings are.
const APART_S: i64 = 5;
/// The head of an answer is far shorter.
const HEAD_BYTES_MAX: usize = 4096;

pub(super) async fn check(plan: &Plan) -> Check {
    let named: &[String] = if plan.join.is_empty() { &plan.endpoints } else { &plan.join };
    let asked = timeout(PATIENCE, farthest(named.to_vec())).await;
    match asked.ok().flatten() {
        Some((node, apart_s)) => judge(node, apart_s),
        None => Check::new("clock", Verdict::Ok, "not compared: no node of the cluster answers yet"),
    }
}

fn judge(node: u64, apart_s: i64) -> Check {
    let found = match apart_s.abs() {
        0..=EXACT_S => format!("as node {node}'s, to the second"),
        seconds => format!("{seconds} s {} node {node}'s", if apart_s > 0 { "ahead of" } else { "behind" }),
    };
    let verdict = if apart_s.abs() > APART_S { Verdict::Warn } else { Verdict::Ok };
    let check = Check::new("clock", verdict, found).figure("ahead_s", apart_s);
    if verdict == Verdict::Ok {
        return check;
    }
    check.next("set the clocks by a time service (`timedatectl` shows whether one runs)")
}

/// The node whose clock is farthest from this machine's, and by how many seconds this one is ahead of it.
async fn farthest(endpoints: Vec<String>) -> Option<(u64, i64)> {
    let client = Client::new(&Config::new(endpoints)).ok()?;
    let answers = client.status(PATIENCE / 2, false).await;
    let members =
        answers.into_iter().filter_map(|answer| answer.status.ok()).flat_map(|status| status.members);
    let mut told: Vec<(u64, String)> = members
        .filter(|member| !member.http_address.is_empty())
        .map(|member| (member.node_id, member.http_address))
        .collect();
    told.sort();
    told.dedup();
    let mut asked = tokio::task::JoinSet::new();
    for (node, address) in told {
        asked.spawn(async move {
            let theirs = timeout(PATIENCE / 2, time_of(&address)).await.ok()??;
            Some((node, now_s() - theirs))
        });
    }
    asked.join_all().await.into_iter().flatten().max_by_key(|(_, apart_s)| apart_s.abs())
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// The time that an HTTP server says it is, in seconds since 1970.
async fn time_of(address: &str) -> Option<i64> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("HEAD /livez HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut head = Vec::new();
    let mut bytes = stream.take(HEAD_BYTES_MAX as u64);
    bytes.read_to_end(&mut head).await.ok()?;
    date(&String::from_utf8_lossy(&head))
}

/// The `date` in the head of an answer (RFC 9110, section 5.6.7), in seconds since 1970.
fn date(head: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let value = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then_some(value.trim())
    })?;
    let words: Vec<&str> = value.split([' ', ':']).collect();
    let &[_, day, month, year, hour, minute, second, "GMT"] = words.as_slice() else { return None };
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| (0..=9999).contains(number));
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()?;
    let days = days_since_1970(number(year)?, month + 1, number(day)?);
    Some(((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?)
}

/// Days of the Gregorian calendar. Years are counted from March, so that a leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // March has 31 days, April 30, and so on: 153 in each five months.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_answer_is_read() {
        let of = |value: &str| date(&format!("HTTP/1.1 200 OK\r\nDate: {value}\r\n\r\n"));
        assert_eq!(of("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(of("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(of("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
        for none in ["", "yesterday", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(date("HTTP/1.1 200 OK\r\n\r\n"), None);
    }

    #[test]
    fn clocks_that_are_apart_are_told() {
        assert_eq!(judge(2, 1).verdict, Verdict::Ok);
        let ahead = judge(2, 60);
        assert_eq!((ahead.verdict, ahead.found.as_str()), (Verdict::Warn, "60 s ahead of node 2's"));
        assert_eq!(judge(2, -60).found, "60 s behind node 2's");
    }

    #[tokio::test]
    async fn a_cluster_that_does_not_run_yet_is_no_failure() {
        let check = check(&Plan { endpoints: vec!["127.0.0.1:1".to_owned()], ..Plan::default() }).await;
        assert_eq!((check.verdict, check.figures.len()), (Verdict::Ok, 0), "{check:?}");
    }
}
