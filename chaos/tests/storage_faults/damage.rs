//! Bits that flip, and files that are cut, gone or another node's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_processes::fault::storage::{
    FileKind, FileRegion, Flip, Harm, Outcome, Survey, Trial, Witness, files,
};
use tripod_proto::code::Code;
use tripod_wait::deadline;

use super::{assert_kept, tail, wait_until_ended, wanted, writes_go_on};

/// A cluster whose nodes hold this many writes of `value_bytes` bytes each.
async fn filled_cluster(writes: u64, value_bytes: u64) -> Cluster {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let witness = Witness::start(&cluster, "fill", 64, usize::try_from(value_bytes).unwrap());
    // Surveys write for minutes.
    witness.wait_for_more(writes, 7 * deadline()).await.unwrap();
    cluster.wait_until_ready().await.unwrap();
    cluster
}

/// For surveys: with values of 3,000 bytes, the default is enough for a snapshot and for entries that moved
/// to sled.
async fn survey_cluster() -> Cluster {
    filled_cluster(wanted("TRIPOD_WRITES", 25_000), wanted("TRIPOD_VALUE_BYTES", 3000)).await
}

/// Any bits, and then the last ones of sled: it drops a last record that is damaged without a word, and the last one of
/// a young log is the journal's name. The journal must not be taken for one that was never used.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_flipped_bits_are_never_silent_also_when_sled_forgets_the_journals_name() {
    let mut cluster = filled_cluster(100, 512).await;
    let mut survey = Survey::begin(&mut cluster, 1).await.unwrap();
    let mut random = StdRng::seed_from_u64(1);
    for kind in [FileKind::SledData, FileKind::Identity, FileKind::JournalSegment, FileKind::JournalSegment] {
        let flip = Flip::draw(survey.frozen(), kind, &mut random).unwrap().unwrap();
        assert_not_silent(&survey.trial(Harm::Flip(flip)).await.unwrap());
    }
    let file = PathBuf::from("log/db");
    let length = std::fs::metadata(survey.frozen().join(&file)).unwrap().len();
    for offset in [length - 33, length - 20, length - 1] {
        let (kind, region) = (FileKind::SledData, FileRegion::Byte);
        let flip = Flip { file: file.clone(), kind, region, offset, bit: 0 };
        assert_not_silent(&survey.trial(Harm::Flip(flip)).await.unwrap());
    }
}

/// A segment is made in full before it gets its name, so one that is shorter has lost something; also the one
/// in use, behind which only spare ones follow.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_segment_that_became_empty_is_refused() {
    let mut cluster = filled_cluster(200, 32 << 10).await;
    let mut survey = Survey::begin(&mut cluster, 1).await.unwrap();
    let begun = |file: &PathBuf| {
        let segment = FileKind::of(file) == FileKind::JournalSegment;
        segment && std::fs::read(survey.frozen().join(file)).unwrap()[64..96] != [0; 32]
    };
    let begun: Vec<PathBuf> = files(survey.frozen()).unwrap().into_iter().filter(begun).collect();
    assert!(begun.len() >= 2, "{begun:?}");
    for file in begun {
        assert_not_silent(&survey.trial(Harm::Truncate { file, length: 0 }).await.unwrap());
    }
}

fn assert_not_silent(trial: &Trial) {
    let Trial { harm, outcome } = trial;
    println!("{harm}: {outcome:?}");
    assert!(!matches!(outcome, Outcome::Silent { .. } | Outcome::Hung), "{harm}: {outcome:?}");
}

