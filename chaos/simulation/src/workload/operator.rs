//! An operator who changes the members while everything else goes on: some changes are wise, some are refused, and
//! some are left to whoever leads next.

use std::sync::Arc;

use rand::RngExt as _;
use tonic::{Response, Status};
use tripod_proto::tripod::v1 as wire;
use tripod_proto::tripod::v1::change_members_request::Change;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_state::ids::NodeId;

use crate::client::{Answer, Client, Phase};
use crate::node::Site;
use crate::witness::now;

/// The longest pause between two changes.
const PAUSE_MS: u64 = 900;
/// Fewer voters are not wanted, but for a while between two changes.
const VOTERS_MIN: usize = 2;
/// More members are not wanted: machines must be left for replacements.
const MEMBERS_MAX: usize = 6;

/// What the operator knows of the members.
struct KnownMembers {
    voters: Vec<u64>,
    learners: Vec<u64>,
    open: Option<u64>,
}

pub(super) async fn run(mut client: Client, sites: &[Arc<Site>]) {
    let mut operator = Operator { client: &mut client, sites };
    while operator.client.phase() == Phase::Faults {
        operator.client.pause(PAUSE_MS).await;
        operator.turn().await;
    }
    // Changes that are under way must come to their end by themselves.
    while operator.known().await.is_none_or(|known| known.open.is_some()) {
        operator.client.pause(100).await;
    }
}

struct Operator<'a> {
    client: &'a mut Client,
    sites: &'a [Arc<Site>],
}

