//! `tripod mindspore state`.

use serde::Serialize;
use tripod_client::wire;

use super::nobody;
use crate::view::{count, time};

/// Everything that `mindspore state` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct StateView {
    job: String,
    topology: Option<TopologyView>,
    cluster: Option<ClusterView>,
    /// One line: what to do next; `null`: nothing.
    next: Option<String>,
}

/// The dynamic cluster.
#[derive(Debug, Serialize)]
struct TopologyView {
    state: String,
    generation: u64,
    expected: u32,
    registered: u32,
    silent: u32,
    deadline_ms: Option<u64>,
    release: Option<String>,
}

/// That of the parameter server.
#[derive(Debug, Serialize)]
struct ClusterView {
    state: String,
    generation: u64,
    published: u64,
    workers: u32,
    servers: u32,
    present: u32,
    dead: u32,
    given_up: u32,
    finished: u32,
    events: u64,
    next_event: u64,
    deadline_ms: Option<u64>,
    scaling: Option<ScalingView>,
}

#[derive(Debug, Serialize)]
struct ScalingView {
    direction: String,
    workers_before: u32,
    servers_before: u32,
    begun: u64,
    taken_back: bool,
    complete: bool,
    undone: u32,
}

impl StateView {
    pub(crate) fn of(job: &str, answer: wire::MindsporeState) -> Self {
        let topology = answer.topology.map(TopologyView::of);
        let cluster = answer.cluster.map(ClusterView::of);
        let next = cluster.as_ref().and_then(|cluster| cluster.next(job));
        Self { job: job.to_owned(), topology, cluster, next }
    }

