//! How a node that is not one of the first gets its id: from the cluster, once.
//!
//! The node writes down a number before it asks, and asks again with the same one if it was interrupted before
//! it could write its identity. When it has started, the identity in its data directory says who it is, and
//! the number goes.
//!
//! With the id it is told where the members are, and writes that down, too: should it be removed before anything of
//! the log reached it, its log names nobody whom it could ask why nobody calls. So it does with the ports on which they
//! serve jobs: clients and firewalls expect a job at one port on every host.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use tripod_client::{Client, Config, Error, wire};
use tripod_local::files;
use tripod_proto::code::Code;
use tripod_raft::{InitialMember, Owner};
use tripod_state::ids::{FeatureLevel, NodeId};

use crate::args::initial::InitialMembers;
use crate::args::port_range::PortRange;
use crate::cmd::leader::leader;
use crate::failure::Failure;
use crate::node::announce::host_of;
use crate::node::retry::PAUSE;

const NOTE: &str = "joining";
/// The members that the node was told of, in the form of `--initial`.
const TOLD: &str = "joined-members";
/// Where the members serve jobs, in the form of `--job-ports`; missing if they did not tell.
const TOLD_JOB_PORTS: &str = "joined-job-ports";
/// Where a node serves jobs that is told nothing else.
const JOB_PORTS: PortRange = PortRange { first: 8000, last: 8099 };
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Who a node is that is not one of the first.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) owner: Owner,
    /// Where the members were when it got its id; empty if it was not told.
    pub(crate) members: InitialMembers,
    /// The ports on which members on other hosts served jobs then, if it was told.
    pub(crate) job_ports: Option<PortRange>,
}

