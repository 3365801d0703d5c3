//! Whether the names of the other nodes resolve, and which of them answer.

use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Check, Plan, Verdict};

/// How long a name server and a node may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came of one address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Answers,
    /// Its name resolves; nobody accepts connections, and why.
    Silent(String),
    /// Its name does not resolve, and why.
    Unknown(String),
}

/// One check for the nodes of a first start, one for those of a cluster to be joined.
pub(super) async fn check(plan: &Plan) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(initial) = &plan.initial {
        let others = initial.as_slice().iter().filter(|member| Some(member.node.0) != plan.node);
        let looked = look(others.map(|member| member.peer.clone()).collect()).await;
        checks.push(of_initial(&looked));
    }
    if !plan.join.is_empty() {
        checks.push(of_join(&look(plan.join.clone()).await));
    }
    checks
}

async fn look(addresses: Vec<String>) -> Vec<(String, Found)> {
    let mut asked = JoinSet::new();
    for (place, address) in addresses.into_iter().enumerate() {
        asked.spawn(async move {
            let found = look_at(&address).await;
            (place, address, found)
        });
    }
    let mut all = asked.join_all().await;
    all.sort_by_key(|(place, ..)| *place);
    all.into_iter().map(|(_, address, found)| (address, found)).collect()
}

async fn look_at(address: &str) -> Found {
    let resolved = match timeout(PATIENCE, lookup_host(address)).await {
        Err(_) => Err("the name server does not answer".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(addresses)) => Ok(addresses.count()),
    };
    match resolved {
        Err(why) => return Found::Unknown(why),
        Ok(0) => return Found::Unknown("the name has no address".to_owned()),
        Ok(_) => {}
    }
    match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Found::Answers,
        Ok(Err(error)) => Found::Silent(error.to_string()),
        Err(_) => Found::Silent("no connection in time".to_owned()),
    }
}

/// The others of a first start need not run yet, but their names must be right.
fn of_initial(looked: &[(String, Found)]) -> Check {
    let check = judged("peers", looked);
    if check.verdict == Verdict::Fail {
        return check.next("correct --initial, or the name server of this machine");
    }
    check
}

/// Of a running cluster somebody must answer.
fn of_join(looked: &[(String, Found)]) -> Check {
    let check = judged("join", looked);
    let answers = looked.iter().any(|(_, found)| *found == Found::Answers);
    if answers {
        return Check { verdict: Verdict::Ok, ..check };
    }
    Check { verdict: Verdict::Fail, ..check }
        .next("name client addresses of nodes that run, and see that no firewall is between")
}

fn judged(name: &'static str, looked: &[(String, Found)]) -> Check {
    let count = |wanted: fn(&Found) -> bool| looked.iter().filter(|(_, found)| wanted(found)).count();
    let unknown = count(|found| matches!(found, Found::Unknown(_)));
    let answering = count(|found| *found == Found::Answers);
    let told: Vec<String> = looked
        .iter()
        .filter_map(|(address, found)| match found {
            Found::Answers => None,
            Found::Silent(why) => Some(format!("{address} does not answer ({why})")),
            Found::Unknown(why) => Some(format!("{address} cannot be resolved ({why})")),
        })
        .collect();
    let verdict = if unknown > 0 { Verdict::Fail } else { Verdict::Ok };
    let mut found = format!("{answering} of {} answer", looked.len());
    if !told.is_empty() {
        found = format!("{found}: {}", told.join(", "));
    }
    Check::new(name, verdict, found)
        .figure("nodes", looked.len())
        .figure("answering", answering)
        .figure("unresolved", unknown)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tripod_wait::Nobody;

    use super::*;

    /// No resolver takes a label of more than 63 characters, so none is asked.
    fn unresolvable() -> String {
        format!("{}:1", "x".repeat(64))
    }

    #[tokio::test]
    async fn silent_nodes_are_fine_before_the_first_start_and_unknown_names_are_not() {
        let running = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let up = running.local_addr().expect("bound").to_string();
        let nobody = Nobody::at_a_port();
        let down = nobody.address();
        let plan = |others: &[&String]| {
            let members: Vec<_> =
                others.iter().enumerate().map(|(at, other)| format!("{}={other}", at + 2)).collect();
            let initial = format!("1=127.0.0.1:1,{}", members.join(","));
            Plan { node: Some(1), initial: Some(initial.parse().expect("legal")), ..Plan::default() }
        };
        let fine = check(&plan(&[&up, &down])).await;
        assert_eq!((fine.len(), fine[0].verdict), (1, Verdict::Ok), "{fine:?}");
        assert_eq!((&fine[0].figures["nodes"], &fine[0].figures["answering"]), (&2.into(), &1.into()));
        let wrong = check(&plan(&[&up, &unresolvable()])).await;
        assert_eq!(
            (wrong[0].verdict, &wrong[0].figures["unresolved"]),
            (Verdict::Fail, &1.into()),
            "{wrong:?}"
        );
    }

    #[tokio::test]
    async fn of_a_cluster_to_be_joined_somebody_must_answer() {
        let running = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let up = running.local_addr().expect("bound").to_string();
        let join = |join: &[&String]| Plan {
            join: join.iter().map(ToString::to_string).collect(),
            ..Plan::default()
        };
        assert_eq!(check(&join(&[&unresolvable(), &up])).await[0].verdict, Verdict::Ok);
        assert_eq!(check(&join(&[&unresolvable()])).await[0].verdict, Verdict::Fail);
    }
}
