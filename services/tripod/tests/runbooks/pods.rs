//! Pods of the chart as processes: what Helm renders makes a cluster, answers its probes, hands over when it is stopped,
//! and takes in one more.
//!
//! A pod is a loopback address with the ports of the chart, and a folder in the place of its volume. Names that the DNS of
//! a cluster resolves are replaced by addresses, and so is "every interface", since all pods are on one machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;
use yaml_rust2::{Yaml, YamlLoader};

use crate::program::Program;
use crate::site::network_of;

const FIRST_START: &str = include_str!("../../../../deploy/kubernetes/rendered/default.yaml");
const JOINING: &str = include_str!("../../../../deploy/kubernetes/rendered/joining.yaml");
/// How names end that the DNS of a cluster resolves.
const DOMAIN: &str = ".svc.cluster.local";
const PODS: std::ops::RangeInclusive<u8> = 1..=4;

/// The StatefulSet of a chart.
struct Chart(Yaml);

impl Chart {
    fn read(text: &str) -> Self {
        let mut manifests = YamlLoader::load_from_str(text).expect("YAML").into_iter();
        let set = manifests.find(|manifest| manifest["kind"].as_str() == Some("StatefulSet"));
        Self(set.expect("a StatefulSet"))
    }

    fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().expect("a name")
    }

    fn pod_name(&self, pod: u8) -> String {
        format!("{}-{pod}", self.name())
    }

    fn container(&self) -> &Yaml {
        &self.0["spec"]["template"]["spec"]["containers"][0]
    }

    /// The arguments of the image's program, with the pod's variables in them.
    fn arguments(&self, pod: u8) -> Vec<String> {
        let environment = self.environment(pod);
        let arguments = self.container()["args"].as_vec().expect("a list").iter();
        arguments
            .map(|argument| {
                let mut argument = argument.as_str().expect("a text").to_owned();
                for (name, value) in &environment {
                    argument = argument.replace(&format!("$({name})"), value);
                }
                argument
            })
            .collect()
    }

    fn environment(&self, pod: u8) -> BTreeMap<String, String> {
        let variables = self.container()["env"].as_vec().expect("a list").iter();
        variables
            .map(|variable| {
                let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                    Some("metadata.name") => self.pod_name(pod),
                    Some("metadata.labels['apps.kubernetes.io/pod-index']") => pod.to_string(),
                    Some(other) => panic!("no pod has the field {other}"),
                    None => variable["value"].as_str().expect("a value").to_owned(),
                };
                (variable["name"].as_str().expect("a name").to_owned(), value)
            })
            .collect()
    }

    /// Where a volume is in the container; there is one.
    fn volume(&self) -> &str {
        let mounts = self.container()["volumeMounts"].as_vec().expect("a list");
        assert_eq!(mounts.len(), 1, "{mounts:?}");
        mounts[0]["mountPath"].as_str().expect("a path")
    }

    /// Port and path at which a kubelet asks.
    fn probe(&self, name: &str) -> (i64, &str) {
        let request = &self.container()[name]["httpGet"];
        let port = request["port"].as_str().expect("the name of a port");
        let ports = self.container()["ports"].as_vec().expect("a list");
        let named =
            ports.iter().find(|entry| entry["name"].as_str() == Some(port)).expect("a port of the pod");
        (named["containerPort"].as_i64().expect("a number"), request["path"].as_str().expect("a path"))
    }
}

/// All pods. What runs in them ends with this value.
struct Pods {
    root: TempDir,
    network: String,
    /// What makes the network ours.
    _ports: ReservedPorts,
    running: BTreeMap<u8, Child>,
}

impl Pods {
    fn new() -> Self {
        let ports = ReservedPorts::reserve(1).expect("a free port");
        let network = network_of(&ports);
        Self {
            root: tempfile::tempdir().expect("a folder"),
            network,
            _ports: ports,
            running: BTreeMap::new(),
        }
    }

    fn address(&self, pod: u8) -> String {
        format!("{}{pod}", self.network)
    }

    /// Client addresses of the first three.
    fn endpoints(&self) -> Vec<String> {
        (1..=3).map(|pod| format!("{}:7700", self.address(pod))).collect()
    }

    fn log(&self, pod: u8) -> PathBuf {
        self.root.path().join(format!("pod-{pod}.log"))
    }

    /// A text of the chart as it is on this machine.
    fn here(&self, chart: &Chart, pod: u8, text: &str) -> String {
        let volume = self.root.path().join(format!("volume-{pod}")).display().to_string();
        let mut text = text.replace(chart.volume(), &volume);
        for own in ["0.0.0.0", "127.0.0.1"] {
            text = text.replace(own, &self.address(pod));
        }
        // The Service of those that join leads to any member.
        let service = (format!("{}-join.", chart.name()), 1);
        for (begin, pod) in PODS.map(|pod| (format!("{}.", chart.pod_name(pod)), pod)).chain([service]) {
            while let Some(at) = text.find(&begin) {
                let length = text[at..].find(DOMAIN).expect("a name of the cluster") + DOMAIN.len();
                text.replace_range(at..at + length, &self.address(pod));
            }
        }
        text
    }

