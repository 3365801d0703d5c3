//! How a node connects to what clients name.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use tripod_coordination::push;
use tripod_dial::{Allow, Dialler, Named, Rule};
use tripod_proto::code::Code;
use tripod_state::job;

use super::Config;
use super::announce::host_of;
use crate::logging::number;

/// What a node connects by.
pub(super) fn dialler(config: &Config) -> Dialler {
    if config.dial_allow == Allow::Any {
        tracing::warn!(
            code = number(Code::DialRefused),
            "--dial-allow any: whoever reaches this node can have it connect to everything that it reaches; next: name the \
             networks of workers and object stores instead"
        );
    }
    let host = host_of(&config.client).trim_matches(['[', ']']);
    let here_only = host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    Dialler::new(Rule { allow: config.dial_allow.clone(), flag: "--dial-allow", here_only })
}

/// How tasks are told of errors. Where those of the job `default` listen was said to this node by its operator.
pub(super) fn to_tasks(dialler: Dialler, default_job: &job::Spec) -> push::Connect {
    let known: BTreeSet<String> =
        default_job.listeners.iter().map(|listener| listener.address.clone()).collect();
    Arc::new(move |endpoint| {
        let at = endpoint.uri().authority().map(ToString::to_string).unwrap_or_default();
        let word = if known.contains(&at) { Named::Ordered } else { Named::Unproven };
        let dialler = dialler.clone();
        Box::pin(async move { dialler.connect(endpoint, word).await })
    })
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::net::TcpListener;

    use tripod_state::ids::TaskId;

    use super::*;

    /// Listens at an address of this machine that stands for another one's.
    fn elsewhere() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("bound").to_string();
        (listener, address)
    }

    #[tokio::test]
    async fn a_task_is_called_where_the_operator_said_that_it_listens_and_on_nobody_elses_word() {
        let (task, ordered) = elsewhere();
        let (trap, unproven) = elsewhere();
        let listeners = vec![job::Listener { task: TaskId(0), address: ordered.clone() }];
        let default_job = job::Spec { listeners, ..job::Spec::of_tasks(1) };
        // It has neither address.
        let allow = "10.0.0.0/8".parse().expect("a network");
        let rule = Rule { allow, flag: "--dial-allow", here_only: false };
        let connect = to_tasks(Dialler::new(rule), &default_job);
        let to = |address: &str| connect(format!("http://{address}").parse().expect("an address"));

        let refused = to(&unproven).await.expect_err("nobody ordered it");
        let mut told = vec![refused.to_string()];
        let mut cause = refused.source();
        while let Some(reason) = cause {
            told.push(reason.to_string());
            cause = reason.source();
        }
        assert!(told.iter().any(|text| text.contains("T6305")), "{told:?}");
        assert!(trap.accept().is_err(), "nobody came");

        to(&ordered).await.expect("a connection");
        assert!(task.accept().is_ok(), "somebody came");
    }
}
