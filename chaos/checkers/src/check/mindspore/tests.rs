//! A cluster that makes no mistakes, and the mistakes that are planted in what its nodes saw.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::check;
use crate::check::testing::{Executor, Tally};
use crate::check::{Checked, Rules};
use crate::history::{
    Act, Call, ClientId, ClusterNode, ClusterRole, Fault, Header, History, Job, LifeId, ListedNode, Micros,
    NodeName, Operation, Outcome, Rank, Recorder, Reply, Round,
};

const NODES: u32 = 4;

fn node(round: u64, number: u32, life: u64) -> ClusterNode {
    ClusterNode {
        job: Job::from("ps"),
        round: Round(round),
        name: NodeName::from(format!("{round}-{number}")),
        role: if number < 2 { ClusterRole::Worker } else { ClusterRole::Server },
        life: LifeId(life),
    }
}

fn rank_of(number: u32) -> Rank {
    Rank(number % 2)
}

fn list(round: u64, lives: &[u64]) -> Vec<ListedNode> {
    let listed = (0..).zip(lives).map(|(number, life)| {
        let ClusterNode { role, name, life, .. } = node(round, number, *life);
        ListedNode { role, rank: rank_of(number), name, life }
    });
    listed.collect()
}

/// Two clusters one after the other. In each, four nodes join, tell each other twenty things, the last one is ended in the
/// middle and comes again as another process, and all finish.
fn model(seed: u64) -> History {
    let mut random = Executor::new(seed).random();
    let recorder = Recorder::new(Header::default());
    let mut now = 0;
    let mut done = |node: ClusterNode, act: Act, reply: Reply| {
        now += 10;
        let pending = recorder.invoke(Micros(now), ClientId(0), Call::Node { node, act });
        pending.complete(Micros(now + 5), Outcome::Ok(reply));
    };
    for round in 1..=2 {
        let mut lives: Vec<u64> = (0..u64::from(NODES)).map(|number| round * 100 + number).collect();
        for number in 0..NODES {
            let asking = node(round, number, lives[number as usize]);
            done(asking, Act::Join, Reply::Rank(rank_of(number)));
        }
        let hear = |lives: &[u64], number: u32| {
            let members = list(round, lives);
            (node(round, number, lives[number as usize]), Act::HearMembers { rank: rank_of(number), members })
        };
        for number in 0..NODES {
            let (node, act) = hear(&lives, number);
            done(node, act, Reply::Done);
        }
        for step in 0..20 {
            if step == 10 {
                let last = NODES - 1;
                done(node(round, last, lives[last as usize]), Act::End, Reply::Done);
                lives[last as usize] += 50;
                let again = node(round, last, lives[last as usize]);
                done(again, Act::Join, Reply::Rank(rank_of(last)));
                for number in 0..NODES {
                    let (node, act) = hear(&lives, number);
                    done(node, act, Reply::Done);
                }
            }
            let event = u32::try_from(round).unwrap() * 1_000 + step;
            let teller = random.random_range(0..NODES);
            done(node(round, teller, lives[teller as usize]), Act::Tell { event }, Reply::Done);
            for number in 0..NODES {
                // Some are told twice.
                for _ in 0..random.random_range(1..3) {
                    let hearing = node(round, number, lives[number as usize]);
                    done(hearing, Act::HearEvent { event }, Reply::Done);
                }
            }
        }
        for act in [Act::Finish, Act::HearFinish] {
            for number in 0..NODES {
                done(node(round, number, lives[number as usize]), act.clone(), Reply::Done);
            }
        }
    }
    recorder.history(Micros(now + 10))
}

fn judge(history: &History) -> Checked {
    check(history, &Rules::default())
}

fn caught(name: &str, plant: impl Fn(&mut SmallRng, &mut History) -> bool) {
    Tally::all_caught(name, 60, model, plant, judge);
}

/// One of the operations with an act that fits.
fn pick(
    random: &mut SmallRng,
    history: &History,
    fits: impl Fn(&ClusterNode, &Act) -> bool,
) -> Option<usize> {
    let is_one = |operation: &Operation| match &operation.call {
        Call::Node { node, act } => fits(node, act),
        _ => false,
    };
    let places: Vec<usize> =
        (0..history.operations.len()).filter(|place| is_one(&history.operations[*place])).collect();
    (!places.is_empty()).then(|| places[random.random_range(0..places.len())])
}

fn act(history: &mut History, place: usize) -> &mut Act {
    let Call::Node { act, .. } = &mut history.operations[place].call else { panic!("it was picked") };
    act
}

#[test]
fn a_rank_for_two_and_two_for_one_are_seen() {
    caught("rank twice", |random, history| {
        let joins = |node: &ClusterNode, act: &Act| *act == Act::Join && node.name.as_str().ends_with("-1");
        let Some(place) = pick(random, history, joins) else { return false };
        history.operations[place].outcome = Outcome::Ok(Reply::Rank(Rank(0)));
        true
    });
    caught("two ranks", |random, history| {
        // The second process of a node.
        let joins = |node: &ClusterNode, act: &Act| *act == Act::Join && node.life.0 % 100 >= 50;
        let Some(place) = pick(random, history, joins) else { return false };
        history.operations[place].outcome = Outcome::Ok(Reply::Rank(Rank(7)));
        true
    });
}