/// As a disk rots under a node that runs: it finds out at its next start, if at all, and the others serve on.
#[tokio::test(flavor = "multi_thread")]
async fn bits_that_flip_under_a_running_node_cost_the_cluster_nothing() {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let witness = Witness::start(&cluster, "rot", 4, 256);
    writes_go_on(&witness, 200).await;
    let data = cluster.root().join("node-3");
    let mut random = StdRng::seed_from_u64(3);
    for kind in [FileKind::JournalSegment, FileKind::JournalSegment, FileKind::Identity] {
        let flip = Flip::draw(&data, kind, &mut random).unwrap().unwrap();
        flip.apply(&data).unwrap();
        println!("{flip}");
    }
    writes_go_on(&witness, 50).await;
    cluster.kill(3).unwrap();
    cluster.restart(3).unwrap();
    wait_until_ended(&mut cluster, 3).await;
    let words = tail(&cluster, 3);
    assert!(Code::find_cause(&words).is_some() && !words.contains("panicked"), "{words}");
    writes_go_on(&witness, 50).await;
    let _ = cluster.kill(3);
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}

const KINDS: [FileKind; 8] = [
    FileKind::Identity,
    FileKind::JournalSegment,
    FileKind::JournalOther,
    FileKind::SledData,
    FileKind::SledConfiguration,
    FileKind::SledOther,
    FileKind::Snapshot,
    FileKind::Other,
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a survey: TRIPOD_FLIPS per kind of file, TRIPOD_SEED, TRIPOD_WRITES, TRIPOD_VALUE_BYTES"]
async fn flipped_bits_survey() {
    let mut cluster = survey_cluster().await;
    let mut survey = Survey::begin(&mut cluster, 1).await.unwrap();
    let mut random = StdRng::seed_from_u64(wanted("TRIPOD_SEED", 1));
    let mut trials = Vec::new();
    for kind in KINDS {
        for _ in 0..wanted("TRIPOD_FLIPS", 20) {
            let Some(flip) = Flip::draw(survey.frozen(), kind, &mut random).unwrap() else { break };
            trials.push(survey.trial(Harm::Flip(flip)).await.unwrap());
        }
    }
    report(&trials);
    assert!(trials.iter().all(|trial| !matches!(trial.outcome, Outcome::Silent { .. } | Outcome::Hung)));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a survey: TRIPOD_WRITES, TRIPOD_VALUE_BYTES"]
async fn files_that_are_cut_gone_or_anothers_survey() {
    let mut cluster = survey_cluster().await;
    let mut survey = Survey::begin(&mut cluster, 1).await.unwrap();
    let donor = survey.neighbour();
    let mut trials = Vec::new();
    for file in files(survey.frozen()).unwrap() {
        let length = std::fs::metadata(survey.frozen().join(&file)).unwrap().len();
        let mut harms = vec![Harm::Delete { file: file.clone() }];
        harms.extend(
            [0, 1, 2, 3].map(|quarter| Harm::Truncate { file: file.clone(), length: length * quarter / 4 }),
        );
        if donor.join(&file).is_file() {
            harms.push(Harm::Replace { file: file.clone(), donor: donor.clone() });
        }
        for harm in harms {
            trials.push(survey.trial(harm).await.unwrap());
        }
    }
    report(&trials);
    assert!(trials.iter().all(|trial| !matches!(trial.outcome, Outcome::Silent { .. } | Outcome::Hung)));
}

/// A table, and every trial that was neither harmless nor well refused.
fn report(trials: &[Trial]) {
    let mut table: BTreeMap<_, BTreeMap<_, u64>> = BTreeMap::new();
    for trial in trials {
        let row = table.entry((trial.harm.kind(), trial.harm.name())).or_default();
        let outcome = match &trial.outcome {
            Outcome::Detected { code } => code.clone(),
            Outcome::Mute { code: Some(code), .. } => format!("mute {code}"),
            other => other.name().to_owned(),
        };
        *row.entry(outcome).or_default() += 1;
    }
    for ((kind, region), outcomes) in table {
        println!("{:20} {region:16} {outcomes:?}", kind.name());
    }
    for trial in trials {
        let cut_or_gone = !matches!(trial.harm, Harm::Flip(_));
        if cut_or_gone || !matches!(trial.outcome, Outcome::Harmless | Outcome::Detected { .. }) {
            println!("{}: {:?}", trial.harm, trial.outcome);
        }
    }
}