    /// The program in a pod: with what the chart sets, and nothing else of ours.
    fn program(&self, chart: &Chart, pod: u8) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tripod"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRIPOD_")) {
            command.env_remove(name);
        }
        for (name, value) in chart.environment(pod) {
            command.env(name, self.here(chart, pod, &value));
        }
        command.stdin(Stdio::null());
        command
    }

    fn start(&mut self, chart: &Chart, pod: u8) {
        fs::create_dir_all(self.root.path().join(format!("volume-{pod}"))).expect("made");
        let log = File::options().create(true).append(true).open(self.log(pod)).expect("a log");
        let mut command = self.program(chart, pod);
        for argument in chart.arguments(pod) {
            command.arg(self.here(chart, pod, &argument));
        }
        command.stdout(log.try_clone().expect("twice")).stderr(log);
        assert!(self.running.insert(pod, command.spawn().expect("it starts")).is_none(), "{pod} twice");
    }

    /// As a kubelet stops it: the pause before is its own business, for the image has no shell. Then the program has the
    /// rest of its time to end by itself.
    fn stop(&mut self, chart: &Chart, pod: u8) {
        let hook = &chart.container()["lifecycle"]["preStop"];
        assert!(
            hook["sleep"]["seconds"].as_i64().is_some(),
            "a hook that the program would have to run: {hook:?}"
        );
        let mut process = self.running.remove(&pod).expect("it runs");
        let id = Pid::from_raw(i32::try_from(process.id()).expect("a process id"));
        kill(id, Signal::SIGTERM).expect("it runs");
        let status = until_blocking("the end of a pod", || process.try_wait().expect("waited"));
        assert_eq!(status.code(), Some(0), "{}", self.log_text(pod));
    }

    /// What a probe is answered: a status of HTTP and a text; `None`: nobody listens.
    fn probe(&self, chart: &Chart, pod: u8, name: &str) -> Option<(u16, String)> {
        let (port, path) = chart.probe(name);
        let address = format!("{}:{port}", self.address(pod));
        let mut connection = TcpStream::connect(&address).ok()?;
        write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    fn wait_until_ready(&self, chart: &Chart, pod: u8) {
        until_blocking(format!("pod {pod} to be ready"), || {
            self.probe(chart, pod, "readinessProbe").filter(|(status, _)| *status == 200)
        });
    }

    /// As `kubectl exec POD -- tripod ...`.
    fn exec(&self, chart: &Chart, pod: u8, arguments: &[&str]) -> Output {
        self.program(chart, pod).args(arguments).output().expect("it runs")
    }

    /// The JSON of a command that must succeed, however long that takes.
    fn json(&self, chart: &Chart, pod: u8, arguments: &[&str]) -> Value {
        let output = until_blocking(format!("success of {arguments:?}"), || {
            Some(self.exec(chart, pod, arguments)).filter(|output| output.status.success())
        });
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The pod whose node leads; nodes have the numbers of their pods.
    fn leader(&self, chart: &Chart, asked: u8) -> u8 {
        until_blocking("a leader", || {
            let leader = self.json(chart, asked, &["status", "--json"])["leader"].as_u64()?;
            u8::try_from(leader).ok()
        })
    }

    fn log_text(&self, pod: u8) -> String {
        fs::read_to_string(self.log(pod)).unwrap_or_default()
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        for process in self.running.values_mut() {
            // There is nobody to tell when even this fails.
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            for pod in PODS {
                let log = self.log_text(pod);
                let lines: Vec<&str> = log.lines().collect();
                let last = &lines[lines.len().saturating_sub(20)..];
                eprintln!("--- pod {pod}, its last lines\n{}", last.join("\n"));
            }
        }
    }
}

#[test]
fn pods_of_the_chart_serve_hand_over_when_they_are_stopped_and_take_in_one_more() {
    let (first, joining) = (Chart::read(FIRST_START), Chart::read(JOINING));
    let mut pods = Pods::new();

    // One that waits for the others is well, so it is not begun again, and gets no clients.
    pods.start(&first, 1);
    until_blocking("a pod that lives", || {
        pods.probe(&first, 1, "livenessProbe").filter(|(status, _)| *status == 200)
    });
    let (status, text) = pods.probe(&first, 1, "readinessProbe").expect("it listens");
    assert_eq!((status, text.starts_with("not ready: ")), (503, true), "{text}");

    for pod in [2, 3] {
        pods.start(&first, pod);
    }
    for pod in 1..=3 {
        pods.wait_until_ready(&first, pod);
    }
    until_blocking("where clients find the nodes", || {
        let told = pods.json(&first, 2, &["member", "list", "--json"]);
        let members = told["members"].as_array()?.iter();
        let places: Vec<_> = members.filter_map(|member| member["client_address"].as_str()).collect();
        (places == pods.endpoints()).then_some(())
    });

    let program = Program::start(&pods.endpoints());
    program.goes_on();
    let leader = pods.leader(&first, 1);
    pods.stop(&first, leader);
    program.goes_on();
    let other = leader % 3 + 1;
    until_blocking("another leader", || (pods.leader(&first, other) != leader).then_some(()));
    pods.start(&first, leader);
    pods.wait_until_ready(&first, leader);

    // Once the cluster has formed, from the last pod to the first: they come back as the nodes that they were.
    for pod in [3, 2, 1] {
        pods.stop(&first, pod);
        pods.start(&joining, pod);
        pods.wait_until_ready(&joining, pod);
    }
    pods.start(&joining, 4);
    let members = until_blocking("a fourth member", || {
        let told = pods.json(&joining, 1, &["member", "list", "--json"]);
        told["members"].as_array().filter(|members| members.len() == 4).cloned()
    });
    let roles: Vec<(u64, &str)> = members
        .iter()
        .map(|member| (member["id"].as_u64().expect("an id"), member["role"].as_str().expect("a role")))
        .collect();
    assert_eq!(roles, [(1, "voter"), (2, "voter"), (3, "voter"), (4, "learner")]);
    program.goes_on();
    let last = program.stop();
    let output = pods.exec(&joining, 4, &["kv", "get", "count"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), last.to_string());
}
