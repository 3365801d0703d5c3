//! Whatever stands behind a flag is taken or refused, and what is taken is the same when it is written and read again.

use std::fmt::Debug;
use std::str::FromStr;

use proptest::prelude::*;

use super::host_port::host_port;
use super::initial::InitialMembers;
use super::members::{Groups, Member};
use super::newcomer::Newcomer;
use super::port_range::PortRange;
use super::seconds::Seconds;

fn again<T: FromStr<Err: Debug> + PartialEq + Debug>(text: &str, write: impl Fn(&T) -> String) {
    if let Ok(read) = text.parse::<T>() {
        let written = write(&read);
        assert_eq!(written.parse::<T>().unwrap(), read, "{written:?}");
    }
}

fn check(text: &str) {
    if let Ok(address) = host_port(text) {
        assert_eq!(host_port(&address), Ok(address.clone()));
    }
    again(text, InitialMembers::to_flag);
    again::<Groups>(text, ToString::to_string);
    again::<Member>(text, ToString::to_string);
    again::<PortRange>(text, ToString::to_string);
    // Longer ones have no milliseconds in a number of 64 bits with a point.
    if text.parse::<Seconds>().is_ok_and(|seconds| seconds.milliseconds() < 1 << 50) {
        again(text, |seconds: &Seconds| seconds.to_flag());
    }
    drop(text.parse::<Newcomer>());
    if let Ok(range) = text.parse::<PortRange>() {
        for slot in [0, range.count() - 1, range.count(), u16::MAX] {
            assert_eq!(range.port(slot).is_some(), slot < range.count(), "{range} {slot}");
        }
    }
    if let Ok(groups) = text.parse::<Groups>() {
        let _ = groups.tasks();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_behind_a_flag_is_too_bad(text in "(\\PC|[0-9a-c:=,.%-]){0,24}") {
        check(&text);
    }

    #[test]
    fn what_looks_right_behind_a_flag_is_taken_or_refused(
        parts in proptest::collection::vec(("[0-9a]{0,6}", "[=:,.-]", "(a|\\[::1\\]|[0-9]{0,20})"), 1..6),
    ) {
        let text: String = parts.into_iter().map(|(first, sign, second)| first + &sign + &second).collect();
        check(&text);
    }
}
