//! `TF_CONFIG`: the variable that tells TensorFlow's strategies who is in the cluster.
//!
//! A strategy that is told of a job `ps` looks for the coordination service at its task 0, and a strategy
//! that trains on workers alone does not count it among its members. So the coordinator is added as one.

use serde_json::{Value, json};
use tripod_proto::code::Code;
use tripod_state::job::Group;

use crate::args::members::Groups;
use crate::failure::Failure;

/// The jobs whose tasks are members, in the order in which their tasks are numbered.
const MEMBERS: [&str; 2] = ["chief", "worker"];

/// A value of `TF_CONFIG`.
#[derive(Debug, Clone)]
pub(crate) struct TfConfig {
    config: Value,
}

/// What it says of the program's own position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaskPosition {
    pub(crate) tasks: u32,
    pub(crate) task: u32,
}

impl TfConfig {
    /// # Errors
    /// Wrong usage: it is no JSON, or knows no cluster.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let config: Value = serde_json::from_str(text).map_err(|error| {
            Failure::new(Code::TfConfig, format!("TF_CONFIG is no JSON: {error}; mend or unset it"))
        })?;
        if !config["cluster"].is_object() {
            return Err(Failure::new(Code::TfConfig, "TF_CONFIG has no object `cluster`; mend or unset it"));
        }
        Ok(Self { config })
    }

    /// The program's position among the members; `None` if it is not one.
    pub(crate) fn position(&self) -> Option<TaskPosition> {
        let own = self.config["task"]["type"].as_str()?;
        let index = u32::try_from(self.config["task"]["index"].as_u64()?).ok()?;
        let before = MEMBERS.iter().take_while(|name| **name != own).map(|name| self.size(name)).sum::<u32>();
        let member = MEMBERS.contains(&own) && index < self.size(own);
        let tasks = MEMBERS.iter().map(|name| self.size(name)).sum();
        member.then_some(TaskPosition { tasks, task: before + index })
    }

    /// The members' jobs, if they are several: tasks of one alone are known by their numbers.
    pub(crate) fn groups(&self) -> Option<Groups> {
        let groups = MEMBERS.iter().map(|name| Group { name: (*name).to_owned(), tasks: self.size(name) });
        let groups: Vec<_> = groups.filter(|group| group.tasks > 0).collect();
        (groups.len() > 1).then(|| groups.into())
    }

    /// The same with `address` as task 0 of `job`.
    ///
    /// # Errors
    /// Wrong usage: there is such a job already.
    pub(crate) fn with_coordinator(mut self, job: &str, address: &str) -> Result<String, Failure> {
        let cluster = self.config["cluster"].as_object_mut().expect("checked when it was parsed");
        if cluster.contains_key(job) {
            return Err(Failure::new(
                Code::TfConfig,
                format!(
                    "TF_CONFIG has a job `{job}` already; name another one for the coordinator with --tf-job"
                ),
            ));
        }
        cluster.insert(job.to_owned(), json!([address]));
        Ok(self.config.to_string())
    }

    /// How many tasks a job has. They are a list, or an object by index where some are left out.
    fn size(&self, job: &str) -> u32 {
        let size = match &self.config["cluster"][job] {
            Value::Array(tasks) => tasks.len(),
            Value::Object(tasks) => tasks.len(),
            _ => 0,
        };
        u32::try_from(size).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKERS: &str =
        r#"{"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":1},"rpc":7}"#;

    fn parse(text: &str) -> TfConfig {
        TfConfig::parse(text).expect("legal")
    }

    #[test]
    fn the_coordinator_is_added_and_nothing_else_is_changed() {
        let changed = parse(WORKERS).with_coordinator("ps", "127.0.0.1:7790").expect("no ps yet");
        let expected = json!({
            "cluster": { "worker": ["a:1", "b:1"], "ps": ["127.0.0.1:7790"] },
            "task": { "type": "worker", "index": 1 },
            "rpc": 7,
        });
        assert_eq!(serde_json::from_str::<Value>(&changed).expect("JSON"), expected);
    }

    #[test]
    fn a_job_that_is_there_is_not_replaced() {
        let config = parse(r#"{"cluster":{"ps":["a:1"],"worker":["b:1"]}}"#);
        let text = config.with_coordinator("ps", "c:1").expect_err("refused").to_string();
        assert_eq!(
            text,
            "T1106 tf-config: TF_CONFIG has a job `ps` already; name another one for the coordinator with --tf-job"
        );
    }

    #[test]
    fn members_are_numbered_through() {
        let position = |kind: &str, index: u32| {
            let cluster =
                json!({ "chief": ["a:1"], "worker": { "0": "b:1", "1": "c:1" }, "evaluator": ["d:1"] });
            parse(&json!({ "cluster": cluster, "task": { "type": kind, "index": index } }).to_string())
                .position()
        };
        assert_eq!(position("chief", 0), Some(TaskPosition { tasks: 3, task: 0 }));
        assert_eq!(position("worker", 1), Some(TaskPosition { tasks: 3, task: 2 }));
        assert_eq!(position("worker", 2), None, "there are only two");
        assert_eq!(position("evaluator", 0), None, "it takes no part");
        assert_eq!(parse(r#"{"cluster":{}}"#).position(), None);
        let groups = |text: &str| parse(text).groups().map(|groups| groups.to_string());
        assert_eq!(groups(WORKERS), None);
        let chief = r#"{"cluster":{"chief":["a:1"],"ps":["b:1"],"worker":["c:1","d:1"]}}"#;
        assert_eq!(groups(chief).as_deref(), Some("chief:1,worker:2"));
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let refusal = |text: &str| TfConfig::parse(text).expect_err("refused").to_string();
        assert!(refusal("{").starts_with("T1106 tf-config: TF_CONFIG is no JSON: "));
        assert_eq!(refusal("[]"), "T1106 tf-config: TF_CONFIG has no object `cluster`; mend or unset it");
    }
}
