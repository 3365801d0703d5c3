//! What a client must be given to find the nodes' xDS.

use std::net::{SocketAddrV4, SocketAddrV6};

use serde_json::{Value, json};

/// The value of `GRPC_XDS_BOOTSTRAP_CONFIG` for clients of `job`, in one line. `endpoints` are the client
/// addresses of the nodes, `HOST:PORT`.
///
/// Addresses make one server of several addresses, of which gRPC uses one that answers. Host names cannot
/// be put together like that: they make one server each, and only a gRPC that falls back from one to the
/// next starts without the first.
#[must_use]
pub fn bootstrap(job: &str, endpoints: &[String]) -> String {
    let servers: Vec<Value> = targets(endpoints).iter().map(server).collect();
    json!({ "xds_servers": servers, "node": { "id": job } }).to_string()
}

fn targets(endpoints: &[String]) -> Vec<String> {
    let all = |is: fn(&str) -> bool| !endpoints.is_empty() && endpoints.iter().all(|at| is(at));
    if all(|at| at.parse::<SocketAddrV4>().is_ok()) {
        vec![format!("ipv4:{}", endpoints.join(","))]
    } else if all(|at| at.parse::<SocketAddrV6>().is_ok()) {
        vec![format!("ipv6:{}", endpoints.join(","))]
    } else {
        endpoints.to_vec()
    }
}

fn server(target: &String) -> Value {
    json!({
        "server_uri": target,
        "channel_creds": [{ "type": "insecure" }],
        "server_features": ["xds_v3"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets_of(endpoints: &[&str]) -> Vec<String> {
        let endpoints: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
        let told: Value = serde_json::from_str(&bootstrap("train", &endpoints)).expect("is JSON");
        assert_eq!(told["node"]["id"], "train");
        let servers = told["xds_servers"].as_array().expect("a list");
        servers.iter().map(|server| server["server_uri"].as_str().expect("a text").to_owned()).collect()
    }

    #[test]
    fn addresses_are_one_server_and_names_are_several() {
        assert_eq!(targets_of(&["10.0.0.1:7700", "10.0.0.2:7700"]), ["ipv4:10.0.0.1:7700,10.0.0.2:7700"]);
        assert_eq!(targets_of(&["[::1]:7700", "[::2]:7700"]), ["ipv6:[::1]:7700,[::2]:7700"]);
        assert_eq!(targets_of(&["node-1:7700", "10.0.0.2:7700"]), ["node-1:7700", "10.0.0.2:7700"]);
    }

    #[test]
    fn it_is_one_line_with_all_that_grpc_insists_on() {
        let told = bootstrap("train", &["10.0.0.1:7700".to_owned()]);
        assert!(!told.contains('\n'));
        let told: Value = serde_json::from_str(&told).expect("is JSON");
        let server = &told["xds_servers"][0];
        assert_eq!(server["channel_creds"], json!([{ "type": "insecure" }]));
        assert_eq!(server["server_features"], json!(["xds_v3"]));
    }
}
