//! Where a registration comes from, as its request and its connection say it: for people who look for a task's process.

use prost::Message as _;
use tonic::Request;
use tonic::metadata::MetadataMap;
use tripod_port::CallerConnection;
use tripod_proto::metadata;
use tripod_proto::tripod::v1 as pb;
use tripod_state::task::Origin;

/// What a client, or its library, calls itself.
const USER_AGENT: &str = "user-agent";

/// What is known of whoever registers by this request. An agent says on which host it is; of others the connection does.
pub(crate) fn of<M>(request: &Request<M>) -> Origin {
    let told = told(request.metadata()).unwrap_or_default();
    let client = request.metadata().get(USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let pb::TaskOrigin { host, pid, client: _, agent, launcher } = told;
    let host = if host.is_empty() { address().unwrap_or_default() } else { host };
    Origin { host, pid, client: client.to_owned(), agent, launcher }.bounded()
}

/// What is no such message says nothing.
fn told(metadata: &MetadataMap) -> Option<pb::TaskOrigin> {
    let bytes = metadata.get_bin(metadata::ORIGIN)?.to_bytes().ok()?;
    pb::TaskOrigin::decode(bytes).ok()
}

/// From where the connection comes, unless that is this machine, whose address tells nobody anything elsewhere.
fn address() -> Option<String> {
    let address = CallerConnection::current()?.address().0?;
    let is_elsewhere = !address.is_loopback() && !address.is_unspecified();
    is_elsewhere.then(|| address.to_string())
}

#[cfg(test)]
mod tests {
    use tonic::metadata::MetadataValue;
    use tripod_port::CallerAddress;

    use super::*;

    fn request(told: Option<&[u8]>) -> Request<()> {
        let mut request = Request::new(());
        request.metadata_mut().insert(USER_AGENT, MetadataValue::from_static("grpc-c++/1.66.0"));
        if let Some(told) = told {
            request.metadata_mut().insert_bin(metadata::ORIGIN, MetadataValue::from_bytes(told));
        }
        request
    }

    async fn from(address: [u8; 4], told: Option<&[u8]>) -> Origin {
        let caller = CallerConnection::from(CallerAddress::at(address.into()));
        caller.scope(async { of(&request(told)) }).await
    }

    #[tokio::test]
    async fn a_client_that_comes_by_itself_is_known_by_its_address_and_its_library() {
        let client = || "grpc-c++/1.66.0".to_owned();
        let elsewhere = Origin { host: "10.0.0.7".into(), client: client(), ..Origin::default() };
        assert_eq!(from([10, 0, 0, 7], None).await, elsewhere);
        let here = Origin { client: client(), ..Origin::default() };
        assert_eq!(from([127, 0, 0, 1], None).await, here, "no address that says anything elsewhere");
        assert_eq!(of(&request(None)), here, "nobody knows by which connection");
        assert_eq!(from([127, 0, 0, 1], Some(b"\xff")).await, here, "what is no message says nothing");
    }

    #[tokio::test]
    async fn an_agent_says_for_its_client_on_which_host_it_is() {
        let told = pb::TaskOrigin {
            host: "a3-7".into(),
            agent: "tripod 0.1.0".into(),
            client: "an agent does not say this".into(),
            launcher: "l".repeat(400),
            ..Default::default()
        };
        let origin = from([10, 0, 0, 7], Some(&told.encode_to_vec())).await;
        assert_eq!((origin.host.as_str(), origin.agent.as_str()), ("a3-7", "tripod 0.1.0"));
        assert_eq!((origin.client.as_str(), origin.launcher.len()), ("grpc-c++/1.66.0", 32));
    }
}
