//! Keys.

use std::time::Duration;

use tonic::Code;

use crate::client::Agent;
use crate::support::LONG;

/// How long a get waits for a key that is not there.
const PATIENCE: Duration = Duration::from_millis(200);

const NESTED: [(&str, &str); 3] =
    [("test_dir/3", "3"), ("test_dir/sub_dir/1", "1"), ("test_dir/sub_dir/2", "2")];

pub(crate) async fn directory(agent: &Agent) {
    for (key, value) in NESTED {
        agent.insert(key, value).await.expect("stored");
    }
    agent.insert("test", "4").await.expect("stored");
    let found = agent.directory("test_dir/").await.expect("a list");
    assert_eq!(found, NESTED.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

pub(crate) async fn duplicate_fails(agent: &Agent) {
    agent.insert("test_key", "original_value").await.expect("stored");
    let refused = agent.insert("test_key", "never_added").await.expect_err("it exists");
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert_eq!(agent.get_within(LONG, "test_key").await.expect("found"), "original_value");
}

pub(crate) async fn duplicate_overwrites(agent: &Agent) {
    agent.insert("test_key", "original_value").await.expect("stored");
    agent.overwrite("test_key", "overwritten_value").await.expect("stored");
    assert_eq!(agent.get_within(LONG, "test_key").await.expect("found"), "overwritten_value");
}

pub(crate) async fn delete(agent: &Agent) {
    agent.insert("to_be_deleted", "deleted").await.expect("stored");
    agent.insert("to_be_kept", "kept").await.expect("stored");
    agent.delete("to_be_deleted").await.expect("deleted");
    let gone = agent.get_within(PATIENCE, "to_be_deleted").await.expect_err("deleted");
    assert_eq!(gone.code(), Code::DeadlineExceeded);
    assert_eq!(agent.get_within(LONG, "to_be_kept").await.expect("found"), "kept");
}

pub(crate) async fn delete_directory(agent: &Agent) {
    for (key, value) in NESTED {
        agent.insert(key, value).await.expect("stored");
    }
    agent.insert("test_dir_2", "beside").await.expect("stored");
    agent.delete("test_dir/").await.expect("deleted");
    assert_eq!(agent.directory("test_dir/").await.expect("a list"), []);
    assert_eq!(agent.try_get("test_dir_2").await.expect("found"), "beside");
}
