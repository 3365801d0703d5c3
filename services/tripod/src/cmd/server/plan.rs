//! What a node is started with: made of its flags, which must not contradict each other.

use tripod_proto::code::Code;
use tripod_raft::{Owner, Timing};
use tripod_state::ids::{DurationMs, FeatureLevel, NodeId};
use tripod_state::level;

use super::{ServerArgs, ports};
use crate::args::initial::InitialMembers;
use crate::failure::Failure;
use crate::node::joining::{self, Joined};
use crate::node::{self, is_unspecified};

/// The highest feature level that this node is to support.
pub(super) fn level_max(asked: Option<u32>) -> FeatureLevel {
    asked.map_or(level::NEWEST, |asked| FeatureLevel(asked).min(level::NEWEST))
}

/// Where the others reach this node.
pub(super) fn reached_at(args: &ServerArgs) -> Result<String, Failure> {
    let (host, port) = args.peer.rsplit_once(':').expect("the flag was checked");
    match &args.advertise {
        _ if !is_unspecified(host) => Ok(args.peer.clone()),
        Some(host) => Ok(format!("{host}:{port}")),
        None => Err(Failure::new(
            Code::ConfigMissing,
            format!(
                "--peer {} names no host that other nodes could connect to; write it with this machine's host, or add \
                 --advertise HOST",
                args.peer
            ),
        )),
    }
}

/// Id and cluster of this node, and the first voters, or the members that it was told of when it joined.
fn place(args: &ServerArgs, joined: Option<Joined>) -> Result<(NodeId, String, InitialMembers), Failure> {
    if let Some(Joined { owner: Owner { cluster_id, node }, members, .. }) = joined {
        if args.node.is_some_and(|asked| asked != node.0) {
            return Err(Failure::new(
                Code::FlagsConflict,
                format!("this is node {node}: leave out --node, or correct it"),
            ));
        }
        let cluster_id = args.cluster_id.clone().unwrap_or(cluster_id);
        return Ok((node, cluster_id, members));
    }
    let missing = |key: &str, form: &str| {
        Failure::new(
            Code::ConfigMissing,
            format!(
                "`{key}` ({form}) missing; write it there or give it as a flag (a node that joins a running cluster \
                 needs `join` instead)"
            ),
        )
    };
    let node = NodeId(args.node.ok_or_else(|| missing("node", "ID"))?);
    let initial = args.initial.clone().ok_or_else(|| missing("initial", "ID=HOST:PORT,..."))?;
    if initial.peer(node).is_none() {
        return Err(Failure::new(
            Code::FlagsConflict,
            format!(
                "node {node} is not in --initial {}; name every voter there, this one too",
                initial.to_flag()
            ),
        ));
    }
    let cluster_id = args.cluster_id.clone().unwrap_or_else(|| initial.cluster_id());
    Ok((node, cluster_id, initial))
}

/// Everything but what is read from files.
pub(super) fn config(args: ServerArgs, joined: Option<Joined>) -> Result<node::Config, Failure> {
    let job_ports = joining::job_ports(args.job_ports, joined.as_ref());
    let (node, cluster_id, initial) = place(&args, joined)?;
    let pace = args.timing.timing();
    let timing = Timing {
        heartbeat: args.raft_heartbeat_ms.map_or(pace.heartbeat, DurationMs),
        election_min: args.election_min_ms.map_or(pace.election_min, DurationMs),
        election_max: args.election_max_ms.map_or(pace.election_max, DurationMs),
    };
    check_timing(timing)?;
    job_ports.check_apart(args.mindspore_ports)?;
    check_uids(&args)?;
    args.tls.check()?;
    let insecure = args.tls.serves_others_in_plain_text(&ports(&args));
    if args.mindspore_ports.is_some() && args.tls.is_strict_for_clients() {
        let text = "--mindspore-ports are in plain text, and with --client-tls strict no client may be; choose permissive, or \
                    leave one of them out";
        return Err(Failure::new(Code::FlagsConflict, text));
    }
    let backups = args.backup.plan()?;
    let audit = args.audit.plan()?;
    Ok(node::Config {
        node,
        cluster_id,
        data: args.data,
        client: args.client,
        peer: args.peer,
        http: args.http,
        ui: args.ui.unwrap_or_default(),
        initial,
        advertise: args.advertise,
        job_ports,
        mindspore_ports: args.mindspore_ports,
        client_socket: args.client_socket,
        socket_uids: args.socket_uids,
        default_job: args.job.to_spec(args.job.tasks(args.tasks)?.unwrap_or(1))?,
        timing,
        snapshot_every_entries: args.snapshot_every_entries,
        backups,
        connections: (args.client_connections, args.client_connections_per_address),
        dial_allow: args.dial_allow.unwrap_or_default(),
        tls: None,
        insecure,
        audit,
        authorise: args.tls.authorise(),
        protection: args.tls.protection(),
        below_floor: args.tls.starts_below_floor(),
        memory: args.memory.limits(),
        state: args.state.to_limits()?,
        level_max: level_max(args.feature_level_max),
    })
}

fn check_uids(args: &ServerArgs) -> Result<(), Failure> {
    let uids = &args.socket_uids;
    if !uids.is_empty() && args.client_socket.is_none() {
        let text =
            "--socket-uids says who may use the unix socket, and --client-socket where it is: give that, too";
        return Err(Failure::new(Code::FlagsConflict, text));
    }
    if uids.len() <= tripod_local::UIDS_MAX {
        return Ok(());
    }
    let text =
        format!("--socket-uids names {} users, and {} is the most", uids.len(), tripod_local::UIDS_MAX);
    Err(Failure::new(Code::ValueIllegal, text))
}

