//! `tripod auth`: who may call, for callers without a certificate.

mod bootstrap;
mod floor;
mod token;

use clap::Subcommand;

use crate::cli::Global;
use crate::failure::Failure;

const ABOUT: &str = "\
A token is a text that proves what its bearer is: trp_KIND_ID_SECRET_CRC. It is for callers that cannot hold a
certificate: a notebook, a prolog of Slurm, CI. Where a certificate can be had, use one (`tripod pki --help`).

The first token, on the machine of any node, as the node's user or root:
  tripod auth bootstrap --data /var/lib/tripod --name alice --out alice.token
Then, as that operator:
  export TRIPOD_TOKEN_FILE=alice.token TRIPOD_TLS_DIR=alice
  tripod auth token create agent --job train --lifetime 12h --out train.token
  tripod auth token list
  tripod auth token revoke ID

A token's text is shown once. The cluster keeps a hash of it, so nobody can look it up: who lost one makes another.
A token is given by a file that only its user reads (--token-file or TRIPOD_TOKEN_FILE), never as a flag or a variable,
and is shown to nodes over TLS only.";

/// What to do with tokens, and with the floor.
#[derive(Debug, Subcommand)]
#[command(after_help = ABOUT)]
pub(crate) enum AuthCommand {
    /// Make, list and revoke tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make an operator's token without having one, on the machine of a node
    Bootstrap(bootstrap::BootstrapArgs),
    /// Say how nodes are to be protected at least
    Floor(floor::FloorArgs),
}

impl AuthCommand {
    /// Whether it makes calls of the cluster.
    pub(crate) fn asks_the_cluster(&self) -> bool {
        matches!(self, Self::Token(_) | Self::Floor(_))
    }
}

pub(crate) async fn run(command: AuthCommand, global: &Global) -> Result<(), Failure> {
    match command {
        AuthCommand::Token(command) => token::run(command, global).await,
        AuthCommand::Bootstrap(args) => bootstrap::run(&args, global).await,
        AuthCommand::Floor(args) => floor::run(&args, global).await,
    }
}
