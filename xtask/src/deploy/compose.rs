//! Three nodes in containers of one machine.

use serde_json::{Value, json};

use super::yaml::documents;
use super::{flag, text};

fn services() -> Vec<(String, Value)> {
    let [file] = documents(&text("compose/compose.yaml")).try_into().expect("one document");
    let services = file["services"].as_object().expect("services").clone();
    for volume in file["volumes"].as_object().expect("volumes").keys() {
        assert!(services.contains_key(volume), "{volume} is nobody's volume");
    }
    services.into_iter().collect()
}

#[test]
fn three_nodes_know_each_other_and_keep_their_data() {
    let services = services();
    let names: Vec<_> = services.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["node1", "node2", "node3"]);
    for (index, (name, service)) in services.iter().enumerate() {
        let arguments = &service["command"];
        assert_eq!(arguments[0], "server");
        assert_eq!(flag(arguments, "node"), (index + 1).to_string());
        assert_eq!(flag(arguments, "peer"), format!("{name}:7800"));
        assert_eq!(flag(arguments, "advertise"), name);
        assert_eq!(flag(arguments, "initial"), "1=node1:7800,2=node2:7800,3=node3:7800");
        assert_eq!(service["volumes"], json!([format!("{name}:{}", flag(arguments, "data"))]));
        for published in service["ports"].as_array().unwrap() {
            let published = published.as_str().unwrap();
            assert!(published.starts_with("127.0.0.1:"), "{published} is open to every machine");
        }
    }
}

#[test]
fn each_node_has_no_rights_but_its_volume() {
    for (name, service) in services() {
        assert_eq!(service["user"], "65532:65532", "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]), "{name}");
        assert_eq!(service["restart"], "on-failure", "{name}: one that was removed would come back");
        assert_eq!(service["stop_grace_period"], "60s", "{name}");
    }
}
