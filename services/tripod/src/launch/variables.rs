//! What the environment of the program says.

use crate::failure::Failure;
use crate::launch::agent::ListenAddresses;
use crate::launch::mindspore::MindsporeEnvironment;
use crate::launch::tf_config::TfConfig;

/// Says which task of its job a program is, to whatever it is written with.
pub(crate) const TASK_VARIABLE: &str = "JAX_PROCESS_ID";

/// What the program has to be told.
#[derive(Debug)]
pub(crate) struct ProgramEnvironment<'a> {
    pub(crate) addresses: &'a ListenAddresses,
    pub(crate) tasks: u32,
    pub(crate) task: u32,
    /// The user's own answer to whether calls wait for a connection.
    pub(crate) fail_fast: Option<String>,
    /// The user's `TF_CONFIG`, and the job that the coordinator becomes in it.
    pub(crate) tf_config: Option<(TfConfig, &'a str)>,
    /// What a program of MindSpore is told besides.
    pub(crate) mindspore: Option<MindsporeEnvironment>,
}

impl ProgramEnvironment<'_> {
    /// The variables to set.
    ///
    /// # Errors
    /// As [`TfConfig::with_coordinator`].
    pub(crate) fn variables(self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut variables = vec![
            ("JAX_COORDINATOR_ADDRESS", self.addresses.for_jax()),
            // Process 0 starts a service of its own, whatever it is told. Nobody calls it there.
            ("JAX_COORDINATOR_BIND_ADDRESS", "127.0.0.1:0".to_owned()),
            ("JAX_NUM_PROCESSES", self.tasks.to_string()),
            (TASK_VARIABLE, self.task.to_string()),
        ];
        if self.fail_fast.is_none() {
            // Calls wait while the agent is started again.
            variables.push(("GRPC_FAIL_FAST", "false".to_owned()));
        }
        if let Some((config, job)) = self.tf_config {
            variables.push(("TF_CONFIG", config.with_coordinator(job, &self.addresses.ordinary)?));
        }
        variables.extend(self.mindspore.into_iter().flat_map(MindsporeEnvironment::variables));
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(addresses: &ListenAddresses) -> ProgramEnvironment<'_> {
        ProgramEnvironment { addresses, tasks: 3, task: 1, fail_fast: None, tf_config: None, mindspore: None }
    }

    fn addresses() -> ListenAddresses {
        ListenAddresses { ordinary: "127.0.0.1:7790".into(), beside_a_service: None, mindspore: None }
    }

    #[test]
    fn a_jax_program_is_told_four_things() {
        let expected = [
            ("JAX_COORDINATOR_ADDRESS", "127.0.0.1:7790"),
            ("JAX_COORDINATOR_BIND_ADDRESS", "127.0.0.1:0"),
            ("JAX_NUM_PROCESSES", "3"),
            ("JAX_PROCESS_ID", "1"),
            ("GRPC_FAIL_FAST", "false"),
        ];
        let addresses = addresses();
        let variables = told(&addresses).variables().expect("nothing to refuse");
        assert_eq!(variables, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn what_the_user_said_of_waiting_calls_is_kept() {
        let addresses = addresses();
        let variables = ProgramEnvironment { fail_fast: Some("true".into()), ..told(&addresses) }.variables();
        assert!(variables.expect("legal").iter().all(|(name, _)| *name != "GRPC_FAIL_FAST"));
    }

    #[test]
    fn tensorflow_finds_the_agent_in_its_own_configuration() {
        let config = TfConfig::parse(r#"{"cluster":{"worker":["a:1"]}}"#).expect("legal");
        let addresses = ListenAddresses { beside_a_service: Some("[::1]:7791".into()), ..addresses() };
        let variables =
            ProgramEnvironment { tf_config: Some((config, "ps")), ..told(&addresses) }.variables();
        let variables = variables.expect("legal");
        let (_, value) = variables.iter().find(|(name, _)| *name == "TF_CONFIG").expect("set");
        assert!(value.contains(r#""ps":["127.0.0.1:7790"]"#), "{value}");
        assert_eq!(variables[0].1, "[::]:7791");
    }
}