fn check_timing(timing: Timing) -> Result<(), Failure> {
    let Timing { heartbeat, election_min, election_max } = timing;
    if heartbeat.0 == 0 || election_min <= heartbeat || election_max <= election_min {
        return Err(Failure::new(
            Code::ValueIllegal,
            format!(
                "timing must rise: --raft-heartbeat-ms {heartbeat} < --election-min-ms {election_min} < \
                 --election-max-ms {election_max}"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::port_range::PortRange;
    use crate::failure::Exit;
    use crate::node::SNAPSHOT_EVERY_ENTRIES;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ServerArgs,
    }

    fn parse(more: &[&str]) -> Result<node::Config, Failure> {
        let least = ["tripod", "--data=d", "--client=a:1", "--peer=a:2", "--http=a:3"];
        let line = least.iter().chain(more).copied();
        config(Line::try_parse_from(line).expect("well-formed").args, None)
    }

    fn refusal(more: &[&str]) -> String {
        match parse(more) {
            Err(failure) if failure.exit() == Exit::Usage => failure.to_string(),
            other => panic!("not refused as wrong usage: {other:?}"),
        }
    }

    #[test]
    fn a_node_must_be_one_of_the_initial_voters() {
        let text = refusal(&["--node=4", "--initial=1=a:2,2=b:2"]);
        assert_eq!(
            text,
            "T1102 flags-conflict: node 4 is not in --initial 1=a:2,2=b:2; name every voter there, this one too"
        );
    }

    #[test]
    fn a_node_that_joined_is_who_the_cluster_or_its_directory_says() {
        let joined = |more: &[&str]| {
            let least = ["tripod", "--data=d", "--client=a:1", "--peer=a:2", "--http=a:3", "--join=a:9,b:9"];
            let line = least.iter().chain(more).copied();
            let owner = Owner { cluster_id: "prod".to_owned(), node: NodeId(4) };
            let members = "1=a:2,2=b:2".parse().expect("legal");
            let job_ports = Some(PortRange { first: 43_000, last: 43_099 });
            config(
                Line::try_parse_from(line).expect("well-formed").args,
                Some(Joined { owner, members, job_ports }),
            )
        };
        let ports = |more: &[&str]| joined(more).expect("legal").job_ports.to_string();
        assert_eq!(
            (ports(&[]), ports(&["--job-ports=9000-9001"])),
            ("43000-43099".into(), "9000-9001".into())
        );
        let config = joined(&[]).expect("legal");
        assert_eq!((config.node, config.cluster_id.as_str()), (NodeId(4), "prod"));
        assert_eq!(config.initial.to_flag(), "1=a:2,2=b:2", "whom it asks whether it still is a member");
        assert!(joined(&["--node=4"]).is_ok());
        assert_eq!(joined(&["--node=3"]).expect_err("refused").code(), Code::FlagsConflict);
    }

    #[test]
    fn the_address_at_which_others_reach_a_node_names_a_host() {
        let reached = |peer: &str, more: &[&str]| {
            let peer = format!("--peer={peer}");
            let least = ["tripod", "--data=d", "--client=a:1", &peer, "--http=a:3", "--join=a:9"];
            let line = least.iter().chain(more).copied();
            reached_at(&Line::try_parse_from(line).expect("well-formed").args)
        };
        assert_eq!(reached("a:2", &["--advertise=x"]).expect("legal"), "a:2");
        assert_eq!(reached("0.0.0.0:2", &["--advertise=x"]).expect("legal"), "x:2");
        assert_eq!(reached("0.0.0.0:2", &[]).expect_err("refused").code(), Code::ConfigMissing);
    }

    #[test]
    fn elections_must_be_slower_than_heartbeats() {
        let text = refusal(&["--node=1", "--initial=1=a:2", "--election-min-ms=100"]);
        assert!(text.starts_with("T1103 value-illegal: timing must rise"), "{text}");
    }

    #[test]
    fn a_pace_sets_the_clocks_that_are_not_given() {
        let clocks = |more: &[&str]| {
            let line = [&["--node=1", "--initial=1=a:2"], more].concat();
            let Timing { heartbeat, election_min, election_max } = parse(&line).expect("legal").timing;
            (heartbeat.0, election_min.0, election_max.0)
        };
        assert_eq!(clocks(&[]), (100, 300, 600));
        assert_eq!(clocks(&["--timing=fast"]), (50, 150, 300));
        assert_eq!(clocks(&["--timing=fast", "--election-max-ms=400"]), (50, 150, 400));
    }

    #[test]
    fn snapshots_are_as_frequent_as_the_flag_says_and_never_after_nothing() {
        let least = ["--node=1", "--initial=1=a:2"];
        let every = |more: &[&str]| parse(&[&least, more].concat()).expect("legal").snapshot_every_entries;
        assert_eq!(every(&[]), SNAPSHOT_EVERY_ENTRIES);
        assert_eq!(every(&["--snapshot-every-entries=500"]), 500);
        let line =
            ["tripod", "--data=d", "--client=a:1", "--peer=a:2", "--http=a:3", "--node=1", "--initial=1=a:2"];
        let refused = Line::try_parse_from([&line[..], &["--snapshot-every-entries=0"]].concat());
        let told = refused.expect_err("refused").to_string();
        assert!(told.contains("'--snapshot-every-entries <N>': 0 is not in 1..=1000000000"), "{told}");
    }

    #[test]
    fn the_cluster_id_is_derived_unless_it_is_given() {
        let derived = parse(&["--node=1", "--initial=1=a:2"]).expect("legal");
        assert_eq!(derived.cluster_id, "1=a:2".parse::<InitialMembers>().expect("legal").cluster_id());
        let given = parse(&["--node=1", "--initial=1=a:2", "--cluster-id=prod"]).expect("legal");
        assert_eq!(given.cluster_id, "prod");
    }
}
