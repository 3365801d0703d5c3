//! The manifests that the chart makes.

use serde_json::{Value, json};

use super::yaml::documents;
use super::{flag, port, text};

struct Rendered(Vec<Value>);

impl Rendered {
    fn read(name: &str) -> Self {
        Self(documents(&text(&format!("kubernetes/rendered/{name}.yaml"))))
    }

    /// Of all manifests of a kind, the one with this name.
    fn get(&self, kind: &str, name: &str) -> &Value {
        let found = self.0.iter().find(|value| value["kind"] == kind && value["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    fn pod(&self, name: &str) -> &Value {
        &self.get("StatefulSet", name)["spec"]["template"]["spec"]
    }

    fn container(&self, name: &str) -> &Value {
        &self.pod(name)["containers"][0]
    }
}

#[test]
fn every_manifest_says_what_it_is_and_selects_the_pods_of_its_release() {
    for (name, release) in [("default", "tripod"), ("joining", "train"), ("protected", "tripod")] {
        let rendered = Rendered::read(name);
        let set = rendered.get("StatefulSet", release);
        let selector = &set["spec"]["selector"]["matchLabels"];
        assert_eq!(selector["app.kubernetes.io/instance"], release);
        let labels = &set["spec"]["template"]["metadata"]["labels"];
        for (label, value) in selector.as_object().unwrap() {
            assert_eq!(&labels[label], value, "pods have not the label {label}");
        }
        let mut kinds = Vec::new();
        for manifest in &rendered.0 {
            let kind = manifest["kind"].as_str().unwrap();
            kinds.push(kind);
            let (version, path) = match kind {
                "StatefulSet" => ("apps/v1", "/spec/selector/matchLabels"),
                "Service" => ("v1", "/spec/selector"),
                "PodDisruptionBudget" => ("policy/v1", "/spec/selector/matchLabels"),
                "NetworkPolicy" => ("networking.k8s.io/v1", "/spec/podSelector/matchLabels"),
                other => panic!("nothing looks at a {other}"),
            };
            assert_eq!(manifest["apiVersion"], version, "{kind}");
            assert_eq!(manifest.pointer(path), Some(selector), "{kind}");
            assert!(manifest["metadata"]["labels"]["app.kubernetes.io/version"].is_string(), "{kind}");
        }
        kinds.sort_unstable();
        let expected =
            ["NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "Service", "StatefulSet"];
        assert_eq!(kinds, expected);
    }
}

#[test]
fn nodes_are_told_names_that_their_service_gives_them_before_they_are_ready() {
    let rendered = Rendered::read("default");
    let set = &rendered.get("StatefulSet", "tripod")["spec"];
    let service = &rendered.get("Service", set["serviceName"].as_str().unwrap())["spec"];
    assert_eq!(service["clusterIP"], "None");
    assert_eq!(service["publishNotReadyAddresses"], true, "voters of a first start would wait for ever");
    let start = set["ordinals"]["start"].as_u64().unwrap();
    assert_eq!(start, 1, "ids of nodes begin at 1");
    let arguments = &rendered.container("tripod")["args"];
    let pods = start..start + set["replicas"].as_u64().unwrap();
    let name =
        |pod: &str| format!("{pod}.{}.default.svc.cluster.local", set["serviceName"].as_str().unwrap());
    let voters: Vec<String> =
        pods.map(|pod| format!("{pod}={}:7800", name(&format!("tripod-{pod}")))).collect();
    assert_eq!(flag(arguments, "initial"), voters.join(","));
    assert_eq!(flag(arguments, "peer"), format!("{}:7800", name("$(POD_NAME)")));
    assert_eq!(flag(arguments, "advertise"), name("$(POD_NAME)"));
    assert_eq!(flag(arguments, "node"), "$(POD_NUMBER)");
    let environment = rendered.container("tripod")["env"].as_array().unwrap();
    let field = |name: &str| {
        let variable = environment.iter().find(|variable| variable["name"] == name).expect(name);
        variable["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap().to_owned()
    };
    assert_eq!(field("POD_NAME"), "metadata.name");
    assert_eq!(field("POD_NUMBER"), "metadata.labels['apps.kubernetes.io/pod-index']");
    // Variables that Kubernetes makes for a Service `tripod` would be taken for settings.
    assert_eq!(rendered.pod("tripod")["enableServiceLinks"], false);
}

#[test]
fn once_a_cluster_has_formed_nodes_join_it_and_what_was_set_is_in_them() {
    let rendered = Rendered::read("joining");
    let arguments = &rendered.container("train")["args"];
    assert_eq!(flag(arguments, "join"), "train-join.ml.svc.cluster.local:7700");
    rendered.get("Service", "train-join");
    let all = arguments.to_string();
    assert!(!all.contains("--initial") && !all.contains("--node"), "{all}");
    assert_eq!((flag(arguments, "timing"), flag(arguments, "tasks")), ("fast", "8"));
    let pod = rendered.pod("train");
    assert_eq!(pod["nodeSelector"], json!({"pool": "control"}));
    assert_eq!(pod["tolerations"], json!([{"key": "control", "operator": "Exists"}]));
    let set = &rendered.get("StatefulSet", "train")["spec"];
    assert_eq!(set["replicas"], 5);
    let claim = &set["volumeClaimTemplates"][0]["spec"];
    assert_eq!(
        (&claim["storageClassName"], &claim["resources"]["requests"]["storage"]),
        (&json!("local"), &json!("20Gi"))
    );
    assert_eq!(rendered.container("train")["image"], "registry.example.org/tripod:0.1.0");
    assert!(pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].is_array());
    let clients = &rendered.get("NetworkPolicy", "train")["spec"]["ingress"][1]["from"][0];
    assert_eq!(clients["podSelector"]["matchLabels"], json!({"team": "vision"}));
}

#[test]
fn no_two_nodes_share_a_host_and_no_two_are_taken_at_a_time() {
    let rendered = Rendered::read("default");
    let apart = &rendered.pod("tripod")["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(apart[0]["topologyKey"], "kubernetes.io/hostname");
    let selector = &rendered.get("StatefulSet", "tripod")["spec"]["selector"];
    assert_eq!(&apart[0]["labelSelector"], selector);
    assert_eq!(rendered.get("PodDisruptionBudget", "tripod")["spec"]["maxUnavailable"], 1);
    let kept = &rendered.get("StatefulSet", "tripod")["spec"]["persistentVolumeClaimRetentionPolicy"];
    assert_eq!(kept, &json!({"whenDeleted": "Retain", "whenScaled": "Retain"}));
}

#[test]
fn a_node_is_asked_at_the_paths_that_it_serves_and_has_the_time_to_hand_over() {
    let rendered = Rendered::read("default");
    let container = rendered.container("tripod");
    assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/readyz", "port": "http"}));
    assert_eq!(container["livenessProbe"]["httpGet"], json!({"path": "/livez", "port": "http"}));
    let router = std::fs::read_to_string(crate::cargo::root().join("services/web/src/router.rs")).unwrap();
    for path in ["/readyz", "/livez"] {
        assert!(router.contains(&format!(".route(\"{path}\"")), "nodes do not serve {path}");
    }
    let pause_s = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let grace_s = rendered.pod("tripod")["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace_s >= pause_s + 60, "a node has {grace_s} s, of which {pause_s} are a pause");

    let arguments = &container["args"];
    for (name, address) in [("client", "client"), ("peer", "peer"), ("http", "http")] {
        let ports = container["ports"].as_array().unwrap();
        let named = ports.iter().find(|port| port["name"] == name).expect(name);
        assert_eq!(named["containerPort"], port(flag(arguments, address)), "{name}");
    }
    let jobs = &rendered.get("NetworkPolicy", "tripod")["spec"]["ingress"][1]["ports"][2];
    assert_eq!(flag(arguments, "job-ports"), format!("{}-{}", jobs["port"], jobs["endPort"]));
    let mounts = container["volumeMounts"].as_array().unwrap();
    let data = flag(arguments, "data");
    assert!(
        mounts.iter().any(|mount| data.starts_with(mount["mountPath"].as_str().unwrap())),
        "{data} is lost"
    );
}

#[test]
fn a_node_has_no_rights_but_its_volume_and_its_ports() {
    for name in ["default", "protected"] {
        has_no_rights(&Rendered::read(name));
    }
}

fn has_no_rights(rendered: &Rendered) {
    let pod = rendered.pod("tripod");
    let own = &pod["securityContext"];
    assert_eq!((&own["runAsNonRoot"], &own["runAsUser"]), (&json!(true), &json!(65532)));
    assert_eq!(own["fsGroup"], 65532, "it could not write its volume");
    assert_eq!(own["seccompProfile"], json!({"type": "RuntimeDefault"}));
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        rendered.container("tripod")["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    let memory = &rendered.container("tripod")["resources"]["limits"]["memory"];
    assert!(memory.is_string(), "without a limit a node takes that of the host for its own");
}

#[test]
fn a_node_with_certificates_takes_no_plain_text_and_reads_only_its_own_key() {
    let rendered = Rendered::read("protected");
    let container = rendered.container("tripod");
    let arguments = &container["args"];
    assert!(!arguments.to_string().contains("insecure"), "{arguments}");
    let directory = flag(arguments, "tls-dir");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|mount| mount["name"] == "tls").expect("a mount of certificates");
    let within = directory.strip_prefix(mount["mountPath"].as_str().unwrap()).expect("below the mount");
    assert_eq!((within, &mount["readOnly"]), ("/$(POD_NAME)", &json!(true)));
    assert!(mount.get("subPath").is_none(), "files that are replaced would not be seen");
    let volumes = rendered.pod("tripod")["volumes"].as_array().unwrap();
    let secret = &volumes.iter().find(|volume| volume["name"] == "tls").expect("a volume")["secret"];
    // As services/tls/src/files.rs wants it: a group may read a key that belongs to root, and nobody else.
    assert_eq!(secret["defaultMode"], 0o440);
    let items = secret["items"].as_array().unwrap();
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        let path = format!("tripod-1/{file}");
        assert!(items.iter().any(|item| item["path"] == path.as_str()), "no {path}");
    }
    for probe in ["readinessProbe", "livenessProbe"] {
        assert_eq!(container[probe]["httpGet"]["scheme"], "HTTPS", "{probe}");
    }
    let environment = container["env"].as_array().unwrap();
    let value = |name: &str| {
        let variable = environment.iter().find(|variable| variable["name"] == name).expect(name);
        variable["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(value("TRIPOD_TLS_DIR"), directory, "commands in the pod");
    assert!(!value("TRIPOD_ENDPOINTS").contains("127.0.0.1"), "no certificate has that name");
}
