//! `tripod status`: answers within two seconds, whatever is dead.

use std::io;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_client::{Client, Config, NodeAnswer, Phase};
use tripod_proto::code::Code;

use crate::args::seconds::Seconds;
use crate::cli::Global;
use crate::failure::{Failure, of_phase};
use crate::output::{self, Colour, Format};
use crate::view::cluster::{ClusterView, not_asked};

/// Of the promised two seconds; the rest is for starting and printing. It must be more than the second for
/// which a node that is cut off from the others lets new connections wait (decision 016): without a leader
/// that is every node.
const ASK_TIMEOUT: Duration = Duration::from_millis(1800);

const EXAMPLES: &str = "\
Each row tells who told it and when: `now` is the node itself. For a node that does not answer, the leader
tells how far it was and when it was heard last. What is wrong is told below the table, the worst first, with
what to do next. It ends with 0 when somebody leads and with 3 when nobody does, so that
`until tripod status; do sleep 1; done` waits for a cluster that serves.

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
    let answers = ask_all(&global.endpoints, args.digest).await?;
    let view = ClusterView::of(&answers, args.digest);
    print(&view, global.format(), output::line)?;
    verdict(&view, &answers)
}

/// What has been shown is no answer to who waits for a cluster that serves.
fn verdict(view: &ClusterView, answers: &[NodeAnswer]) -> Result<(), Failure> {
    let Some((what, next)) = view.standstill() else { return Ok(()) };
    let code = if view.anybody_answered() { Code::NoLeader } else { of_phase(furthest(answers)) };
    Err(Failure::new(code, output::text(&format!("{what}; next: {next}")).into_owned()))
}

/// How far the attempt came that came furthest.
fn furthest(answers: &[NodeAnswer]) -> Option<Phase> {
    answers.iter().filter_map(|answer| answer.status.as_ref().err()).map(|attempt| attempt.phase).max()
}

/// A call that no node answered, or that of a node which knows no leader, as seen from all nodes: if nobody leads,
/// that is why, and not the silence of the one that was called. Takes two seconds at most.
pub(super) async fn explained(failure: Failure, endpoints: &[String]) -> Failure {
    if !matches!(failure.code(), Code::NoAnswer | Code::NoLeader) {
        return failure;
    }
    let Ok(answers) = ask_all(endpoints, false).await else { return failure };
    let view = ClusterView::of(&answers, false);
    match view.standstill().filter(|_| view.anybody_answered()) {
        Some((why, next)) => failure.without_a_leader(&output::text(why), &output::text(next)),
        None => failure,
    }
}

/// Nobody answering is no end: it may be what the operator waits to see the end of.
async fn watch(args: &StatusArgs, global: &Global, pause: Duration) -> Result<(), Failure> {
    loop {
        let view = ClusterView::of(&ask_all(&global.endpoints, args.digest).await?, args.digest);
        print(&view, global.format(), output::screen)?;
        tokio::time::sleep(pause).await;
    }
}

fn print(view: &ClusterView, format: Format, print: fn(&str) -> io::Result<()>) -> io::Result<()> {
    match format {
        Format::Json => output::json(view),
        Format::Table => print(&coloured(&view.render(), view.is_healthy())),
    }
}

