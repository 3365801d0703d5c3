//! Environment variables of ours: settings of a node, and a few that other commands read.

use std::collections::BTreeMap;
use std::ffi::OsString;

use tripod_proto::code::Code;

use crate::settings::{PREFIX, Settings, nearest, variable};

/// Variables that are read elsewhere than as a node's settings.
const OTHERS: &[&str] = &[
    "TRIPOD_CONFIG",
    "TRIPOD_ENDPOINTS",
    "TRIPOD_LOG",
    "TRIPOD_LOG_FORMAT",
    "TRIPOD_JOB",
    "TRIPOD_TASKS",
    "TRIPOD_TASK_ID",
    "TRIPOD_TOKEN_FILE",
    // Of the Python package.
    "TRIPOD_NODE_IP",
    "TRIPOD_TRACEBACK",
];
/// What our own tests say to each other by variables that the nodes inherit.
const OF_TESTS: &[&str] = &[
    "TRIPOD_BIN",
    "TRIPOD_CUTS",
    "TRIPOD_FAULT_",
    "TRIPOD_FLIPS",
    "TRIPOD_PLANT",
    "TRIPOD_SECONDS",
    "TRIPOD_SEED",
    "TRIPOD_TEST_",
    "TRIPOD_UNFLUSHED_",
    "TRIPOD_VALUE_",
    "TRIPOD_WRITE",
];

/// The variables that begin with `TRIPOD_`, and their values. One that is empty is none.
#[derive(Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// This process's own. Names and values that are no UTF-8 are none of ours.
    pub(crate) fn of_this_process() -> Self {
        Self::of(std::env::vars_os())
    }

    pub(crate) fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let ours = variables.filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            (name.starts_with(PREFIX) && !value.is_empty()).then_some((name, value))
        });
        Self(ours.collect())
    }

    /// What the environment says of a setting.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0.get(&variable(key)).map(String::as_str)
    }

    /// A line for every variable that nobody reads, with the one that may have been meant.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let settings = Settings::new();
        let mut known: Vec<String> = settings.keys().map(variable).collect();
        known.extend(OTHERS.iter().map(ToString::to_string));
        let is_unknown =
            |(name, value): &(&String, &String)| !known.contains(name) && !is_for_others(name, value);
        let unknown = self.0.iter().filter(is_unknown).map(|(name, _)| name);
        let warning = |name: &String| {
            // What all begin with would make any two look alike.
            let own = |name: &'_ str| name.trim_start_matches(PREFIX).to_owned();
            let known: Vec<String> = known.iter().map(|name| own(name)).collect();
            let near = nearest(&own(name), known.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean {PREFIX}{near}?"));
            format!("{}: nothing reads the environment variable {name}{near}", Code::ConfigVariable)
        };
        unknown.map(warning).collect()
    }
}

/// Kubernetes sets such variables for every service of a namespace, among which one may be called `tripod`.
fn is_for_others(name: &str, value: &str) -> bool {
    let of_kubernetes = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"].iter().any(|part| name.contains(part));
    of_kubernetes || value.starts_with("tcp://") || OF_TESTS.iter().any(|of_tests| name.starts_with(of_tests))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn a_variable_has_the_name_of_its_setting_and_counts_unless_it_is_empty() {
        let environment =
            environment(&[("TRIPOD_HEARTBEAT_TIMEOUT", "2.5"), ("TRIPOD_NODE", ""), ("DATA", "d")]);
        assert_eq!(environment.value("heartbeat-timeout"), Some("2.5"));
        assert_eq!((environment.value("node"), environment.value("data")), (None, None));
    }

    #[test]
    fn a_variable_that_nobody_reads_is_told_with_the_nearest_one() {
        let told = environment(&[
            ("TRIPOD_HEARTBEAT_TIMOUT", "2.5"),
            ("TRIPOD_ENDPOINT", "a:1"),
            ("TRIPOD_XYZZY", "1"),
            ("TRIPOD_LOG", "debug"),
            ("TRIPOD_DATA", "d"),
            ("TRIPOD_SERVICE_HOST", "10.0.0.1"),
            ("TRIPOD_PORT_7700_TCP", "x"),
            ("TRIPOD_PORT", "tcp://10.0.0.1:7700"),
            ("PATH", "x"),
        ]);
        assert_eq!(
            told.warnings(),
            [
                "T1206 config-variable: nothing reads the environment variable TRIPOD_ENDPOINT; did you mean \
                 TRIPOD_ENDPOINTS?",
                "T1206 config-variable: nothing reads the environment variable TRIPOD_HEARTBEAT_TIMOUT; did you \
                 mean TRIPOD_HEARTBEAT_TIMEOUT?",
                "T1206 config-variable: nothing reads the environment variable TRIPOD_XYZZY",
            ]
        );
    }
}
