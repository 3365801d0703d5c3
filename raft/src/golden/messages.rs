//! What the nodes say to each other in our own encoding. The messages around it are frozen in `proto/tests`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tripod_state::ids::{FeatureLevel, JobName, ServiceIncarnation, TaskId};
use tripod_state::{Answer, Fault, level};

use super::{check_lines, clusters, commands, needs, schedulers, sessions};
use crate::base::codec;
use crate::base::test_entries::id;
use crate::base::types::{Entry, LogCommand, Peer, Types, Vote};
use crate::care::divergence::{Answer as Compared, Fingerprint, Report, Verdict};
use crate::care::rejoin::{PeerState, Question};
use crate::care::space::DiskStatus;
use crate::lead::outcome::Outcome;
use crate::peers::AppendAnswer;
use crate::peers::transfer::Offer;

/// A message, and how its bytes are read.
struct Sample {
    name: String,
    bytes: Vec<u8>,
    shown: String,
    read: fn(&[u8]) -> String,
}

fn sample<T: Serialize + DeserializeOwned + Debug>(name: impl Into<String>, value: &T) -> Sample {
    let read = |bytes: &[u8]| format!("{:?}", codec::decode::<T>(bytes).unwrap());
    Sample { name: name.into(), bytes: codec::encode(value), shown: format!("{value:?}"), read }
}

fn entries() -> Vec<Entry> {
    let payload = codec::encode(&commands::level_1()[0].1).into();
    let nodes: BTreeMap<u64, Peer> =
        (1..=4).map(|node| (node, Peer { address: format!("10.0.0.{node}:7800") })).collect();
    let sets = vec![BTreeSet::from([1, 2, 3]), BTreeSet::from([1, 3, 4])];
    let membership = openraft::Membership::new(sets, nodes).unwrap();
    vec![
        Entry { log_id: id(3, 7), payload: openraft::EntryPayload::Blank },
        Entry {
            log_id: id(3, 8),
            payload: openraft::EntryPayload::Normal(LogCommand { now_ms: 1 << 41, payload }),
        },
        Entry { log_id: id(4, 9), payload: openraft::EntryPayload::Membership(membership) },
    ]
}

fn of_raft() -> Vec<Sample> {
    let vote = Vote::new_committed(3, 1);
    let append = AppendEntriesRequest::<Types> {
        vote,
        prev_log_id: Some(id(2, 6)),
        leader_commit: Some(id(2, 5)),
        entries: entries(),
    };
    let heartbeat = AppendEntriesRequest::<Types> {
        prev_log_id: None,
        leader_commit: None,
        entries: vec![],
        ..append.clone()
    };
    vec![
        sample("append", &append),
        sample("append heartbeat", &heartbeat),
        sample("append answer", &AppendEntriesResponse::<Types>::Success),
        sample("append answer conflict", &AppendEntriesResponse::<Types>::Conflict),
        sample("append answer higher vote", &AppendEntriesResponse::<Types>::HigherVote(Vote::new(9, 2))),
        sample("append answer partial", &AppendEntriesResponse::<Types>::PartialSuccess(Some(id(3, 7)))),
        sample("stream answer", &AppendAnswer::Matched(Some(id(3, 9)))),
        sample("stream answer conflict", &AppendAnswer::Conflict(id(3, 9))),
        sample("stream answer higher vote", &AppendAnswer::HigherVote(Vote::new(9, 2))),
        sample("vote", &VoteRequest::<Types>::new(Vote::new(5, 2), Some(id(3, 9)))),
        sample("vote answer", &VoteResponse::<Types>::new(Vote::new(5, 2), Some(id(3, 9)), true)),
        sample("transfer leader", &TransferLeaderRequest::<Types>::new(vote, 2, Some(id(3, 9)))),
        sample("snapshot offer", &Offer { vote, last_log_id: Some(id(3, 9)), bytes: 1 << 33 }),
        sample("held vote, and the answer to a snapshot", &vote),
    ]
}

