//! What happened to jobs and to the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::events_client::EventsClient;

/// How long one node waits for news: shorter than the time after which another node is asked.
const WAIT_SLICE: Duration = Duration::from_secs(2);
/// How long to rest when a node knows nothing of the job.
const REST: Duration = Duration::from_millis(200);
/// Events of which a follower knows which tasks it was told: more than can still grow.
const GROWING_KEPT: usize = 64;

/// Follows the events of one job, from whichever node answers.
#[derive(Debug)]
pub struct Follower {
    client: Client,
    job: String,
    /// Of the first answer: a job that is made anew under the name is another one.
    job_id: u64,
    position: Option<wire::EventPosition>,
    /// The number of the newest event that was told.
    told: u64,
    /// The newest events as they were told, by number.
    known: BTreeMap<u64, wire::Event>,
}

/// What has happened since.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    /// Those of an event that was told before are its new tasks and times only.
    pub events: Vec<wire::Event>,
    /// Events that were dropped before they could be told.
    pub dropped: u64,
    /// The job is gone, and nothing will follow.
    pub ended: bool,
}

impl Client {
    /// The events of a job that are wanted, or what is kept of one that was deleted; `None` if nothing is known of it.
    /// While nobody leads, what one node remembers.
    ///
    /// # Errors
    /// [`Error::Refused`] when the filter is not legal, else as any call.
    pub async fn job_events(
        &self,
        job: &str,
        filter: wire::EventFilter,
    ) -> Result<Option<wire::EventsResponse>, Error> {
        let filter = Some(filter);
        self.events(wire::JobEventsRequest { job: job.to_owned(), filter, ..Default::default() }).await
    }

    /// The milestones of all jobs and the cluster's own events that are wanted, as [`Self::job_events`].
    ///
    /// # Errors
    /// [`Error::Refused`] when the filter is not legal, else as any call.
    pub async fn cluster_events(&self, filter: wire::EventFilter) -> Result<wire::EventsResponse, Error> {
        self.ask_events(wire::ClusterEventsRequest { filter: Some(filter), node_id: 0 }).await
    }

    /// What that member has seen itself since it began, by its own clock. `of_node` of the answer is 0 if the node that was asked
    /// is of an earlier build: then it is [`Self::cluster_events`].
    ///
    /// # Errors
    /// [`Error::Refused`] when the member does not say it, or the filter is not legal, else as any call.
    pub async fn node_events(
        &self,
        node_id: u64,
        filter: wire::EventFilter,
    ) -> Result<wire::EventsResponse, Error> {
        self.ask_events(wire::ClusterEventsRequest { filter: Some(filter), node_id }).await
    }

