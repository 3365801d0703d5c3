//! An append list: every element is a key of its own, and the order of the log is the order of the list.

use rand::RngExt as _;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{JobSpec, ListRequest, PutRequest};

use crate::client::Client;
use tripod_checkers::history::{Call, Element, Key, Outcome, Reply};

const JOB: &str = "lists";
const LISTS: u32 = 2;
/// More elements than a simulation appends.
const ELEMENTS_MAX: u32 = 5000;

pub(super) async fn run(mut client: Client) {
    client.job(JOB, JobSpec { tasks: 1, ..JobSpec::default() }).await;
    let mut appended = 0;
    while !client.done() {
        let list = Key::from(format!("l/{}", client.dice.random_range(0..LISTS)));
        if client.dice.random_ratio(2, 3) {
            appended += 1;
            let element = Element(u64::from(client.id.0) << 32 | appended);
            append(&mut client, list, element).await;
        } else {
            read(&mut client, list).await;
        }
        client.pause(250).await;
    }
    for list in 0..LISTS {
        read(&mut client, Key::from(format!("l/{list}"))).await;
    }
}

async fn append(client: &mut Client, list: Key, element: Element) {
    let call = Call::Append { list: list.clone(), element };
    let append = async |client: &mut Client| {
        let mut kv = KvClient::new(client.channel());
        let put = PutRequest {
            job: JOB.into(),
            key: format!("{list}/{element}"),
            value: element.to_string().into_bytes().into(),
            create_only: true,
            ..PutRequest::default()
        };
        let answer = client.ask(async move { kv.put(put).await }).await;
        answer.outcome(|_| Outcome::Ok(Reply::Done))
    };
    client.record(call, append).await;
}

async fn read(client: &mut Client, list: Key) {
    let call = Call::ReadList { list: list.clone() };
    let read = async |client: &mut Client| {
        let mut kv = KvClient::new(client.channel());
        let request = ListRequest {
            job: JOB.into(),
            prefix: format!("{list}/"),
            limit: ELEMENTS_MAX,
            ..ListRequest::default()
        };
        let answer = client.ask(async move { kv.list(request).await }).await;
        answer.outcome(|mut found| {
            found.keys.sort_by_key(|key| key.modified_index);
            let element = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok().map(Element);
            let elements: Option<Vec<_>> = found.keys.iter().map(|key| element(&key.value)).collect();
            match elements {
                Some(elements) if !found.more => Outcome::Ok(Reply::Elements(elements)),
                _ => Outcome::Fail("the page was not the list".into()),
            }
        })
    };
    client.record(call, read).await;
}