/// What is said of the cluster's health, and of each trouble, in colour: the end of the first line, and the first line
/// of each paragraph behind the table.
fn coloured(text: &str, is_healthy: bool) -> String {
    let mut paragraphs = text.split("\n\n");
    let table = paragraphs.next().unwrap_or_default();
    let (head, rows) = table.split_once('\n').unwrap_or((table, ""));
    let (facts, health) = head.rsplit_once("  ").unwrap_or(("", head));
    let colour = if is_healthy { Colour::Good } else { Colour::Bad };
    let mut coloured = format!("{facts}  {}\n{rows}", colour.of(health));
    for paragraph in paragraphs {
        let (what, next) = paragraph
            .split_once('\n')
            .map_or((paragraph, String::new()), |(what, next)| (what, format!("\n{next}")));
        coloured.push_str(&format!("\n\n{}{next}", Colour::Bad.of(what)));
    }
    coloured
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
    //! Numbers as in `n7` are those of the walk-through of a new operator.

    use std::net::TcpListener;

    use tripod_client::{Attempt, wire};

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

    /// What a command says that nobody answered, and its exit code, by the attempts at the nodes.
    fn said_of(phases: &[Phase]) -> (Code, Exit) {
        let answer = |phase: &Phase| NodeAnswer {
            endpoint: "a:1".to_owned(),
            status: Err(Attempt { endpoint: "a:1".to_owned(), phase: *phase, cause: "why".to_owned() }),
        };
        let answers: Vec<_> = phases.iter().map(answer).collect();
        let failure = verdict(&ClusterView::of(&answers, false), &answers).expect_err("nobody answers");
        assert!(failure.to_string().contains("no node answers: a:1: "), "{failure}");
        (failure.code(), failure.exit())
    }

    #[test]
    fn n7_that_nobody_listens_is_told_by_how_far_the_attempts_came() {
        assert_eq!(said_of(&[Phase::Connect, Phase::Connect]), (Code::NotConnected, Exit::Unreachable));
        assert_eq!(said_of(&[Phase::Resolve, Phase::Resolve]), (Code::NameUnresolved, Exit::Unreachable));
        assert_eq!(said_of(&[Phase::Connect, Phase::Call]), (Code::NoAnswer, Exit::Unreachable));
    }

    /// A node of three that knows no leader, and two at whose addresses nobody is.
    fn one_of_three() -> Vec<NodeAnswer> {
        let voter = |node_id| wire::Member { node_id, voter: true, ..Default::default() };
        let alone =
            wire::StatusResponse { node_id: 1, members: (1..=3).map(voter).collect(), ..Default::default() };
        vec![NodeAnswer { endpoint: "a:1".to_owned(), status: Ok(alone) }]
    }

    #[test]
    fn n8_without_a_leader_it_ends_with_three_and_says_how_many_voters_answer() {
        let mut answers = one_of_three();
        let failure = verdict(&ClusterView::of(&answers, false), &answers).expect_err("nobody leads");
        assert_eq!((failure.code(), failure.exit()), (Code::NoLeader, Exit::Unreachable));
        let told = failure.to_string();
        assert!(
            told.contains("1 of 3 voters answer, 2 must") && told.ends_with("docs/runbooks/lost-quorum.md"),
            "{told}"
        );
        answers[0].status.as_mut().expect("alive").leader_id = 1;
        assert_eq!(verdict(&ClusterView::of(&answers, false), &answers), Ok(()));
    }

    #[test]
    fn n6_a_call_without_an_answer_is_told_as_what_it_is_when_nobody_leads() {
        let call = Failure::new(
            Code::NoAnswer,
            "job list: no node could answer within 10.0 s: x; next: `tripod status`",
        );
        let view = ClusterView::of(&one_of_three(), false);
        let (why, next) = view.standstill().expect("nobody leads");
        let told = call.without_a_leader(why, next).to_string();
        assert_eq!(
            told,
            "T2104 no-leader: no leader: 1 of 3 voters answer, 2 must, and nodes 2, 3 do not; calls are held (job list: no \
             node could answer within 10.0 s: x); next: start nodes 2, 3, of which 1 is enough; if they are gone for good: \
             docs/runbooks/lost-quorum.md"
        );
    }

    #[test]
    fn n31_health_and_troubles_are_coloured_and_nothing_else() {
        let good = coloured("cluster c  term 7  healthy\nNODE\n1", true);
        assert_eq!(good, format!("cluster c  term 7  {}\nNODE\n1", Colour::Good.of("healthy")));
        let bad = coloured("cluster c  1 trouble\nNODE\n\nnode 3 is dead\nnext: x", false);
        let (health, trouble) = (Colour::Bad.of("1 trouble"), Colour::Bad.of("node 3 is dead"));
        assert_eq!(bad, format!("cluster c  {health}\nNODE\n\n{trouble}\nnext: x"));
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_wrong_usage() {
        let refused = ask_all(&["nowhere".to_owned()], false).await.expect_err("no address");
        assert_eq!(refused.exit(), Exit::Usage);
    }
}
