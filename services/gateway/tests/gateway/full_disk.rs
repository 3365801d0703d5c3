//! A cluster whose disks are full, or whose memory for a job is.

use std::time::Duration;

use tokio::time::Instant;
use tripod_gateway::{Gateway, Mishap, Outage};
use tripod_state::{Command, session};

#[tokio::test(start_paused = true)]
async fn what_full_disks_refuse_is_told_at_once_and_not_held() {
    let (gateway, backend) = Gateway::in_memory();
    backend.set_mishaps(|_| Mishap::DiskFull);
    let began = Instant::now();
    let command = Command::Session(session::Command::Open);
    assert_eq!(gateway.submit(command).await, Err(Outage::DiskFull("mishap".to_owned())));
    assert!(began.elapsed() < Duration::from_secs(1), "held for {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_full_job_refuses_is_told_at_once_and_not_held() {
    let (gateway, backend) = Gateway::in_memory();
    backend.set_mishaps(|_| Mishap::JobFull);
    let began = Instant::now();
    let command = Command::Session(session::Command::Open);
    assert_eq!(gateway.submit(command).await, Err(Outage::JobFull("mishap".to_owned())));
    assert!(began.elapsed() < Duration::from_secs(1), "held for {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_nothing_of_an_earlier_attempt_whose_outcome_is_unknown() {
    let (gateway, backend) = Gateway::in_memory();
    let mut attempts = 0;
    backend.set_mishaps(move |envelope| match envelope.command {
        Command::Session(_) if envelope.stamp.is_none() => Mishap::Success,
        _ => {
            attempts += 1;
            if attempts == 1 { Mishap::UnknownAndLost } else { Mishap::DiskFull }
        }
    });
    let command = Command::Session(session::Command::Open);
    let outcome = gateway.submit(command).await;
    assert!(matches!(outcome, Err(Outage::Unknown(_))), "{outcome:?}");
}
