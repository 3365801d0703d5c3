//! What holds of identities for every sequence of commands.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::identity::Identity;
use tripod_state::ids::{Incarnation, JobId, Sequence, ServiceIncarnation, SessionId, TaskId};
use tripod_state::job::{self, Spec};
use tripod_state::session::{Command as Session, Owner};
use tripod_state::{Command, Fault, Reply, Scope, Stamp, kv, level, task};

use crate::Replica;

const SCOPE: Scope = Scope { job: JobId(2), service: None };

/// Whether it bears a stamp, of which session and number; who proposes it; what.
type Step = (Option<(u128, u64)>, Option<&'static str>, Command);

fn command() -> impl Strategy<Value = Command> {
    let task = || (0_i32..2).prop_map(TaskId);
    let life = || (1_u64..3).prop_map(Incarnation);
    let session = || (1_u128..3).prop_map(SessionId::of_client);
    prop_oneof![
        4 => (task(), life()).prop_map(|(task, incarnation)| {
            let protocol = task::Protocol::Xla;
            Command::Task(task::Command::Register { scope: SCOPE, task, incarnation, recoverable: false, protocol })
        }),
        2 => (task(), life(), select(vec!["a3-7", "b1"])).prop_map(|(task, incarnation, host)| {
            let (recoverable, protocol) = (true, task::Protocol::Xla);
            let register = task::Command::Register { scope: SCOPE, task, incarnation, recoverable, protocol };
            Command::Task(register).with_origin(|| task::Origin { host: host.into(), ..task::Origin::default() })
        }),
        2 => (task(), life()).prop_map(|(task, incarnation)| {
            Command::Task(task::Command::End { scope: SCOPE, task, incarnation })
        }),
        2 => task().prop_map(|task| Command::Task(task::Command::Reset { scope: SCOPE, task })),
        2 => Just(Command::Kv(kv::Command::Increment { scope: SCOPE, key: "n".into(), by: 1, caller: None })),
        2 => session().prop_map(|id| Command::Session(Session::OpenFor { id, owner: Owner::Client(None) })),
        1 => session().prop_map(|session| Command::Session(Session::Close { session })),
        1 => Just(Command::Session(Session::ExpireIdle { before_ms: tripod_state::ids::TimeMs(0) })),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let paths = vec![
        None,
        Some("job/w/agent"),
        Some("job/w/task"),
        Some("job/w/task/0"),
        Some("job/w/task/1"),
        Some("job/v/agent"),
        Some("job/w/worker"),
        Some("operator/ann"),
    ];
    let stamp = prop_oneof![1 => Just(None), 2 => ((1_u128..3), (1_u64..4)).prop_map(Some)];
    (stamp, select(paths), command())
}

fn started() -> Replica {
    let mut replica = Replica::default();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    replica.apply(None, Command::Level(raise)).reply.expect("there are no members");
    let (spec, service) = (Spec::of_tasks(2), ServiceIncarnation(9));
    let create = job::Command::Create { name: "w".into(), spec, service };
    replica.apply(None, Command::Job(create)).reply.expect("the name is free");
    replica
}

fn run(replica: &mut Replica, (stamp, path, command): &Step) -> Reply {
    let stamp = stamp.map(|(session, sequence)| Stamp {
        session: SessionId::of_client(session),
        sequence: Sequence(sequence),
        acknowledged_below: Sequence(1),
    });
    let command = match path {
        Some(path) => command.clone().by(Identity::of_path(path).expect("a path")),
        None => command.clone(),
    };
    replica.apply(stamp, command).reply
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identities_come_through_a_snapshot_and_are_counted(steps in vec(step(), 1..60), cut in 0_usize..60) {
        let (mut whole, mut resumed) = (started(), started());
        for (number, one) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
            }
            prop_assert_eq!(run(&mut whole, one), run(&mut resumed, one));
            prop_assert_eq!(whole.state.bytes(), whole.state.recounted_bytes());
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.state == resumed.state);
        prop_assert!(whole.through_a_snapshot().state == whole.state);
    }

    /// Nobody is refused without having proved to be somebody, now or with the same stamp before, and a refusal changes nothing but
    /// what a session remembers.
    #[test]
    fn a_refusal_of_an_identity_changes_nothing(steps in vec(step(), 1..60)) {
        let mut replica = started();
        for one in &steps {
            let before = replica.state.clone();
            let reply = run(&mut replica, one);
            if let Err(Fault::NotAuthorised(_)) = reply {
                prop_assert!(one.1.is_some() || one.0.is_some());
                prop_assert!(one.0.is_some() || replica.state == before);
            }
        }
    }
}
