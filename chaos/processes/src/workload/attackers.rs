//! Attackers: every kind of attack one after the other, in an order that the seed decides, each small enough that the others
//! of a short run still have a machine to run on.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tokio::task::JoinSet;

use super::setting::Setting;
use crate::attack::calls::{self, List};
use crate::attack::wire::{self, HALF_HEAD, Half, OPEN_HEADERS, PREFACE};
use crate::attack::{Aim, Bounds, Tally, flood, peers, sessions, state};

const ATTACKERS: usize = 2;
const REST_MAX_MS: u64 = 1_000;
/// How long one attack lasts at most.
const TIME: Duration = Duration::from_secs(2);
/// The largest message that a node takes.
const ANNOUNCED_BYTES: u32 = 66 << 20;
/// Of these the directory is that is asked for and not read.
const DIRECTORY: &str = "attack/state";
const DIRECTORY_KEYS: usize = 64;
const VALUE_BYTES: usize = 64 << 10;
/// Elements of an absurd list.
const ELEMENTS: usize = 2_000_000;
/// Members of a wide barrier: fewer than a message may have, and more than the job has tasks.
const MEMBERS: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Silent,
    HalfPrefaces,
    OpenHeaders,
    HalfHeads,
    Resets,
    HalfMessages,
    Announcements,
    UnreadDirectories,
    UnreadBackups,
    WaitingGets,
    LongLooks,
    MadeUpBeats,
    AddressesOfOthers,
    Lists,
    OpenSessions,
    GuessSessions,
    Keys,
    Barriers,
    WideBarriers,
    Jobs,
    Flood,
    Votes,
    Garbage,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let Some(aim) = &setting.aim else { return };
    for _ in 0..ATTACKERS {
        let random = setting.random(setting.client_id());
        clients.spawn(run(setting.clone(), aim.clone(), random));
    }
}

async fn run(mut setting: Setting, aim: Aim, mut random: StdRng) {
    let mut attacks = Attack::ALL;
    loop {
        attacks.shuffle(&mut random);
        for attack in attacks {
            if !setting.goes_on() {
                return;
            }
            setting.attacked(attack.name(), &attack.make(&aim).await);
            setting.rest(&mut random, REST_MAX_MS).await;
        }
    }
}

impl Attack {
    const ALL: [Self; 23] = [
        Self::Silent,
        Self::HalfPrefaces,
        Self::OpenHeaders,
        Self::HalfHeads,
        Self::Resets,
        Self::HalfMessages,
        Self::Announcements,
        Self::UnreadDirectories,
        Self::UnreadBackups,
        Self::WaitingGets,
        Self::LongLooks,
        Self::MadeUpBeats,
        Self::AddressesOfOthers,
        Self::Lists,
        Self::OpenSessions,
        Self::GuessSessions,
        Self::Keys,
        Self::Barriers,
        Self::WideBarriers,
        Self::Jobs,
        Self::Flood,
        Self::Votes,
        Self::Garbage,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent connections",
            Self::HalfPrefaces => "half prefaces",
            Self::OpenHeaders => "headers without an end",
            Self::HalfHeads => "half heads of HTTP/1",
            Self::Resets => "calls that are taken back",
            Self::HalfMessages => "half messages",
            Self::Announcements => "messages that are only announced",
            Self::UnreadDirectories => "unread directories",
            Self::UnreadBackups => "unread backups",
            Self::WaitingGets => "gets that wait",
            Self::LongLooks => "long looks",
            Self::MadeUpBeats => "heartbeats of nobody",
            Self::AddressesOfOthers => "addresses of others",
            Self::Lists => "absurd lists",
            Self::OpenSessions => "sessions without end",
            Self::GuessSessions => "sessions of others",
            Self::Keys => "large keys",
            Self::Barriers => "barriers without end",
            Self::WideBarriers => "barriers of everybody",
            Self::Jobs => "jobs without end",
            Self::Flood => "cheap writes without end",
            Self::Votes => "votes of the last term",
            Self::Garbage => "garbage at the peer port",
        }
    }

    async fn make(self, aim: &Aim) -> Tally {
        let upto = |count| Bounds { count, time: TIME };
        let half = |sent_bytes| Half { announced_bytes: ANNOUNCED_BYTES, sent_bytes };
        match self {
            Self::Silent => wire::silent(aim, upto(200), b"").await,
            Self::HalfPrefaces => wire::silent(aim, upto(200), &PREFACE[..PREFACE.len() / 2]).await,
            Self::OpenHeaders => wire::silent(aim, upto(200), OPEN_HEADERS).await,
            Self::HalfHeads => wire::silent(aim, upto(200), HALF_HEAD).await,
            Self::Resets => wire::resets(aim, upto(20_000), 2).await,
            Self::HalfMessages => wire::half_messages(aim, upto(8), 2, half(16 << 20)).await,
            Self::Announcements => wire::half_messages(aim, upto(1_000), 2, half(0)).await,
            Self::UnreadDirectories => calls::unread_directories(aim, upto(16), 2, DIRECTORY).await,
            Self::UnreadBackups => calls::unread_backups(aim, upto(100), 1).await,
            Self::WaitingGets => calls::waiting_gets(aim, upto(2_000), 4).await,
            Self::LongLooks => calls::long_looks(aim, upto(1_000), 8).await,
            Self::MadeUpBeats => calls::made_up_beats(aim, upto(20), 4_096).await,
            Self::AddressesOfOthers => calls::addresses_of_others(aim, upto(100)).await,
            Self::Lists => {
                let mut tally = Tally::default();
                for list in List::ALL {
                    tally.merge(&calls::absurd_lists(aim, upto(1), list, ELEMENTS).await);
                }
                tally
            }
            Self::OpenSessions => sessions::open(aim, upto(5_000)).await,
            Self::GuessSessions => sessions::guess(aim, upto(2_000), 1).await,
            Self::Keys => {
                let prefix = format!("{DIRECTORY}/");
                state::keys(aim, upto(DIRECTORY_KEYS), &prefix, VALUE_BYTES).await
            }
            Self::Barriers => state::barriers(aim, upto(500), 1_000).await,
            Self::WideBarriers => state::wide_barriers(aim, upto(200), MEMBERS).await,
            Self::Jobs => state::jobs(aim, upto(40)).await,
            Self::Flood => flood::writes(aim, 16, 32, TIME).await,
            Self::Votes => peers::votes_of_the_last_term(aim).await,
            Self::Garbage => peers::garbage(aim).await,
        }
    }
}
