//! Which tests failed, as the runners tell people.

/// Of what cargo-nextest printed: lines like `FAIL [ 0.1s] (1/9) tripod-state::rules members::ids`.
pub(super) fn of_nextest(told: &str) -> Vec<String> {
    distinct(told.lines().filter_map(|line| {
        let (label, rest) = line.trim_start().split_once(" [")?;
        // These two are the runner's own: it ends what still runs when the first test has failed.
        let was_ended = matches!(label, "SIGTERM" | "SIGKILL");
        let failed = label.contains("FAIL") || label.starts_with("SIG") && !was_ended;
        if !failed && !matches!(label, "ABORT" | "TIMEOUT") {
            return None;
        }
        let (_, rest) = rest.split_once("s]")?;
        let rest = rest.trim_start();
        let name = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest);
        Some(name.trim())
    }))
}

/// Of what `cargo test` printed: lines like `test members::ids ... FAILED`.
pub(super) fn of_cargo_test(told: &str) -> Vec<String> {
    distinct(told.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")))
}

/// Whether `cargo test` ran any test: it is content with none.
pub(super) fn some_ran(told: &str) -> bool {
    told.lines().any(|line| {
        line.strip_prefix("running ").is_some_and(|rest| !rest.starts_with("0 ") && rest.contains(" test"))
    })
}

/// Each once, in order: a summary names them again.
fn distinct<'t>(names: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_names_what_failed_crashed_or_did_not_end() {
        let told = "
            Starting 9 tests across 2 binaries
        SLOW [> 60.000s] (───) tripod-state::ray_model the_original
        FAIL [   0.005s] (1/9) tripod-state::rules members::ids
    SIGABRT [   1.105s] (2/9) tripod-raft journal::tests::crash
    SIGTERM [   0.300s] (4/9) tripod-state::rules ended_with_the_first_failure
     TIMEOUT [ 300.009s] tripod-gateway::gateway waiting::wakes
        PASS [   0.005s] (3/9) tripod-state::rules members::others
     Summary [   1.2s] 3 tests run
        FAIL [   0.005s] (1/9) tripod-state::rules members::ids
error: test run failed
";
        let failed = [
            "tripod-state::rules members::ids",
            "tripod-raft journal::tests::crash",
            "tripod-gateway::gateway waiting::wakes",
        ];
        assert_eq!(of_nextest(told), failed);
        assert!(of_nextest("     Summary [   0.1s] 3 tests run: 3 passed").is_empty());
    }

    #[test]
    fn cargo_test_names_what_failed_and_may_have_run_nothing() {
        let told = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        assert_eq!(of_cargo_test(told), ["a::c"]);
        assert!(some_ran(told) && some_ran("running 0 tests\n\nrunning 1 test\n"));
        assert!(!some_ran("running 0 tests\n\nrunning 0 tests\n"));
    }
}
