//! What is done for an operator.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tripod_gateway::{Consistency, Gateway};
use tripod_port::{Account, CallerAddress};
use tripod_state::mindspore::cluster::{NodeView, Request as Asked, Switch};
use tripod_state::mindspore::{self, Answer, Role};
use tripod_state::{Command, DomainId, Scope, Topic};

use super::body::{Read, count, node_ids};
use super::refused::Refused;
use super::route::Route;
use super::told::{self, Told};
use crate::calls::Calls;
use crate::connection::{Complaints, Port, shown};
use crate::{ps, pulse, queries};

/// How long an operator waits until all servers have been told something: a little longer than the leader, who waits as
/// long as upstream.
const SWITCH_TIME: Duration = Duration::from_secs(5);

/// One connection of an operator.
pub(crate) struct Caller {
    gateway: Gateway,
    complaints: Complaints,
    scope: Scope,
    peer: CallerAddress,
    account: Account,
    calls: Calls,
}

impl Caller {
    pub(crate) fn new(port: Port, scope: Scope, peer: CallerAddress, account: Account) -> Self {
        let Port { gateway, complaints, calls, .. } = port;
        Self { gateway, complaints, scope, peer, account, calls }
    }

    /// The answer to a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Told> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let done = match Route::of(path) {
            Some(route) => self.call(route, body).await,
            None => {
                let text = format!("there is no `{}`; there are {}", shown(path), Route::all());
                Err(Refused::unknown(StatusCode::NOT_FOUND, &text))
            }
        };
        match done {
            Ok(told) => told::answer(&self.account, StatusCode::OK, &told),
            Err(refused) => {
                let Refused { status, text, code } = refused;
                let (path, why) = (shown(path), shown(&text));
                self.complaints.tell(
                    self.peer,
                    &format_args!("{code}: job {}: a request for `{path}` is refused: {why}", self.scope.job),
                );
                told::answer(&self.account, status, &json!({ "error_message": text }))
            }
        }
    }

    async fn call(&self, route: Route, body: Incoming) -> Result<Value, Refused> {
        let body = Read::all(body, &self.account).await?;
        match route {
            Route::ScaleOut => {
                let said = body.json()?;
                let (workers, servers) = (count(&said, "worker_num")?, count(&said, "server_num")?);
                self.submit(Asked::ScaleOut { workers, servers }).await?;
                Ok(json!({ "message": "Cluster begin to scale out." }))
            }
            Route::ScaleIn => {
                let nodes = node_ids(&body.json()?)?;
                self.submit(Asked::ScaleIn { nodes }).await?;
                Ok(json!({ "message": "Cluster begin to scale in." }))
            }
            Route::Rollback => {
                self.submit(Asked::Abort).await?;
                Ok(json!({ "message": "Cluster scale out rollback success." }))
            }
            Route::Nodes => self.nodes().await,
            Route::State => self.state().await,
            Route::Switch(switch) => {
                let text = match switch {
                    // As upstream sends it on: one object, its keys in their order, without spaces.
                    Switch::NewInstance => body.json()?.to_string(),
                    Switch::EnableFls | Switch::DisableFls => String::new(),
                };
                self.switch(switch, text.into()).await
            }
            Route::QueryInstance => self.query().await,
        }
    }

    async fn nodes(&self) -> Result<Value, Refused> {
        let look = |state: &tripod_state::State| state.cluster_nodes(self.scope);
        let nodes = self.gateway.read(Consistency::Linearizable, look).await??;
        let listed: Vec<Value> = nodes.iter().filter_map(listed).collect();
        Ok(json!({ "message": "Get nodes info successful.", "node_ids": listed }))
    }

    async fn state(&self) -> Result<Value, Refused> {
        let look = |state: &tripod_state::State| state.cluster(self.scope);
        let view = self.gateway.read(Consistency::Linearizable, look).await??;
        let name = ps::on_wire(view.state).as_str_name();
        Ok(json!({ "message": "Get cluster state successful.", "cluster_state": name }))
    }

    /// What servers say of their instance.
    async fn query(&self) -> Result<Value, Refused> {
        let answers = queries::query_instance(&self.gateway, &self.calls, self.scope).await?;
        Ok(json!({ "message": "Query Instance successful.", "result": by_rank(&answers) }))
    }

    /// Tells all servers, and waits until they are told.
    async fn switch(&self, switch: Switch, body: Bytes) -> Result<Value, Refused> {
        let Answer::Switching { switch: number } = self.submit(Asked::Switch { switch, body }).await? else {
            // The domain has no other answer.
            return Err(Refused::late(switch));
        };
        // By now it is made: what cannot be found out of it any more is no reason to say that it was not.
        let Ok(Some(answers)) = self.answers(number).await else { return Err(Refused::late(switch)) };
        let message = match switch {
            Switch::NewInstance => "Start update flPlan successful.",
            Switch::EnableFls => "start enabling FL-Server successful.",
            Switch::DisableFls => "start disabling FL-Server successful.",
        };
        Ok(json!({ "message": message, "result": by_rank(&answers) }))
    }

    /// What all servers have answered to a switch, by rank; `None`: not all have in time, as far as whoever leads knows.
    async fn answers(&self, number: u64) -> Result<Option<Vec<(u32, Bytes)>>, Refused> {
        let Ok(over) = tokio::time::timeout(SWITCH_TIME, self.switched(number)).await else {
            return Ok(None);
        };
        over?;
        let answers = pulse::switch_answers(&self.gateway, self.scope.job, number).await?;
        // Who has left or died meanwhile is not waited for; a leader who was elected meanwhile knows of nobody.
        let are_all = answers.len() >= self.servers().await?;
        Ok(are_all.then_some(answers))
    }

    /// How many servers are told of switches.
    async fn servers(&self) -> Result<usize, Refused> {
        let look = |state: &tripod_state::State| state.cluster_nodes(self.scope);
        let nodes = self.gateway.read(Consistency::Local, look).await??;
        let told = |node: &&NodeView| {
            node.role == Role::Server && node.is_entered && node.is_alive && node.rank.is_some()
        };
        Ok(nodes.iter().filter(told).count())
    }

    /// Waits until servers are not told that any more.
    async fn switched(&self, number: u64) -> Result<(), Refused> {
        let mut changes = self.gateway.watch(Topic::Domain(DomainId::Mindspore, self.scope.job));
        // The first look sees what was just committed.
        let mut consistency = Consistency::Linearizable;
        loop {
            let look = |state: &tripod_state::State| state.cluster_switch(self.scope.job);
            let under_way = self.gateway.read(consistency, look).await?;
            if under_way.is_none_or(|(current, _, _)| current != number) {
                return Ok(());
            }
            consistency = Consistency::Local;
            changes.changed().await;
        }
    }

    async fn submit(&self, request: Asked) -> Result<Answer, Refused> {
        let command = mindspore::Command::Cluster { scope: self.scope, request };
        match self.gateway.submit(Command::Mindspore(command)).await?? {
            tripod_state::Answer::Mindspore(answer) => Ok(answer),
            // The domain has no other answer.
            _ => Ok(Answer::Noted),
        }
    }
}

/// What servers said, each by its rank: as JSON, or as the text that it is.
fn by_rank(answers: &[(u32, Bytes)]) -> Value {
    let said = |text: &Bytes| {
        serde_json::from_slice(text)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(text).into_owned()))
    };
    answers.iter().map(|(rank, text)| (rank.to_string(), said(text))).collect()
}

/// A node, as upstream shows it; one that leaves is not shown.
fn listed(node: &NodeView) -> Option<Value> {
    let role = match node.role {
        Role::Worker => "WORKER",
        Role::Server => "SERVER",
    };
    let rank = node.rank?.to_string();
    Some(json!({ "node_id": node.node.as_str(), "rank_id": rank, "role": role }))
}