    async fn ask_events(&self, request: wire::ClusterEventsRequest) -> Result<wire::EventsResponse, Error> {
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).of_cluster(request).await }
        };
        self.caller().call("events", Repeat::Freely, ask).await
    }

    /// Follows a job from an answer on. The first news is what has changed behind that.
    #[must_use]
    pub fn follow_events(&self, job: &str, from: &wire::EventsResponse) -> Follower {
        let ring = from.rings.first().cloned().unwrap_or_default();
        let mut follower = Follower {
            client: self.clone(),
            job: job.to_owned(),
            job_id: ring.job_id,
            position: from.position,
            told: ring.made,
            known: BTreeMap::new(),
        };
        from.events.iter().for_each(|event| follower.know(event));
        follower
    }

    async fn events(&self, request: wire::JobEventsRequest) -> Result<Option<wire::EventsResponse>, Error> {
        let ask = |way: Way| {
            let request = request.clone();
            async move { client(way).of_job(request).await }
        };
        match self.caller().call("job events", Repeat::Freely, ask).await {
            Ok(events) => Ok(Some(events)),
            Err(Error::Refused { code: tonic::Code::NotFound, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Follower {
    /// What has happened since the last call; waits for something, but not for long.
    ///
    /// # Errors
    /// As any call. Whoever calls again misses nothing.
    pub async fn next(&mut self) -> Result<News, Error> {
        let request = wire::JobEventsRequest {
            job: self.job.clone(),
            job_id: self.job_id,
            filter: None,
            after: self.position.or(Some(wire::EventPosition::default())),
            wait_ms: u64::try_from(WAIT_SLICE.as_millis()).unwrap_or(u64::MAX),
        };
        match self.client.events(request).await? {
            Some(answer) => Ok(self.take(answer)),
            // Another node may not have heard of it yet, or nobody remembers it any more.
            None => {
                tokio::time::sleep(REST).await;
                Ok(News::default())
            }
        }
    }

    /// What is news in an answer. One of a node that is behind has none.
    fn take(&mut self, answer: wire::EventsResponse) -> News {
        let ring = answer.rings.first().cloned().unwrap_or_default();
        let place =
            |at: Option<wire::EventPosition>| at.map(|at| (at.index, at.sequence)).unwrap_or_default();
        if place(answer.position) < place(self.position) {
            return News::default();
        }
        let told = answer.events.iter().filter(|event| event.number > self.told).count() as u64;
        let dropped = ring.made.saturating_sub(self.told).saturating_sub(told);
        self.told = self.told.max(ring.made);
        self.position = answer.position;
        let events = answer.events.into_iter().map(|event| {
            let news = match self.known.get(&event.number) {
                Some(before) => since(before, &event),
                None => event.clone(),
            };
            self.know(&event);
            news
        });
        let events = events.collect();
        News { events, dropped, ended: ring.ended }
    }

    fn know(&mut self, event: &wire::Event) {
        self.known.insert(event.number, event.clone());
        while self.known.len() > GROWING_KEPT {
            self.known.pop_first();
        }
    }
}

/// What an event tells that it did not tell before.
fn since(before: &wire::Event, now: &wire::Event) -> wire::Event {
    let tasks = now.tasks.iter().flat_map(|range| without(*range, &before.tasks)).collect();
    let times = now.times.saturating_sub(before.times);
    wire::Event { tasks, times, at_ms: now.until_ms, ..now.clone() }
}

/// The parts of a range that are in none of the others, which ascend.
fn without(range: wire::TaskRange, others: &[wire::TaskRange]) -> Vec<wire::TaskRange> {
    let (mut parts, mut first) = (Vec::new(), range.first);
    for other in others.iter().filter(|other| other.first <= range.last && other.last >= range.first) {
        if other.first > first {
            parts.push(wire::TaskRange { first, last: other.first - 1 });
        }
        first = first.max(other.last.saturating_add(1));
    }
    if first <= range.last {
        parts.push(wire::TaskRange { first, last: range.last });
    }
    parts
}

fn client(way: Way) -> EventsClient<Way> {
    EventsClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn range(first: i32, last: i32) -> wire::TaskRange {
        wire::TaskRange { first, last }
    }

    fn event(number: u64, index: u64, tasks: &[wire::TaskRange]) -> wire::Event {
        let last = Some(wire::EventPosition { index, sequence: 1 });
        wire::Event {
            number,
            last,
            tasks: tasks.to_vec(),
            times: u32::try_from(tasks.len()).unwrap(),
            ..wire::Event::default()
        }
    }

    fn answer(made: u64, index: u64, events: Vec<wire::Event>) -> wire::EventsResponse {
        let rings = vec![wire::EventRing { job_id: 7, made, ..wire::EventRing::default() }];
        let position = Some(wire::EventPosition { index, sequence: 1 });
        wire::EventsResponse { events, rings, position, ..wire::EventsResponse::default() }
    }

    #[test]
    fn what_a_range_has_besides_others_is_what_is_new() {
        assert_eq!(without(range(0, 9), &[]), [range(0, 9)]);
        assert_eq!(without(range(0, 9), &[range(2, 3), range(9, 12)]), [range(0, 1), range(4, 8)]);
        assert_eq!(without(range(3, 4), &[range(0, 9)]), []);
    }

    #[tokio::test]
    async fn a_follower_tells_everything_once_and_counts_what_was_dropped() {
        let config = Config { endpoints: vec!["127.0.0.1:1".into()], timeout: Duration::from_secs(1) };
        let client = Client::new(&config).unwrap();
        let mut follower = client.follow_events("a", &answer(2, 5, vec![event(2, 5, &[range(0, 1)])]));
        // The last one has grown, and there is another.
        let grown = event(2, 7, &[range(0, 3)]);
        let news = follower.take(answer(3, 8, vec![grown, event(3, 8, &[])]));
        assert_eq!(
            news.events.iter().map(|event| event.tasks.clone()).collect::<Vec<_>>(),
            [vec![range(2, 3)], vec![]]
        );
        assert_eq!((news.dropped, news.ended), (0, false));
        // A node that is behind tells nothing again.
        assert_eq!(follower.take(answer(2, 5, vec![event(2, 5, &[range(0, 1)])])), News::default());
        // Of ten more only two are left.
        let news = follower.take(answer(13, 40, vec![event(12, 39, &[]), event(13, 40, &[])]));
        assert_eq!((news.events.len(), news.dropped), (2, 8));
    }
}