/// Who the node on this data directory is: as it wrote down at its first start, or as the cluster of the
/// `members` says now. Asks until somebody answers. Then: where the members reach it, and the highest feature
/// level that it supports.
pub(crate) async fn owner(
    data: &Path,
    members: &[String],
    (peer, level_max): (String, FeatureLevel),
) -> Result<Joined, Failure> {
    if let Some(joined) = known(data)? {
        return Ok(joined);
    }
    let token = note(data).map_err(|error| unwritten(data, &error))?;
    let client = Client::new(&Config { endpoints: members.to_vec(), timeout: ASK_TIMEOUT })?;
    let request = wire::JoinRequest { peer_address: peer, token, supports_level: level_max.0 };
    loop {
        match ask(&client, &request).await {
            Ok(joined) => {
                let Owner { cluster_id, node } = &joined.owner;
                tracing::info!(cluster = cluster_id, node = node.0, "the cluster gave this node an id");
                // Before its identity, after which nobody is asked any more.
                joined.write_down(data).map_err(|error| unwritten(data, &error))?;
                return Ok(joined);
            }
            Err(Asked::Later(failure)) => tracing::warn!(%failure, "this node could not join yet"),
            Err(Asked::Refused(reason)) => {
                return Err(Failure::told(
                    Code::JoinRefused,
                    format!("this node may not join the cluster: {reason}"),
                ));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Joined {
    /// Writes down what the cluster told beside the id.
    fn write_down(&self, data: &Path) -> io::Result<()> {
        if let Some(job_ports) = self.job_ports {
            write(data, TOLD_JOB_PORTS, &job_ports.to_string())?;
        }
        write(data, TOLD, &self.members.to_flag())
    }
}

/// Asks the leader for the members, and for an id.
async fn ask(client: &Client, request: &wire::JoinRequest) -> Result<Joined, Asked> {
    let (_, endpoint) = leader(client).await.map_err(Asked::Later)?;
    // First, so that nothing can go wrong between the id and its being written down.
    let list = Client::members(&endpoint, ASK_TIMEOUT).await.map_err(Asked::of)?;
    let wire::JoinResponse { cluster_id, node_id } =
        Client::join(&endpoint, request, ASK_TIMEOUT).await.map_err(Asked::of)?;
    // Its own place may be among them, and a node that is in its own list is one of the first.
    let others: Vec<_> = list.members.into_iter().filter(|member| member.node_id != node_id).collect();
    let job_ports = job_ports_of(&others, host_of(&request.peer_address));
    let members = others
        .into_iter()
        .map(|member| InitialMember { node: NodeId(member.node_id), peer: member.peer_address });
    Ok(Joined { owner: Owner { cluster_id, node: NodeId(node_id) }, members: members.collect(), job_ports })
}

/// The job ports of the first member that is on another host and tells them. On one host every node needs its own.
fn job_ports_of(others: &[wire::MemberSight], host: &str) -> Option<PortRange> {
    let told = others.iter().filter(|member| member.job_port_count > 0 && member.job_host != host);
    let member = told.min_by_key(|member| member.node_id)?;
    let first = u16::try_from(member.job_port_first).ok().filter(|first| *first > 0)?;
    let last = member.job_port_first.checked_add(member.job_port_count - 1)?;
    Some(PortRange { first, last: u16::try_from(last).ok()? })
}

/// Who the node on this data directory is, if one was started there.
pub(crate) fn known(data: &Path) -> Result<Option<Joined>, Failure> {
    let owner =
        tripod_raft::owner(data).map_err(|error| Failure::told(Code::NodeEnded, error.to_string()))?;
    Ok(owner.map(|owner| Joined { owner, members: told(data), job_ports: told_job_ports(data) }))
}

/// The job ports that the node on this data directory was told of when it joined.
fn told_job_ports(data: &Path) -> Option<PortRange> {
    let text = fs::read_to_string(data.join(TOLD_JOB_PORTS)).ok()?;
    let read = text.trim().parse::<PortRange>();
    read.inspect_err(|reason| tracing::warn!(reason, "the note of the cluster's job ports cannot be read"))
        .ok()
}

/// The members that the node on this data directory was told of when it joined.
fn told(data: &Path) -> InitialMembers {
    let nobody = || InitialMembers::from_iter([]);
    match fs::read_to_string(data.join(TOLD)) {
        Ok(text) => text.trim().parse().unwrap_or_else(|reason| {
            // The log names the members in nearly all cases.
            tracing::warn!(reason, "the note of the members that this node was told of is no list");
            nobody()
        }),
        // One of the first, or it joined before such notes were made.
        Err(error) if error.kind() == ErrorKind::NotFound => nobody(),
        Err(error) => {
            tracing::warn!(%error, "the note of the members that this node was told of cannot be read");
            nobody()
        }
    }
}

/// The ports on which this node serves jobs, by what it is given and what it was told when it joined.
pub(crate) fn job_ports(given: Option<PortRange>, joined: Option<&Joined>) -> PortRange {
    let told = joined.and_then(|joined| joined.job_ports);
    if let (Some(given), Some(told)) = (given, told)
        && given != told
    {
        let (own, cluster) = (given.to_string(), told.to_string());
        tracing::warn!(
            own,
            cluster,
            "this node serves jobs at other ports than the nodes that it joined: clients and firewalls that expect a job \
             at one port do not find it here; next: leave out --job-ports, or give every node the same"
        );
    }
    given.or(told).unwrap_or(JOB_PORTS)
}

/// The node has started, and its identity is written.
pub(crate) fn done(data: &Path) {
    match fs::remove_file(data.join(NOTE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            // It does no harm: the identity comes first.
            tracing::warn!(%error, "the note of joining could not be removed");
        }
        _ => {}
    }
}

/// Why there is no id yet.
enum Asked {
    Later(Failure),
    Refused(String),
}

impl Asked {
    fn of(error: Error) -> Self {
        match &error {
            // Elections and other people's changes end.
            Error::Refused { reason, .. } if reason == "not-leader" || reason == "change-in-progress" => {
                Self::Later(error.into())
            }
            Error::Refused { .. } | Error::Config(_) => Self::Refused(error.to_string()),
            Error::Unavailable { .. } | Error::OutcomeUnknown { .. } => Self::Later(error.into()),
        }
    }
}

/// The number of this node's note; written now unless it is there.
fn note(data: &Path) -> io::Result<u64> {
    let path = data.join(NOTE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let number = u64::from_str_radix(text.trim(), 16);
            // An earlier life may have ended before it had made the name durable.
            File::open(data)?.sync_all()?;
            return number.map_err(|_| {
                io::Error::new(ErrorKind::InvalidData, format!("{} is no note", path.display()))
            });
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    if !data.is_dir() {
        files::create_dir(data)?;
    }
    let token: u64 = rand::random_range(1..=u64::MAX);
    write(data, NOTE, &format!("{token:016x}"))?;
    Ok(token)
}

/// Writes a line durably, whole or not at all.
fn write(data: &Path, name: &str, line: &str) -> io::Result<()> {
    let temporary = data.join(format!("{name}.tmp"));
    let mut file = files::create(&temporary)?;
    writeln!(file, "{line}")?;
    file.sync_all()?;
    fs::rename(&temporary, data.join(name))?;
    File::open(data)?.sync_all()
}

fn unwritten(data: &Path, error: &io::Error) -> Failure {
    Failure::told(
        Code::JoinNote,
        format!(
            "T4203 join-note: cannot write down in {} that this node joins: {error}; make the directory's parent, and \
             make it writable for the user that this node runs as",
            data.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stays_the_same_until_the_node_has_started() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let token = note(&data).expect("written");
        assert_eq!(note(&data).expect("read"), token);
        done(&data);
        done(&data);
        assert_ne!(note(&data).expect("written"), token);
    }

    #[test]
    fn the_members_that_were_told_are_known_again_and_no_note_keeps_a_node_from_starting() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path();
        assert!(told(data).as_slice().is_empty());
        let members: InitialMembers = "1=a:1,5=b:1".parse().expect("legal");
        write(data, TOLD, &members.to_flag()).expect("written");
        assert_eq!(told(data), members);
        for damaged in ["", "5", "1=a:1,1=b:1"] {
            fs::write(data.join(TOLD), damaged).expect("written");
            assert!(told(data).as_slice().is_empty(), "{damaged}");
        }
    }

    #[test]
    fn n19_a_node_that_joins_serves_jobs_where_members_on_other_hosts_do() {
        let member = |node_id: u64, host: &str, first: u32, count: u32| wire::MemberSight {
            node_id,
            job_host: host.into(),
            job_port_first: first,
            job_port_count: count,
            ..Default::default()
        };
        let told =
            |members: &[wire::MemberSight]| job_ports_of(members, "10.0.0.4").map(|range| range.to_string());
        let others = [member(2, "10.0.0.2", 43_000, 100), member(1, "10.0.0.1", 44_000, 1)];
        assert_eq!(told(&others), Some("44000-44000".into()));
        assert_eq!(told(&[member(1, "10.0.0.4", 8000, 100), others[0].clone()]), Some("43000-43099".into()));
        assert_eq!(told(&[member(1, "", 0, 0)]), None, "an older build does not tell");
        assert_eq!(told(&[member(1, "10.0.0.1", 65_000, 1_000)]), None, "no range of ports");

        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path();
        assert_eq!(told_job_ports(data), None);
        let owner = Owner { cluster_id: "c".into(), node: NodeId(4) };
        let job_ports = job_ports_of(&others, "10.0.0.4");
        let joined = Joined { owner, members: "1=a:1".parse().expect("legal"), job_ports };
        joined.write_down(data).expect("written");
        assert_eq!((told_job_ports(data), told(&[])), (job_ports, None));
        fs::write(data.join(TOLD_JOB_PORTS), "many").expect("written");
        assert_eq!(told_job_ports(data), None, "no note keeps a node from starting");
    }

    #[test]
    fn a_note_that_is_none_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(NOTE), "x").expect("written");
        let told = unwritten(directory.path(), &note(directory.path()).expect_err("refused")).to_string();
        assert!(told.starts_with("T4203 join-note: ") && told.contains("is no note"), "{told}");
    }
}