    pub(crate) fn render(&self, now_ms: u64) -> String {
        let parts = [
            self.cluster.as_ref().map(|cluster| cluster.render(now_ms)),
            self.topology.as_ref().map(|topology| topology.render(now_ms)),
            self.next.as_ref().map(|next| format!("next: {next}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { nobody(&self.job) } else { parts.join("\n\n") }
    }
}

impl TopologyView {
    fn of(answer: wire::MindsporeTopology) -> Self {
        Self {
            state: answer.state,
            generation: answer.generation,
            expected: answer.expected,
            registered: answer.registered,
            silent: answer.silent,
            deadline_ms: some(answer.deadline_ms),
            release: Some(answer.release).filter(|release| !release.is_empty()),
        }
    }

    fn render(&self, now_ms: u64) -> String {
        let release =
            self.release.as_ref().map_or_else(String::new, |release| format!("  release {release}"));
        let waits = self
            .deadline_ms
            .map_or_else(String::new, |at| format!("; the others must come within {}", within(at, now_ms)));
        format!(
            "dynamic cluster: {}  generation {}{release}\n\
             nodes     {} expected, {} registered, {} silent{waits}",
            self.state, self.generation, self.expected, self.registered, self.silent
        )
    }
}

impl ClusterView {
    fn of(answer: wire::MindsporeCluster) -> Self {
        let scaling = |scaling: wire::MindsporeScaling| ScalingView {
            direction: scaling.direction,
            workers_before: scaling.workers_before,
            servers_before: scaling.servers_before,
            begun: scaling.begun,
            taken_back: scaling.taken_back,
            complete: scaling.complete,
            undone: scaling.undone,
        };
        Self {
            state: answer.state,
            generation: answer.generation,
            published: answer.published,
            workers: answer.workers,
            servers: answer.servers,
            present: answer.present,
            dead: answer.dead,
            given_up: answer.given_up,
            finished: answer.finished,
            events: answer.events,
            next_event: answer.next_event,
            deadline_ms: some(answer.deadline_ms),
            scaling: answer.scaling.map(scaling),
        }
    }

    fn render(&self, now_ms: u64) -> String {
        let waits = self
            .deadline_ms
            .map_or_else(String::new, |at| format!("; nodes are waited for {}", within(at, now_ms)));
        let mut text = format!(
            "parameter server: {}  generation {}, of which all were told: {}\n\
             nodes     {} and {} expected; {} present, {} dead, {} of them given up; {} finished{waits}\n\
             events    the next is {}; {} not told to all yet",
            self.state,
            self.generation,
            self.published,
            count(self.workers, "worker"),
            count(self.servers, "server"),
            self.present,
            self.dead,
            self.given_up,
            self.finished,
            self.next_event,
            self.events
        );
        if let Some(scaling) = &self.scaling {
            text += &format!("\nscaling   {}", scaling.render(self.servers));
        }
        text
    }

    fn next(&self, job: &str) -> Option<String> {
        let missing = self.workers.saturating_add(self.servers).saturating_sub(self.present);
        match self.state.as_str() {
            "starting" => Some(format!("start {} more", count(missing, "node"))),
            "scale-out" if self.scaling.as_ref().is_some_and(|scaling| !scaling.complete) => Some(format!(
                "{} must register, the new servers among them; `tripod mindspore abort --job {job}` takes it back",
                count(missing, "node")
            )),
            "node-timeout" => Some(format!(
                "a node was lost, or did not come in time, and the others were told to stop; `tripod mindspore nodes --job \
                 {job}` shows which"
            )),
            _ if self.dead > 0 => Some(format!(
                "start another process for each node that is dead: `tripod mindspore nodes --job {job}` shows them, and how \
                 long their places wait"
            )),
            _ => None,
        }
    }
}

impl ScalingView {
    fn render(&self, servers: u32) -> String {
        let Self { direction, servers_before, begun, undone, .. } = self;
        let what = if self.taken_back {
            format!("{direction}, taken back to {}", count(*servers_before, "server"))
        } else {
            format!("{direction} from {servers_before} to {}", count(servers, "server"))
        };
        let how_far = if self.complete {
            format!("all have registered, {undone} have not said that they are done")
        } else {
            "not all have registered yet".to_owned()
        };
        format!("{what}, since generation {begun}: {how_far}")
    }
}

/// A time that 0 stands for none of.
fn some(at_ms: u64) -> Option<u64> {
    (at_ms > 0).then_some(at_ms)
}

/// How long it is until then.
fn within(at_ms: u64, now_ms: u64) -> String {
    time::since(now_ms, at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(state: &str) -> wire::MindsporeCluster {
        wire::MindsporeCluster {
            state: state.to_owned(),
            generation: 5,
            published: 4,
            workers: 1,
            servers: 3,
            present: 4,
            next_event: 1,
            ..Default::default()
        }
    }

    fn shown(cluster: wire::MindsporeCluster) -> String {
        let answer = wire::MindsporeState { cluster: Some(cluster), topology: None };
        StateView::of("fl", answer).render(1_000)
    }

    #[test]
    fn a_job_without_nodes_says_what_is_next() {
        let text = StateView::of("fl", wire::MindsporeState::default()).render(0);
        assert!(text.contains("`tripod job show fl`"), "{text}");
    }

    #[test]
    fn a_ready_cluster_has_nothing_to_do_next() {
        let text = shown(cluster("ready"));
        assert_eq!(
            text,
            "parameter server: ready  generation 5, of which all were told: 4\n\
             nodes     1 worker and 3 servers expected; 4 present, 0 dead, 0 of them given up; 0 finished\n\
             events    the next is 1; 0 not told to all yet"
        );
    }

    #[test]
    fn scaling_says_how_far_it_is_and_how_it_is_taken_back() {
        let scaling = wire::MindsporeScaling {
            direction: "out".into(),
            workers_before: 1,
            servers_before: 2,
            begun: 5,
            ..Default::default()
        };
        let out = wire::MindsporeCluster {
            present: 1,
            deadline_ms: 61_000,
            scaling: Some(scaling),
            ..cluster("scale-out")
        };
        let text = shown(out);
        assert!(text.contains("scaling   out from 2 to 3 servers, since generation 5: not all"), "{text}");
        assert!(text.contains("nodes are waited for 60 s"), "{text}");
        assert!(text.ends_with("`tripod mindspore abort --job fl` takes it back"), "{text}");
    }

    #[test]
    fn a_dead_node_is_to_be_started_again() {
        let lost = wire::MindsporeCluster { present: 3, dead: 1, ..cluster("ready") };
        assert!(shown(lost).contains("next: start another process"));
    }
}
