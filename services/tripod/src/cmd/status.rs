//! `tripod status`: answers within two seconds, whatever is dead.

use std::io;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_client::{Client, Config, NodeAnswer};
use tripod_proto::code::Code;

use crate::args::seconds::Seconds;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::view::cluster::{ClusterView, not_asked};

/// Of the promised two seconds; the rest is for starting and printing. It must be more than the second for
/// which a node that is cut off from the others lets new connections wait (decision 016): without a leader
/// that is every node.
const ASK_TIMEOUT: Duration = Duration::from_millis(1800);

const EXAMPLES: &str = "\
Each row tells who told it and when: `now` is the node itself. For a node that does not answer, the leader
tells how far it was and when it was heard last. What is wrong is told below the table, the worst first, with
what to do next.

Examples:
  tripod status                     within two seconds, also without a leader and with dead nodes
  tripod status --watch             again every two seconds, until Ctrl-C
  tripod status -o json | jq .troubles";

/// Flags of `status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Also show each node's hash of its whole state; equal at equal applied index. Reads all of it
    #[arg(long)]
    digest: bool,

    /// Show it again and again until Ctrl-C; what is no terminal gets one after the other
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    watch: Option<Seconds>,
}

pub(crate) async fn run(args: &StatusArgs, global: &Global) -> Result<(), Failure> {
    if let Some(pause) = args.watch {
        return tokio::select! {
            watched = watch(args, global, pause.duration()) => watched,
            // Whoever ends a watch has seen what there was to see.
            interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
        };
    }
    let view = look(args, global).await?;
    print(&view, global.format(), output::line)?;
    if view.anybody_answered() {
        return Ok(());
    }
    Err(Failure::new(
        Code::NoAnswer,
        format!("no node answered: {}; is the cluster up, is --endpoints right?", view.reasons()),
    ))
}

/// Nobody answering is no end: it may be what the operator waits to see the end of.
async fn watch(args: &StatusArgs, global: &Global, pause: Duration) -> Result<(), Failure> {
    loop {
        let view = look(args, global).await?;
        print(&view, global.format(), output::screen)?;
        tokio::time::sleep(pause).await;
    }
}

async fn look(args: &StatusArgs, global: &Global) -> Result<ClusterView, Failure> {
    Ok(ClusterView::of(&ask_all(&global.endpoints, args.digest).await?, args.digest))
}

fn print(view: &ClusterView, format: Format, print: fn(&str) -> io::Result<()>) -> io::Result<()> {
    match format {
        Format::Json => output::json(view),
        Format::Table => print(&view.render()),
    }
}

/// Asks the nodes at `endpoints`, and as soon as one of them tells of members that are not among them, those
/// too, all within [`ASK_TIMEOUT`]. The answers of the endpoints come first, in their order.
pub(super) async fn ask_all(endpoints: &[String], digest: bool) -> Result<Vec<NodeAnswer>, Failure> {
    let deadline = Instant::now() + ASK_TIMEOUT;
    let mut asked: Vec<String> = Vec::new();
    let mut answers: Vec<NodeAnswer> = Vec::new();
    let mut asking = JoinSet::new();
    let mut next = endpoints.to_vec();
    loop {
        for endpoint in std::mem::take(&mut next) {
            let client = Client::new(&Config::new(vec![endpoint.clone()]))?;
            asked.push(endpoint);
            let left = deadline.saturating_duration_since(Instant::now());
            asking.spawn(async move { client.status(left, digest).await });
        }
        let Some(answer) = asking.join_next().await else { break };
        answers.extend(
            answer.map_err(|error| Failure::new(Code::Defect, format!("asking a node failed: {error}")))?,
        );
        next = not_asked(&answers, &asked);
    }
    answers.sort_by_key(|answer| asked.iter().position(|endpoint| *endpoint == answer.endpoint));
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::failure::Exit;

    /// Nodes that take the connection and never say a word, as stopped processes do. By the clock of the
    /// deadlines: a slow machine makes no difference.
    #[tokio::test(start_paused = true)]
    async fn silence_is_over_within_two_seconds() {
        let silent = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let nodes = [silent(), silent(), silent()];
        let endpoints = nodes.each_ref().map(|node| node.local_addr().expect("bound").to_string());
        let began = Instant::now();
        let answers = ask_all(&endpoints, false).await.expect("good addresses");
        assert!(began.elapsed() < Duration::from_secs(2), "took {:?}", began.elapsed());
        assert!(began.elapsed() >= ASK_TIMEOUT, "it waits for nodes that let connections wait");
        assert_eq!(answers.iter().map(|answer| answer.endpoint.clone()).collect::<Vec<_>>(), endpoints);
        assert!(answers.iter().all(|answer| answer.status.is_err()));
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_wrong_usage() {
        let refused = ask_all(&["nowhere".to_owned()], false).await.expect_err("no address");
        assert_eq!(refused.exit(), Exit::Usage);
    }
}