impl Operator<'_> {
    async fn turn(&mut self) {
        let Some(known) = self.known().await else { return };
        match self.client.dice.random_range(0..20) {
            0..=4 => self.add().await,
            5..=8 => self.of_one(&known.learners, Change::Promote).await,
            9..=10 if known.voters.len() > VOTERS_MIN => self.of_one(&known.voters, Change::Demote).await,
            11..=13 if known.voters.len() + known.learners.len() > VOTERS_MIN => {
                let all = [known.voters, known.learners].concat();
                self.of_one(&all, Change::Remove).await;
            }
            14..=16 => self.replace(&known).await,
            17 => self.transfer(&known.voters).await,
            18 => self.cancel(known.open).await,
            _ => self.nonsense().await,
        }
    }

    /// The members, as whichever node is asked knows them.
    async fn known(&mut self) -> Option<KnownMembers> {
        let mut cluster = ClusterClient::new(self.client.channel());
        let asked = async move { cluster.list_members(wire::ListMembersRequest {}).await };
        let Answer::Yes(list) = self.client.ask(asked).await else { return None };
        let votes = list.votes?;
        let open = list.open.map(|open| open.id);
        Some(KnownMembers { voters: votes.voters, learners: votes.learners, open })
    }

    /// A machine without a node.
    fn free(&mut self) -> Option<Arc<Site>> {
        let free: Vec<_> = self.sites.iter().filter(|site| site.is_vacant()).collect();
        let taken = self.sites.len() - free.len();
        let limit = MEMBERS_MAX.min(self.sites.len());
        if free.is_empty() || taken >= limit {
            return None;
        }
        Some(Arc::clone(free[self.client.dice.random_range(0..free.len())]))
    }

    async fn add(&mut self) {
        let Some(site) = self.free() else { return };
        // A node may also come by itself.
        let comes = self.client.dice.random_bool(0.3)
            || self.change(Change::Add(wire::AddMember { peer_address: site.peer() })).await;
        if comes {
            site.invite();
        }
    }

    async fn replace(&mut self, known: &KnownMembers) {
        let all = [&known.voters[..], &known.learners].concat();
        let (Some(site), Some(node_id)) = (self.free(), self.one(&all)) else { return };
        let peer_address = site.peer();
        if self.change(Change::Replace(wire::ReplaceMember { node_id, peer_address })).await {
            site.invite();
        }
    }

    fn one(&mut self, of: &[u64]) -> Option<u64> {
        (!of.is_empty()).then(|| of[self.client.dice.random_range(0..of.len())])
    }

    async fn of_one(&mut self, of: &[u64], change: fn(u64) -> Change) {
        if let Some(node) = self.one(of) {
            self.change(change(node)).await;
        }
    }

    /// Has the leader begin a change; tells whether it may have begun.
    async fn change(&mut self, change: Change) -> bool {
        let words = format!("{change:?}");
        let request = wire::ChangeMembersRequest {
            change: Some(change),
            by: "the operator".to_owned(),
            plan: self.client.dice.random_ratio(1, 12),
            force: false,
        };
        let plan = request.plan;
        let begun = self
            .ask_leader(async |mut cluster: ClusterClient<_>| cluster.change_members(request.clone()).await)
            .await;
        self.note(&words, &begun);
        match begun {
            Answer::Yes(_) if plan => false,
            Answer::Yes(_) => {
                self.client.witness.count("changes of members");
                true
            }
            Answer::Lost(_) => true,
            Answer::No(_) | Answer::NotExecuted(_) => false,
        }
    }

    async fn transfer(&mut self, voters: &[u64]) {
        let to = self.one(voters).filter(|_| self.client.dice.random_bool(0.5)).unwrap_or_default();
        let request = wire::TransferLeaderRequest { to };
        let told = self
            .ask_leader(async |mut cluster: ClusterClient<_>| cluster.transfer_leader(request).await)
            .await;
        self.note("transfer", &told);
        if matches!(told, Answer::Yes(_)) {
            self.client.witness.count("leaders that handed over");
        }
    }

    async fn cancel(&mut self, open: Option<u64>) {
        let Some(change_id) = open else { return };
        let request = wire::CancelChangeRequest { change_id };
        let told =
            self.ask_leader(async |mut cluster: ClusterClient<_>| cluster.cancel_change(request).await).await;
        self.note("cancel", &told);
    }

    /// What must be refused: an id that left, or was never given.
    async fn nonsense(&mut self) {
        let last = self.client.witness.last_members();
        let highest = last.nodes.last().map_or(1, |node| node.0);
        let gone: Vec<u64> = (1..highest).filter(|node| !last.nodes.contains(&NodeId(*node))).collect();
        let node = self.one(&gone).unwrap_or(highest + 1000);
        let request = wire::ChangeMembersRequest {
            change: Some(Change::Promote(node)),
            ..wire::ChangeMembersRequest::default()
        };
        let told = self
            .ask_leader(async |mut cluster: ClusterClient<_>| cluster.change_members(request.clone()).await)
            .await;
        self.note("promote of nobody", &told);
        if matches!(told, Answer::Yes(_)) {
            let what = format!("node {node} was to be promoted, which is none");
            self.client.witness.broken(now(), "one membership", what);
        }
    }

    /// Asks one node after the other, until one takes it for the leader's.
    async fn ask_leader<T>(
        &mut self,
        ask: impl AsyncFn(ClusterClient<tonic::transport::Channel>) -> Result<Response<T>, Status>,
    ) -> Answer<T> {
        let mut answer = Answer::NotExecuted("nobody was asked".to_owned());
        for _ in 0..self.sites.len() {
            let (_, channel) = self.client.next_channel();
            answer = self.client.ask(ask(ClusterClient::new(channel))).await;
            let elsewhere = match &answer {
                Answer::No(status) => {
                    status.metadata().get("tripod-reason").is_some_and(|reason| reason == "not-leader")
                        || status.message().contains("does not lead")
                }
                Answer::NotExecuted(_) => true,
                Answer::Yes(_) | Answer::Lost(_) => false,
            };
            if !elsewhere {
                return answer;
            }
        }
        answer
    }

    fn note<T>(&self, what: &str, answer: &Answer<T>) {
        let told = match answer {
            Answer::Yes(_) => "yes",
            Answer::No(status) => status.message(),
            Answer::NotExecuted(why) | Answer::Lost(why) => why,
        };
        self.client.witness.note(now(), "operator", format_args!("{what}: {told}"));
    }
}
