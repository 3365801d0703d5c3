//! The table is complete, decides as it is written, and is the one in the documentation.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use prost::Message as _;
use support::{compare, every_caller, job};
use tripod_gate::{
    Call, Caller, Check, Decision, Port, Reason, Right, Role, Rpc, Subject, decide, page, row,
};
use tripod_proto::code::Code;

/// Whose messages come with libraries: two of discovery, two of health.
const FROM_LIBRARIES: usize = 4;

#[test]
fn every_rpc_of_the_descriptors_is_known_and_no_other() {
    let files = prost_types::FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).unwrap().file;
    let mut paths = BTreeSet::new();
    for file in files.iter().filter(|file| file.package() != "etcdserverpb") {
        let dot = if file.package().is_empty() { "" } else { "." };
        for service in &file.service {
            for method in &service.method {
                paths.insert(format!("/{}{dot}{}/{}", file.package(), service.name(), method.name()));
            }
        }
    }
    for path in &paths {
        assert_eq!(Rpc::of_path(path).map(Rpc::path).as_deref(), Some(path.as_str()));
    }
    let known: BTreeSet<String> = Rpc::ALL.iter().map(|rpc| rpc.path()).collect();
    let others: Vec<&String> = known.difference(&paths).collect();
    assert_eq!((known.len(), others.len()), (Rpc::ALL.len(), FROM_LIBRARIES), "{others:?}");
}

#[test]
fn what_is_no_path_is_no_rpc() {
    for path in [
        "",
        "/",
        "tripod.v1.Jobs/Get",
        "/tripod.v1.Jobs",
        "/tripod.v1.Jobs/",
        "/tripod.v1.Jobs/Get/",
        "//Get",
    ] {
        assert_eq!(Rpc::of_path(path), None, "{path}");
    }
    for path in
        ["/tripod.v1.Jobs/get", "/tripod.v1.Jobs/Open", "/etcdserverpb.KV/Put", "/tripod.v1.Jobs/Get?x"]
    {
        assert_eq!(Rpc::of_path(path), None, "{path}");
    }
}

#[test]
fn every_rpc_is_served_on_some_port() {
    for rpc in Rpc::ALL {
        assert!(Port::ALL.iter().any(|port| port.serves(*rpc)), "{}", rpc.path());
    }
}

#[test]
fn whoever_may_call_something_of_itself_only_is_checked() {
    for (rpc, port) in served() {
        let row = row(rpc);
        for role in Role::ALL {
            let right = row.right(role, port);
            let is_checked = [Check::OwnTask, Check::OwnSession, Check::OwnProcess, Check::OwnNode]
                .into_iter()
                .any(|check| row.checks(role, right).has(check));
            assert_eq!(is_checked, right == Right::Itself, "{} by a {}", rpc.path(), role.word());
        }
    }
}

/// Each RPC on each port by each role, about the caller's own job, another one, and one that is not known yet.
#[test]
fn every_rpc_by_every_role_in_the_own_and_another_job_is_decided_as_written_down() {
    let mut out = String::from(
        "y allowed, ? allowed if it passes what is checked later, - refused; for every caller: its own job, another job, a job\n\
         that the call does not name\n",
    );
    let callers = every_caller();
    let _ =
        writeln!(out, "callers: {}\n", callers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "));
    for (rpc, at) in served() {
        let decisions = callers.iter().map(|(_, caller)| {
            let letter = |job| match decide(caller, &Call { rpc, at, job, subject: Subject::Unread }) {
                Decision::Allowed => 'y',
                Decision::InApply(_) => '?',
                Decision::Refused(_) => '-',
            };
            [letter(Some(&job("own"))), letter(Some(&job("other"))), letter(None)].iter().collect::<String>()
        });
        let decisions = decisions.collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "{:6} {decisions} {}", at.word(), rpc.path());
    }
    compare("tests/transcripts/every_rpc.txt", &out);
}

/// The same from the letters of the rows, and from nothing else.
#[test]
fn every_decision_is_what_its_row_says() {
    for ((rpc, at), (name, caller)) in
        served().flat_map(|served| every_caller().into_iter().map(move |caller| (served, caller)))
    {
        for about in ["own", "other"] {
            let about_job = job(about);
            let decided = decide(&caller, &Call { rpc, at, job: Some(&about_job), subject: Subject::Unread });
            let right = caller.role().map(|role| row(rpc).right(role, at));
            let is_free = matches!(caller.role(), Some(Role::Node | Role::Operator | Role::Viewer));
            let case = format!("{} by {name} about its {about} job: {decided:?}", rpc.path());
            match right {
                None if matches!(caller, Caller::Legacy) => assert_eq!(decided, Decision::Allowed, "{case}"),
                None => assert_eq!(decided == Decision::Allowed, row(rpc).is_for_everybody(), "{case}"),
                Some(Right::No) => assert_eq!(decided, Decision::Refused(Reason::Role), "{case}"),
                Some(Right::Job | Right::Itself) if about == "other" && !is_free => {
                    assert_eq!(decided, Decision::Refused(Reason::OtherJob), "{case}");
                }
                Some(Right::Itself) => assert!(matches!(decided, Decision::InApply(_)), "{case}"),
                Some(Right::Yes | Right::Job) => {
                    assert!(!matches!(decided, Decision::Refused(_)), "{case}");
                }
            }
        }
    }
}

#[test]
fn an_rpc_is_refused_on_every_port_that_does_not_serve_it() {
    for (rpc, at) in Rpc::ALL.iter().flat_map(|rpc| Port::ALL.map(|port| (*rpc, port))) {
        if !at.serves(rpc) {
            for (name, caller) in every_caller() {
                let decided = decide(&caller, &Call { rpc, at, job: None, subject: Subject::Unread });
                assert_eq!(decided, Decision::Refused(Reason::OtherPort), "{} by {name}", rpc.path());
            }
        }
    }
}

#[test]
fn the_documentation_has_the_table() {
    const BEGIN: &str = "<!-- made from the rows: begin -->\n";
    const END: &str = "<!-- made from the rows: end -->\n";
    let path = "../../docs/security/who-may-call-what.md";
    let page = support::read(path);
    let (before, rest) = page.split_once(BEGIN).expect("the page says where the table begins");
    let (_, after) = rest.split_once(END).expect("the page says where the table ends");
    let made = format!("{BEGIN}\n{}### What is checked later\n\n{}\n{END}", page::table(), page::checks());
    compare(path, &format!("{before}{made}{after}"));
}

#[test]
fn a_refusal_has_a_text_that_needs_no_escape() {
    for reason in Reason::ALL {
        let text = reason.to_string();
        assert!(text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'%'), "{text}");
        assert!([7, 12, 16].contains(&reason.code()));
        let code = Code::NotAuthorised;
        assert_eq!(reason.code() != 12, text.starts_with(&format!("{code}: ")), "{code}: {text}");
        assert!(reason.word().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    }
}

fn served() -> impl Iterator<Item = (Rpc, Port)> {
    Port::ALL
        .into_iter()
        .flat_map(|port| Rpc::ALL.iter().filter(move |rpc| port.serves(**rpc)).map(move |rpc| (*rpc, port)))
}