#[test]
fn a_list_that_contradicts_what_nodes_were_answered_is_seen() {
    caught("other rank", |random, history| {
        let hears = |_: &ClusterNode, act: &Act| matches!(act, Act::HearMembers { .. });
        let Some(place) = pick(random, history, hears) else { return false };
        let Act::HearMembers { rank, .. } = act(history, place) else { return false };
        rank.0 += 1;
        true
    });
    caught("listed twice", |random, history| {
        let hears = |_: &ClusterNode, act: &Act| matches!(act, Act::HearMembers { .. });
        let Some(place) = pick(random, history, hears) else { return false };
        let Act::HearMembers { members, .. } = act(history, place) else { return false };
        members[1].rank = members[0].rank;
        true
    });
}

#[test]
fn a_list_that_was_replaced_never_comes_back_unless_a_deposed_leader_told_it() {
    let plant = |random: &mut SmallRng, history: &mut History| {
        // The second list of a node that stayed gives way to its first one once more.
        let hears = |node: &ClusterNode, act: &Act| {
            matches!(act, Act::HearMembers { members, .. } if members[3].life.0 % 100 >= 50)
                && node.life.0 % 100 < 3
        };
        let Some(place) = pick(random, history, hears) else { return false };
        let mut again = history.operations[place].clone();
        let Call::Node { act: Act::HearMembers { members, .. }, .. } = &mut again.call else { return false };
        members[3].life = LifeId(members[3].life.0 - 50);
        again.invoked = history.operations[place].completed.plus(Micros(1));
        again.completed = again.invoked.plus(Micros(1));
        history.operations.insert(place + 1, again);
        true
    };
    caught("list fell back", plant);
    let mut history = model(1);
    assert!(plant(&mut Executor::new(1).random(), &mut history));
    let fault = Fault {
        kind: "pause-leader".into(),
        target: "node 1".into(),
        began: Micros(0),
        ended: Some(Micros(1_000_000)),
        planned: None,
    };
    history.faults.push(fault);
    let rules = Rules { deposed_leader: Some(Micros(10)), ..Rules::default() };
    assert!(check(&history, &rules).held() && !judge(&history).held());
}

#[test]
fn an_event_that_one_node_misses_is_seen() {
    caught("event lost", |random, history| {
        let stays =
            |node: &ClusterNode, act: &Act| matches!(act, Act::HearEvent { .. }) && node.life.0 % 100 < 3;
        let Some(place) = pick(random, history, stays) else { return false };
        let (call, lost) = (history.operations[place].call.clone(), history.operations.len());
        history.operations.retain(|operation| operation.call != call);
        history.operations.len() < lost
    });
}

#[test]
fn events_in_two_orders_are_seen() {
    caught("events out of order", |random, history| {
        let stays =
            |node: &ClusterNode, act: &Act| matches!(act, Act::HearEvent { .. }) && node.life.0 % 100 < 3;
        let Some(place) = pick(random, history, stays) else { return false };
        let Call::Node { node, act: Act::HearEvent { event } } = history.operations[place].call.clone()
        else {
            return false;
        };
        if event % 1_000 >= 18 {
            return false;
        }
        // This node hears the event only behind the next one.
        let mut late = history.operations[place].clone();
        let call = late.call.clone();
        history.operations.retain(|operation| operation.call != call);
        let next = Call::Node { node, act: Act::HearEvent { event: event + 1 } };
        let Some(behind) = history.operations.iter().rposition(|operation| operation.call == next) else {
            return false;
        };
        late.invoked = history.operations[behind].completed.plus(Micros(1));
        late.completed = late.invoked.plus(Micros(1));
        history.operations.insert(behind + 1, late);
        true
    });
}

#[test]
fn an_event_that_nobody_told_is_seen() {
    caught("event from nowhere", |random, history| {
        let hears = |_: &ClusterNode, act: &Act| matches!(act, Act::HearEvent { .. });
        let Some(place) = pick(random, history, hears) else { return false };
        *act(history, place) = Act::HearEvent { event: 77 };
        true
    });
}

#[test]
fn who_is_not_told_that_all_have_finished_or_too_early_is_seen() {
    caught("finish lost", |random, history| {
        let Some(place) = pick(random, history, |_, act| *act == Act::HearFinish) else { return false };
        history.operations.remove(place);
        true
    });
    caught("finish early", |random, history| {
        let Some(place) = pick(random, history, |_, act| *act == Act::Finish) else { return false };
        history.operations.remove(place);
        true
    });
}

/// A place that was given up may be taken, and then the rank is another's.
#[test]
fn a_rank_may_go_on_to_another_node_when_its_own_has_ended() {
    let recorder = Recorder::new(Header::default());
    let mut now = 0;
    let mut done = |number: u32, act: Act, reply: Reply| {
        now += 10;
        let call = Call::Node { node: node(1, number, number.into()), act };
        recorder.invoke(Micros(now), ClientId(0), call).complete(Micros(now + 5), Outcome::Ok(reply));
    };
    done(0, Act::Join, Reply::Rank(Rank(0)));
    done(0, Act::End, Reply::Done);
    done(1, Act::Join, Reply::Rank(Rank(0)));
    let checked = judge(&recorder.history(Micros(100)));
    assert!(checked.held() && checked.examined == 3, "{checked:?}");
}