fn of_ours() -> Vec<Sample> {
    let disk =
        DiskStatus { directory: "/data".into(), free_bytes: u64::MAX, reserve_bytes: 24 << 20, full: true };
    let (seen, other) = (Fingerprint { term: 3, digest: 77 }, Fingerprint { term: 3, digest: 78 });
    let diverged = Verdict::Diverged { majority: other, of: vec![1, 3] };
    let verdicts = vec![(7, Verdict::Open), (8, Verdict::Never), (9, Verdict::Agrees), (10, diverged)];
    let standing = PeerState {
        vote: Vote::new_committed(3, 1),
        last_log: Some(9),
        leads: true,
        voters: BTreeSet::from([1, 2, 3]),
        had_data: true,
    };
    let registered = Answer::Registered { service: ServiceIncarnation(7) };
    vec![
        sample("standing", &Question { node: 3, lost: true, ready: false }),
        sample("standing answer", &standing),
        sample("report disk", &(2_u64, disk)),
        sample("report disk answer", &Some("no room".to_owned())),
        sample("compare", &Report { node: 2, digest_version: 2, points: vec![(9, seen)] }),
        sample("compare answer", &Compared { verdicts }),
        sample("propose answer", &Outcome::Applied(9, Ok(registered))),
        sample("propose answer refused", &Outcome::Applied(9, Err(Fault::Restarted { task: TaskId(1) }))),
        sample("propose answer no leader", &Outcome::NoLeader("why".into())),
        sample("propose answer unknown", &Outcome::Unknown("why".into())),
        sample("propose answer disk full", &Outcome::DiskFull("why".into())),
    ]
}

#[test]
fn messages_of_level_2_stay_as_they_are() {
    let samples = [sample("propose newer answer level", &Outcome::Level("why".into()))];
    check("level2/messages.txt", &samples);
}

/// What the leader answers for schedulers, and for the level that they need.
#[test]
fn messages_of_level_3_stay_as_they_are() {
    let applied =
        |name: &str, reply| sample(format!("propose newer answer {name}"), &Outcome::Applied(9, reply));
    let answers = schedulers::answers();
    let answers = answers.into_iter().map(|(name, answer)| applied(name, Ok(Answer::Ray(answer))));
    let refusals = schedulers::refusals();
    let refusals = refusals
        .into_iter()
        .map(|(name, refusal)| applied(&format!("refused {name}"), Err(Fault::Ray(refusal))));
    let jobs = vec![JobName::from("train")];
    let held = level::Refusal::Schedulers { needs: FeatureLevel(3), count: 300, jobs };
    let held = applied("refused level held by schedulers", Err(Fault::Level(held)));
    let samples: Vec<Sample> = answers.chain(refusals).chain([held]).collect();
    check("level3/messages.txt", &samples);
}

/// The same for MindSpore's clusters.
#[test]
fn messages_of_level_9_stay_as_they_are() {
    let applied =
        |name: &str, reply| sample(format!("propose newer answer {name}"), &Outcome::Applied(9, reply));
    let answers = clusters::answers();
    let answers = answers.into_iter().map(|(name, answer)| applied(name, Ok(Answer::Mindspore(answer))));
    let refusals = clusters::refusals();
    let refusals = refusals
        .into_iter()
        .map(|(name, refusal)| applied(&format!("refused {name}"), Err(Fault::Mindspore(refusal))));
    let jobs = vec![JobName::from("train")];
    let held = level::Refusal::Clusters { needs: FeatureLevel(9), count: 300, jobs };
    let held = applied("refused level held by clusters", Err(Fault::Level(held)));
    let samples: Vec<Sample> = answers.chain(refusals).chain([held]).collect();
    check("level9/messages.txt", &samples);
}

/// The same for what tasks need, and for cancelled ones.
#[test]
fn messages_of_level_10_stay_as_they_are() {
    let applied =
        |name: &str, reply| sample(format!("propose newer answer {name}"), &Outcome::Applied(9, reply));
    let answers = needs::answers();
    let answers = answers.into_iter().map(|(name, answer)| applied(name, Ok(Answer::Ray(answer))));
    let of_sessions = sessions::answers();
    let of_sessions = of_sessions.into_iter().map(|(name, answer)| applied(name, Ok(Answer::Mars(answer))));
    let jobs = || vec![JobName::from("train")];
    let held = level::Refusal::Scheduled { needs: FeatureLevel(10), count: 300, jobs: jobs() };
    let held = applied("refused level held by tasks", Err(Fault::Level(held)));
    let by_sessions = level::Refusal::Sessions { needs: FeatureLevel(10), count: 300, jobs: jobs() };
    let by_sessions = applied("refused level held by sessions", Err(Fault::Level(by_sessions)));
    let samples: Vec<Sample> = answers.chain(of_sessions).chain([held, by_sessions]).collect();
    check("level10/messages.txt", &samples);
}

fn check(name: &str, samples: &[Sample]) {
    let today: Vec<_> = samples.iter().map(|one| (one.name.clone(), one.bytes.clone())).collect();
    for (sample, (_, bytes)) in samples.iter().zip(check_lines(name, &today)) {
        assert_eq!((sample.read)(&bytes), sample.shown, "{} is read differently", sample.name);
    }
}

#[test]
fn messages_of_level_1_stay_as_they_are() {
    let samples: Vec<Sample> = of_raft().into_iter().chain(of_ours()).collect();
    check("level1/messages.txt", &samples);
}
