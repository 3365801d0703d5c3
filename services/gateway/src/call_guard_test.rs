use std::sync::Arc;

use http::Request;
use tripod_gate::{Admitted, Check, Port, Tally};
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

use super::*;

const GET: &str = "/xla.coordination.CoordinationService/GetKeyValue";
const SUBMIT: &str = "/Scheduler/SubmitTask";

struct Case {
    guard: CallGuard,
    tally: Arc<Tally>,
}

impl Case {
    /// A node that knows the jobs `own` and `other`, and enforces.
    async fn new(port: Option<&str>) -> Self {
        let (gateway, _backend) = Gateway::in_memory();
        for name in ["own", "other"] {
            let (spec, service) = (job::Spec::of_tasks(1), ServiceIncarnation(7));
            let create = job::Command::Create { name: name.to_owned(), spec, service };
            gateway.submit(Command::Job(create)).await.unwrap().unwrap();
        }
        let tally = Arc::new(Tally::default());
        let gate = Arc::new(Gate::new(Port::Client, Mode::Enforce, Arc::clone(&tally)));
        let bearers = bearers(&gateway);
        let port = port.map_or(PortJob::Labelled(gateway), |job| PortJob::Own(named(job)));
        Self { guard: CallGuard { gate, bearers, port }, tally }
    }

    /// The job that a service finds named; or the refusal's code.
    fn call(&self, caller: Caller, host: &str, path: &str, job: Option<&str>) -> Result<String, Code> {
        let mut request = Request::builder().uri(format!("http://{host}:7700{path}"));
        if let Some(job) = job {
            request = request.header(metadata::JOB, job);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        self.guard.admit_from(&Arc::new(caller), &mut head).map_err(|status| status.code())?;
        assert!(Admitted::of(&head.extensions).is_none_or(|admitted| !admitted.checks().has(Check::OwnJob)));
        let named = head.headers.get(metadata::JOB).map(|job| job.to_str().unwrap().to_owned());
        Ok(named.unwrap_or_default())
    }
}

fn bearers(gateway: &Gateway) -> Bearers {
    let node: tripod_identity::Identity = "spiffe://example.org/tripod/main/node/a".parse().unwrap();
    Bearers::new(gateway, node.realm, false)
}

fn of(path: &str) -> Caller {
    Caller::by_path(format!("spiffe://example.org/tripod/main/{path}").parse().unwrap())
}

#[tokio::test]
async fn s35_the_label_of_a_host_names_a_job_that_the_service_then_finds() {
    let case = Case::new(None).await;
    let call = |path: &str, host, job| case.call(of(path), host, GET, job);
    let (task, default) = ("job/own/task", "job/default/task");
    assert_eq!(call(task, "own.coord.example", None), Ok("own".to_owned()));
    assert_eq!(call(task, "other.coord.example", None), Err(Code::PermissionDenied));
    assert_eq!(call(task, "coord.example", None), Err(Code::PermissionDenied), "it is about `default`");
    assert_eq!(call(task, "other.coord.example", Some("own")), Ok("own".to_owned()), "metadata come first");
    assert_eq!(call(task, "own.coord.example", Some("other")), Err(Code::PermissionDenied));
    // A host's name that names no job is that of a node.
    assert_eq!(call(default, "n1.coord.example", None), Ok("default".to_owned()));
    assert_eq!(call(default, "own.coord.example", None), Err(Code::PermissionDenied));
    // Whoever looks a job up by itself afterwards finds no other one.
    assert_eq!(case.call(of("job/default/driver"), "own.coord.example", SUBMIT, None), Ok(String::new()));
    assert_eq!(
        case.call(of("job/own/driver"), "own.coord.example", SUBMIT, None),
        Err(Code::PermissionDenied)
    );
}

#[tokio::test]
async fn s35_the_port_of_a_job_is_for_its_own() {
    let case = Case::new(Some("own")).await;
    let call = |path: &str, job| case.call(of(path), "other.coord.example", GET, job);
    assert_eq!(call("job/own/task", None), Ok(String::new()), "its label says nothing there");
    assert_eq!(call("job/other/task", None), Err(Code::PermissionDenied));
    assert_eq!(call("job/other/task", Some("other")), Ok("other".to_owned()));
    assert_eq!(call("job/own/task", Some("other")), Err(Code::PermissionDenied));
    assert_eq!((case.tally.refused(), case.tally.would_refuse()), (2, 0));
}

#[tokio::test]
async fn whoever_speaks_plain_text_is_a_task_on_a_jobs_port_and_anybody_elsewhere() {
    let connection = ConnectionCalls::default();
    let caller = Case::new(Some("own")).await.guard.caller(&connection).caller;
    assert_eq!(caller.to_string(), "listener/own");
    let connection = ConnectionCalls::default();
    let case = Case::new(None).await;
    let caller = || case.guard.caller(&connection).caller;
    assert_eq!(*caller(), Caller::Legacy);
    assert!(Arc::ptr_eq(&caller(), &caller()), "it is made once");
    let delete = case.call(Caller::Legacy, "n1", "/tripod.v1.Jobs/Delete", None);
    assert_eq!(delete, Ok(String::new()));
}

#[tokio::test]
async fn where_the_gate_is_off_only_who_shows_a_token_is_judged() {
    let gate = Arc::new(Gate::new(Port::Client, Mode::Off, Arc::default()));
    let (gateway, _backend) = Gateway::in_memory();
    let guard = CallGuard::new_labelled(&gate, &gateway, &bearers(&gateway));
    let call = |shown: Option<&str>| {
        let mut request = Request::builder().uri(format!("http://a:7700{GET}"));
        if let Some(shown) = shown {
            request = request.header("authorization", shown);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        guard.admit(&mut head, &ConnectionCalls::default()).map_err(|status| status.code())
    };
    assert_eq!((call(None), call(Some("Basic YTpi"))), (Ok(()), Ok(())));
    assert_eq!(call(Some("Bearer trp_viewer_x")), Err(Code::Unauthenticated));
}
