//! Why something was refused for the sake of the feature level, in words, with the next command.

use tripod_state::level::Refusal;

use super::ids;

const SHOW: &str = "`tripod level show` tells what every node supports";

/// The state's refusal as one sentence without a full stop.
pub(crate) fn of_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::TooLow { command, needs, level } => format!(
            "T4401 level-low: {command} needs feature level {needs}, and the cluster is at {level}; {SHOW}"
        ),
        Refusal::NotAbove { asked, level } => {
            format!("the cluster is at feature level {level} already, so it is not raised to {asked}; {SHOW}")
        }
        Refusal::NotHeard { node } => {
            format!("nobody has heard what node {node} supports, so the level is not raised; {SHOW}")
        }
        Refusal::NoPin { asked, level } => format!(
            "T4409 level-pin-range: the level cannot be pinned at {asked}: it is at {level}, and is pinned there or \
             lowered, to 1 at least; {SHOW}"
        ),
        Refusal::Schedulers { needs, count, jobs } => {
            let first = jobs.first().map_or("JOB", |job| job.as_str());
            format!(
                "T4405 level-held: {} a scheduler of tasks and objects, which needs feature level \
                 {needs}; such a job is deleted with `tripod job delete {first}`",
                jobs_of(*count)
            )
        }
        Refusal::Clusters { needs, count, jobs } => {
            let first = jobs.first().map_or("JOB", |job| job.as_str());
            format!(
                "T4405 level-held: {} a MindSpore cluster, which needs feature level {needs}; such a job \
                 is deleted with `tripod job delete {first}`",
                jobs_of(*count)
            )
        }
        Refusal::Scheduled { needs, count, jobs } => {
            let first = jobs.first().map_or("JOB", |job| job.as_str());
            format!(
                "T4405 level-held: {} tasks or workers with needs, cancelled tasks, described objects or \
                 graphs, which need feature level {needs}; such a job is deleted with `tripod job delete {first}`",
                jobs_of(*count)
            )
        }
        Refusal::Sessions { needs, count, jobs } => {
            let first = jobs.first().map_or("JOB", |job| job.as_str());
            format!(
                "T4405 level-held: {} sessions of Mars, which need feature level {needs}; such a job is \
                 deleted with `tripod job delete {first}`",
                jobs_of(*count)
            )
        }
        Refusal::Floor { needs } => format!(
            "T4405 level-held: a floor below which no node is to serve, which needs feature level {needs}; take it away \
             first: `tripod auth floor off`"
        ),
        Refusal::Drained { needs, nodes } => {
            let first = nodes.first().map_or(1, |node| node.0);
            format!(
                "T4405 level-held: drained nodes, which need feature level {needs}: {}; take each back first: `tripod \
                 node undrain {first}`",
                ids(nodes)
            )
        }
        Refusal::Notes { needs, count, jobs } => {
            let first = jobs.first().map_or("NAME", |name| name.as_str());
            format!(
                "T4405 level-held: {} a note, which needs feature level {needs}: {}; take each away \
                 first: `tripod job note {first} ''`",
                jobs_of(*count),
                ids(jobs)
            )
        }
    }
}

/// `1 job has`, `2 jobs have`.
fn jobs_of(count: u64) -> String {
    if count == 1 { "1 job has".to_owned() } else { format!("{count} jobs have") }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::FeatureLevel;

    use super::*;

    /// The number is that of the walk-through of a new operator.
    #[test]
    fn n32_one_job_is_not_called_several() {
        let held =
            |count| of_refusal(&Refusal::Schedulers { needs: FeatureLevel(3), count, jobs: Vec::new() });
        assert!(held(1).starts_with("T4405 level-held: 1 job has a scheduler of "), "{}", held(1));
        assert!(held(2).starts_with("T4405 level-held: 2 jobs have a scheduler of "), "{}", held(2));
    }
}
