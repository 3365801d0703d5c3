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
