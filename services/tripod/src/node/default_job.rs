//! Job `default`, which lives on the client port: the leader makes sure that it exists.

use tokio::sync::watch;
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::code::Code;
use tripod_raft::Leadership;
use tripod_state::ids::{LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::job::{self, Spec};
use tripod_state::{ApplyContext, Command, Envelope, Fault, State, Topic};

use crate::failure::Failure;
use crate::node::DEFAULT_JOB;
use crate::node::retry::PAUSE;

/// Refuses at the start what the state machine would refuse later, where nobody looks.
pub(crate) fn check(spec: &Spec) -> Result<(), Failure> {
    let context = ApplyContext { index: LogIndex(1), term: Term(1), now_ms: TimeMs(0) };
    let envelope = Envelope { stamp: None, command: create(spec) };
    match State::default().apply(&context, envelope).reply {
        Ok(_) => Ok(()),
        Err(Fault::JobSpecInvalid { field, reason }) => {
            Err(Failure::new(Code::ValueIllegal, format!("job `{DEFAULT_JOB}`: {field}: {reason}")))
        }
        Err(fault) => Err(Failure::new(Code::ValueIllegal, format!("job `{DEFAULT_JOB}`: {fault:?}"))),
    }
}

/// Creates the job whenever this node leads and the job does not exist: at the first start, and after
/// somebody deleted it to begin anew.
pub(crate) async fn keep(gateway: Gateway, mut leadership: watch::Receiver<Leadership>, spec: Spec) {
    let mut jobs = gateway.watch(Topic::Jobs);
    let mut told = false;
    loop {
        let leads = leadership.borrow_and_update().ready_here;
        if leads && let Err(failure) = ensure(&gateway, &spec, &mut told).await {
            tracing::warn!(%failure, "job default could not be created");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        tokio::select! {
            () = jobs.changed() => {}
            changed = leadership.changed() => if changed.is_err() { return },
        }
    }
}

async fn ensure(gateway: &Gateway, spec: &Spec, told: &mut bool) -> Result<(), Failure> {
    let look = |state: &State| state.job_named(DEFAULT_JOB).and_then(|job| state.job(job));
    let known = gateway.read(Consistency::Local, look).await?;
    if let Some(known) = known {
        if known.spec != *spec && !*told {
            *told = true;
            tracing::warn!(
                tasks = known.spec.tasks,
                asked = spec.tasks,
                "job default exists with other parameters; `tripod job delete default` makes it anew"
            );
        }
        return Ok(());
    }
    match gateway.submit(create(spec)).await {
        Ok(Ok(_)) => {
            tracing::info!(tasks = spec.tasks, "job default created");
            Ok(())
        }
        Ok(Err(Fault::JobExists { .. })) => Ok(()),
        Ok(Err(fault)) => Err(Failure::new(Code::Refused, format!("refused: {fault:?}"))),
        Err(outage) => Err(outage.into()),
    }
}

fn create(spec: &Spec) -> Command {
    // Zero is what a client sends that was told no incarnation.
    let service = ServiceIncarnation(rand::random_range(1..=u64::MAX));
    Command::Job(job::Command::Create { name: DEFAULT_JOB.to_owned(), spec: spec.clone(), service })
}
