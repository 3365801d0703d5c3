//! Nodes of the parameter server: how soon they know of each other, and how soon all hear of an event.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use futures::stream;
use tokio::time::Instant;
use tripod_load::mindspore::{Failure, Node, Role, Told};
use tripod_processes::cluster::Cluster;

use super::upstream::{Scheduled, Upstream};
use super::{AT_ONCE, LIMIT, Row};
use crate::stats::Samples;

/// Of all nodes, one of so many is a server.
const SERVERS_OF: u32 = 4;
const EVENTS: u32 = 20;
const FORM_PATIENCE: Duration = Duration::from_secs(600);
/// How long all may take to hear of an event.
const EVENT_PATIENCE: Duration = Duration::from_secs(60);
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// Nodes beat between events when they have been quiet for so long: silence would be noticed.
const QUIET_MAX: Duration = Duration::from_secs(8);

/// What all nodes of one process hear.
#[derive(Default)]
struct Ears {
    lists: AtomicUsize,
    events: AtomicUsize,
    /// When each node heard of the event that is measured.
    heard: Mutex<Vec<Instant>>,
}

impl Ears {
    fn hear(&self, told: &Told) {
        match told {
            Told::Members(_) => {
                self.lists.fetch_add(1, Ordering::Relaxed);
            }
            Told::Event(_) => {
                self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                self.events.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Forms a cluster again and again, in turn with MindSpore's own scheduler if there is one, and lets one node of the last of
/// ours tell all something.
pub(super) async fn run(
    cluster: &Cluster,
    nodes: u32,
    rounds: u64,
    python: Option<&Path>,
) -> anyhow::Result<Vec<Row>> {
    let servers = (nodes / SERVERS_OF).max(1).min(nodes);
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let (mut latencies_ms, mut version) = (Vec::new(), None);
    for round in 1..=rounds {
        // Whoever goes first may find the machine busier; the order rotates.
        for is_ours in [round % 2 == 1, round % 2 == 0] {
            let ears = Arc::new(Ears::default());
            if is_ours {
                let job = super::job(cluster, &format!("server-{round}"), nodes - servers, servers).await?;
                let (mut gang, took) = form(&job.addresses, nodes, servers, &ears).await?;
                eprintln!("round {round} of {rounds}: {nodes} nodes of the parameter server: {took:.2} s");
                ours.push(took);
                if round == rounds {
                    latencies_ms = events(&mut gang, &ears).await?;
                }
                job.delete().await?;
            } else if let Some(python) = python {
                let scheduled = Scheduled::ParameterServer { workers: nodes - servers, servers };
                let upstream = Upstream::start(python, scheduled).await?;
                let (_gang, took) = form(&upstream.addresses(), nodes, servers, &ears).await?;
                eprintln!("round {round} of {rounds}: {nodes} nodes at mindspore's own: {took:.2} s");
                theirs.push(took);
                version = Some(upstream.version.clone());
            }
        }
    }
    latencies_ms.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let place = (latencies_ms.len() as f64 * quantile) as usize;
        latencies_ms.get(place.min(latencies_ms.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    let mut formed = Row::new(
        format!(
            "{nodes} nodes of the parameter server: from the first connection until all know of each other"
        ),
        format!("{:.2} s ({:.2}..{:.2})", ours.median(), ours.min(), ours.max()),
    );
    if let Some(version) = version {
        formed.peer = format!("{:.2} s ({version})", theirs.median());
        formed.ratio = format!("{:.2}x", ours.median_ratio(&theirs));
    }
    Ok(vec![
        formed,
        Row::new(
            format!("an event until one of {nodes} nodes hears it, p99 (p50), of {EVENTS} events"),
            format!("{:.1} ms ({:.1} ms)", at(0.99), at(0.5)),
        ),
    ])
}

/// The nodes, and the seconds until each has heard who belongs to the cluster.
async fn form(
    addresses: &Arc<[String]>,
    nodes: u32,
    servers: u32,
    ears: &Arc<Ears>,
) -> anyhow::Result<(Vec<Node>, f64)> {
    let mut gang = Vec::with_capacity(nodes as usize);
    for number in 0..nodes {
        let role = if number < servers { Role::Server } else { Role::Worker };
        let hears = Arc::clone(ears);
        let at = (Arc::clone(addresses), number as usize);
        let hear = Arc::new(move |told: &Told| hears.hear(told));
        gang.push(Node::begin(format!("node-{number}"), role, at, LIMIT, hear).await?);
    }
    let began = Instant::now();
    let deadline = began + FORM_PATIENCE;
    let registering = stream::iter(gang).map(|node| register(node, deadline));
    let registered: Vec<anyhow::Result<Node>> = registering.buffer_unordered(AT_ONCE).collect().await;
    let gang = registered.into_iter().collect::<anyhow::Result<Vec<Node>>>()?;
    while ears.lists.load(Ordering::Relaxed) < gang.len() {
        ensure!(Instant::now() < deadline, "not all nodes know of each other after {FORM_PATIENCE:?}");
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok((gang, began.elapsed().as_secs_f64()))
}

async fn register(mut node: Node, deadline: Instant) -> anyhow::Result<Node> {
    loop {
        match node.register().await {
            Ok(_) => return Ok(node),
            Err(failure @ Failure::Refused(_)) => return Err(failure).context("a node is not taken"),
            Err(failure) if Instant::now() >= deadline => {
                return Err(failure).context("a node cannot register");
            }
            Err(_) => tokio::time::sleep(AGAIN_PAUSE).await,
        }
    }
}

/// One event after the other: for each and each node the milliseconds from its sending until the node heard it.
async fn events(gang: &mut [Node], ears: &Ears) -> anyhow::Result<Vec<f64>> {
    let nodes = gang.len();
    let mut latencies_ms = Vec::with_capacity(nodes * EVENTS as usize);
    let mut beaten = Instant::now();
    for event in 0..EVENTS {
        if beaten.elapsed() > QUIET_MAX {
            let beats = stream::iter(gang.iter_mut()).map(Node::beat).buffer_unordered(AT_ONCE);
            let lost = beats.filter(|beat| std::future::ready(beat.is_err())).count().await;
            ensure!(lost == 0, "{lost} heartbeats were not answered");
            beaten = Instant::now();
        }
        ears.heard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        ears.events.store(0, Ordering::Relaxed);
        let sent = Instant::now();
        let teller = gang.first_mut().context("no node")?;
        teller.event(event).await.context("an event is not taken")?;
        while ears.events.load(Ordering::Relaxed) < nodes {
            ensure!(
                sent.elapsed() < EVENT_PATIENCE,
                "not all nodes heard event {event} within {EVENT_PATIENCE:?}"
            );
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        let heard = ears.heard.lock().unwrap_or_else(PoisonError::into_inner);
        latencies_ms.extend(heard.iter().map(|at| at.duration_since(sent).as_secs_f64() * 1e3));
    }
    Ok(latencies_ms)
}
