//! Gangs of tasks, one after the other: each is a job of its own, which meets at barriers and then ends in one
//! of several ways.

use std::time::Duration;

use rand::RngExt as _;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{DeleteJobRequest, JobSpec, PollMode};

use super::arrival::{Meeting, meet};
use super::beats::{LEADERS_WORD_MS, Pulse, TIMEOUT_MS};
use super::member::{CallEnd, Member};
use crate::client::{Answer, Client, Phase};
use crate::observation::{Life, SimTime};
use crate::witness::now;
use tripod_checkers::history::ClientId;

const TASKS: i32 = 3;
/// A silent task is found out within so many milliseconds, a little more than the rule says.
const FOUND_OUT_WITHIN_MS: u64 = 7000;
/// A leader that was cut off may answer beats for so long after it is back.
const AFTERMATH_MS: u64 = 2000;

/// How a gang ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Its job is deleted.
    Deleted,
    /// A task leaves and comes again as another life, and its old life calls.
    Haunted,
    /// A task falls silent.
    Silent,
}

pub(super) async fn run(mut client: Client) {
    for number in 1.. {
        let settled = client.settled();
        let ending = match client.dice.random_range(0..5) {
            _ if settled => Ending::Silent,
            0 => Ending::Deleted,
            1..=2 => Ending::Haunted,
            _ => Ending::Silent,
        };
        Gang::new(&mut client, number).await.live(&mut client, ending).await;
        if settled || client.phase() == Phase::Ending {
            return;
        }
    }
}

struct Gang {
    job: String,
    members: Vec<Member>,
    /// For each member, for its calls.
    clients: Vec<Client>,
    pulse: Pulse,
}

impl Gang {
    async fn new(client: &mut Client, number: u32) -> Self {
        let job = format!("gang-{number}");
        let poll = if client.dice.random_bool(0.5) { PollMode::Hold } else { PollMode::Release };
        let spec = JobSpec {
            tasks: TASKS.unsigned_abs(),
            heartbeat_timeout_ms: TIMEOUT_MS,
            register_timeout_ms: 60_000,
            shutdown_timeout_ms: Some(0),
            shutdown_barrier: Some(false),
            poll: poll.into(),
            ..JobSpec::default()
        };
        let service = client.job(&job, spec).await;
        let members = (0..TASKS).map(|task| Member { task: (job.clone(), task), service }).collect();
        let clients = (0..3).map(|task| client.sibling(ClientId(31 + task))).collect();
        Self { job, members, clients, pulse: Pulse::default() }
    }

    async fn live(mut self, client: &mut Client, ending: Ending) {
        client.witness.note(now(), "gang", format_args!("{} will end: {ending:?}", self.job));
        let pulse = self.pulse.clone();
        let members = self.members.clone();
        let beats = members.iter().map(|member| pulse.run(client.sibling(ClientId(40)), member));
        let beats = futures::future::join_all(beats.collect::<Vec<_>>());
        tokio::select! {
            biased;
            () = self.act(client, ending) => {}
            _ = beats => {}
        }
        self.delete(client).await;
    }

    async fn act(&mut self, client: &mut Client, ending: Ending) {
        if !self.register().await {
            return;
        }
        let rounds = client.dice.random_range(1..4);
        for round in 0..rounds {
            if client.settled() && round > 0 {
                break;
            }
            let absent = client.dice.random_ratio(1, 4).then(|| client.dice.random_range(0..TASKS));
            let timeout_ms = client.dice.random_range(1500..3000);
            let name = format!("{}-{round}", self.job);
            let meeting = Meeting { name, members: &self.members, absent, timeout_ms };
            let passed = meet(&client.witness, &meeting, &mut self.clients).await;
            if !passed && absent.is_none() && !client.settled() {
                break;
            }
            client.pause(300).await;
        }
        match ending {
            Ending::Deleted => {}
            Ending::Haunted => self.haunt(client).await,
            Ending::Silent => self.fall_silent(client).await,
        }
    }

    /// Registers all tasks at once, because each waits for the others.
    async fn register(&mut self) -> bool {
        let registering = self.members.iter().zip(&mut self.clients).map(|(member, client)| async {
            client.witness.task_will_beat(&member.task, TIMEOUT_MS);
            let told = member.register(client, Life(1)).await;
            if told == CallEnd::Yes {
                self.pulse.set(member.task.1, Life(1));
            }
            told
        });
        futures::future::join_all(registering).await.iter().all(|told| *told == CallEnd::Yes)
    }

    /// A task leaves and comes again as its second life; then its first life calls.
    async fn haunt(&mut self, client: &mut Client) {
        let member = &self.members[0];
        let task = member.task.1;
        self.pulse.stop(task);
        if member.leave(client).await != CallEnd::Yes
            || member.register(client, Life(2)).await != CallEnd::Yes
        {
            return;
        }
        self.pulse.set(task, Life(2));
        client.pause(500).await;
        let word = Duration::from_millis(LEADERS_WORD_MS);
        for _ in 0..3 {
            let calm = client.witness.calm_since(SimTime(now().0.saturating_sub(AFTERMATH_MS)));
            // Only the leader knows all lives at once, and one that was cut off may not.
            if let Some(beat) = member.beat(client, Life(1), word).await
                && beat.accepted
                && beat.member.is_some()
                && calm
                && client.witness.calm_since(SimTime(now().0.saturating_sub(AFTERMATH_MS)))
            {
                client.witness.life_acknowledged(&member.task, Life(1), beat.sent, "a heartbeat");
            }
        }
        member.register_zombie(client, Life(1)).await;
    }

    async fn fall_silent(&mut self, client: &mut Client) {
        let member = &self.members[client.dice.random_range(0..self.members.len())];
        while !self.pulse.is_heard(member.task.1) && client.phase() != Phase::Ending {
            client.pause(100).await;
        }
        self.pulse.stop(member.task.1);
        // A beat that is under way may still come.
        tokio::time::sleep(Duration::from_millis(TIMEOUT_MS / 2)).await;
        client.witness.note(now(), "gang", format_args!("{:?} is silent", member.task));
        // Before, the next fault may give it new time at any moment.
        if client.settled() {
            client.witness.task_silent(&member.task, now());
        }
        let settled = client.settled();
        let since = now();
        while now().since_ms(since) < FOUND_OUT_WITHIN_MS
            && client.settled() == settled
            && !client.witness.is_dead(&member.task)
        {
            client.pause(500).await;
        }
    }

    async fn delete(self, client: &mut Client) {
        while client.phase() != Phase::Ending {
            let mut jobs = JobsClient::new(client.channel());
            let name = self.job.clone();
            let deleted = client.ask(async move { jobs.delete(DeleteJobRequest { name }).await }).await;
            match deleted {
                Answer::Yes(_) | Answer::No(_) => return,
                Answer::NotExecuted(_) | Answer::Lost(_) => client.pause(200).await,
            }
        }
    }
}
