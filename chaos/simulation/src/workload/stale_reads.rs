//! Clients that stay with a leader when others have replaced it, and one that writes to its successor: what is read after
//! such a write was acknowledged must not be older than it.
//!
//! They know from outside who leads by its own word, as no client does. While one node does they read and write there now
//! and then, so that their connections are there; while two do, which is for a moment, they do nothing else.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use rand::RngExt as _;
use tripod_proto::tripod::v1::JobSpec;

use super::Setting;
use super::keys::{self, Way};
use crate::client::{Client, Phase};
use crate::node::Site;
use crate::stale_leader::leaders;
use tripod_checkers::history::{Call, ClientId, Key, Value};

/// Where they are.
pub(crate) const HOST: &str = "stale";
const WRITER: u32 = 90;
/// Several, each of which begins its reads at times of its own.
const READERS: [u32; 3] = [91, 92, 93];
/// No other client uses it.
const KEY: &str = "stale";
/// How long a read may take: one that began before a write was acknowledged proves nothing.
const READ_PATIENCE: Duration = Duration::from_millis(60);
const WRITE_PATIENCE: Duration = Duration::from_secs(1);
/// The longest pause between two looks at who leads, in milliseconds.
const LOOK_MS: u64 = 15;
/// At one of so many looks there is a call, while one node leads.
const LOOKS_A_CALL: u32 = 16;

pub(super) async fn run(setting: &Setting) {
    let mut writer = setting.client(WRITER);
    writer.job(keys::JOB, JobSpec { tasks: 1, ..JobSpec::default() }).await;
    let readers = READERS.map(|id| writer.sibling(ClientId(id)));
    let reading = join_all(readers.into_iter().map(|reader| read(reader, Rc::clone(&setting.sites))));
    join(write(writer, Rc::clone(&setting.sites)), reading).await;
}

/// Which leader is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The one of the earliest term.
    Oldest,
    Newest,
}

/// Waits a little. Gives the place of a node that leads by its own word, if it is to be called now, and whether another
/// one leads by its own, too.
async fn look(client: &mut Client, sites: &[Arc<Site>], which: Which) -> Option<(usize, bool)> {
    client.pause(LOOK_MS).await;
    let leaders = leaders(sites);
    let found = if which == Which::Oldest { leaders.first() } else { leaders.last() };
    let (_, place) = *found?;
    let are_two = leaders.len() > 1;
    (are_two || client.dice.random_ratio(1, LOOKS_A_CALL)).then_some((place, are_two))
}

async fn read(mut client: Client, sites: Rc<[Arc<Site>]>) {
    let key = Key::from(KEY);
    while client.phase() == Phase::Faults {
        let Some((place, are_two)) = look(&mut client, &sites, Which::Oldest).await else { continue };
        if are_two {
            client.witness.count("reads of stale leaders");
        }
        let way = Way { channel: client.channel_at(place), patience: READ_PATIENCE };
        let call = Call::Read { key: key.clone() };
        client.record(call, async |client| keys::read_v1(client, way, &key).await).await;
    }
}

async fn write(mut client: Client, sites: Rc<[Arc<Site>]>) {
    let key = Key::from(KEY);
    let mut written = 0;
    while client.phase() == Phase::Faults {
        let Some((place, _)) = look(&mut client, &sites, Which::Newest).await else { continue };
        written += 1;
        let value = Value(u64::from(client.id.0) << 32 | written);
        let way = Way { channel: client.channel_at(place), patience: WRITE_PATIENCE };
        let call = Call::Write { key: key.clone(), value };
        client.record(call, async |client| keys::write_v1(client, way, &key, value, None).await).await;
    }
}
