//! The chart for Kubernetes, as Helm takes it.

use anyhow::{Context, Result, bail};

use super::release::{Artefact, Release};
use super::tree::Tree;

/// Where the chart is in the project.
pub(crate) const FOLDER: &str = "deploy/kubernetes/tripod";

/// Makes it.
///
/// # Errors
/// It is not there, or it installs another version than that of the program.
pub(crate) fn make(release: &Release) -> Result<Artefact> {
    let mut tree = Tree::default();
    tree.add_folder("", &release.root.join(FOLDER))?;
    let chart = release.root.join(FOLDER).join("Chart.yaml");
    let text = std::fs::read_to_string(&chart).with_context(|| format!("cannot read {}", chart.display()))?;
    let line = format!("appVersion: \"{}\"", release.version);
    if !text.lines().any(|found| found == line) {
        bail!("{}: the program has version {}; write `{line}`", chart.display(), release.version);
    }
    let version = text.lines().find_map(|line| line.strip_prefix("version: ")).context("no `version:`")?;
    let bytes = tree.tar_gz("tripod/", release.epoch_s, release.effort)?;
    Ok(Artefact { name: format!("tripod-chart-{version}.tgz"), bytes })
}

#[cfg(test)]
mod tests {
    use super::super::release::sample;
    use super::super::tree::un_tar_gz;
    use super::*;

    #[test]
    fn a_chart_is_packed_as_helm_reads_it_and_installs_the_program_of_its_release() {
        let artefact = make(&sample()).unwrap();
        assert_eq!(artefact.name, "tripod-chart-0.1.0.tgz");
        let paths: Vec<String> = un_tar_gz(&artefact.bytes).into_iter().map(|entry| entry.0).collect();
        for path in ["tripod/Chart.yaml", "tripod/values.schema.json", "tripod/templates/statefulset.yaml"] {
            assert!(paths.iter().any(|found| found == path), "{path} is not in {paths:?}");
        }
        let newer = Release { version: "9.9.9".to_owned(), ..sample() };
        let error = make(&newer).unwrap_err().to_string();
        assert!(error.contains("appVersion: \"9.9.9\""), "{error}");
    }
}
