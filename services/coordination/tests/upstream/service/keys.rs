//! The key-value store through the service's calls.

use tonic::Code;

use crate::support::stage::{Stage, refused};

/// What a directory holds, as text.
fn pairs(entries: &[(String, String)]) -> Vec<(&str, &str)> {
    entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn insert_key_value_duplicate_fail() {
    let (_stage, [task]) = Stage::connected().await;
    task.insert("key0", "original_value").await.expect("new");
    let status = refused(task.insert("key0", "never_added").await, Code::AlreadyExists);
    assert_eq!(status.message(), "key key0 already exists.");
    assert_eq!(task.get("key0").await.expect("there"), "original_value");
}

#[tokio::test(start_paused = true)]
async fn insert_key_value_duplicate_overwrite() {
    let (_stage, [task]) = Stage::connected().await;
    task.insert("key0", "original_value").await.expect("new");
    task.overwrite("key0", "overwritten_value").await.expect("replaced");
    assert_eq!(task.get("key0").await.expect("there"), "overwritten_value");
}

#[tokio::test(start_paused = true)]
async fn test_set_get_values() {
    let (stage, [task]) = Stage::connected().await;
    // One key, however it is written.
    task.insert("key0", "value0").await.expect("new");
    task.insert("/path", "value").await.expect("new");
    task.insert("/path/to/key1", "value1").await.expect("new");
    task.insert("path/to//key2/", "value2").await.expect("new");
    for key in ["path/to/key1", "/path/to/key1/", "//path///to/key1"] {
        assert_eq!(task.get(key).await.expect("there"), "value1", "{key}");
    }
    assert_eq!(task.get("/path/to/key2").await.expect("there"), "value2");
    // A get waits until its key is there.
    let later = stage.hold(task.get("/path/to/later")).await;
    task.insert("path/to/later", "now").await.expect("new");
    assert_eq!(later.end().await.expect("there"), "now");
    // A key that is deleted can be written again, and a directory goes with everything in it.
    task.delete("key0").await.expect("deleted");
    refused(task.try_get("key0").await, Code::NotFound);
    task.delete("path/to").await.expect("deleted");
    for key in ["path/to/key1", "path/to/key2", "path/to/later"] {
        refused(task.try_get(key).await, Code::NotFound);
    }
    assert_eq!(task.get("path").await.expect("not in the directory"), "value");
    task.insert("key0", "again").await.expect("new again");
}

#[tokio::test(start_paused = true)]
async fn try_get_key_value() {
    let (_stage, [task]) = Stage::connected().await;
    let missing = refused(task.try_get("key0").await, Code::NotFound);
    assert_eq!(missing.message(), "Config key key0 not found.");
    task.insert("key0", "value0").await.expect("new");
    assert_eq!(task.try_get("key0").await.expect("there"), "value0");
    task.delete("key0").await.expect("deleted");
    refused(task.try_get("key0").await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn increment_key_value() {
    let (_stage, [task]) = Stage::connected().await;
    assert_eq!(task.increment("key0", 1).await.expect("counted from 0"), "1");
    assert_eq!(task.increment("key0", 41).await.expect("added"), "42");
    assert_eq!(task.get("key0").await.expect("there"), "42");
    task.insert("bad_key", "bad value").await.expect("new");
    let status = refused(task.increment("bad_key", 1).await, Code::FailedPrecondition);
    assert_eq!(status.message(), "Failed to parse value \"bad value\" as an integer.");
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_single_value_in_directory() {
    let (_stage, [task]) = Stage::connected().await;
    task.insert("dir/path", "value0").await.expect("new");
    let found = task.directory("dir").await.expect("a list");
    assert_eq!(pairs(&found), [("dir/path", "value0")]);
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_multiple_values_in_directory() {
    let (_stage, [task]) = Stage::connected().await;
    let inside = [("dir/path", "value0"), ("dir/path2", "value1"), ("dir/sub_dir/path", "value2")];
    for (key, value) in inside {
        task.insert(key, value).await.expect("new");
    }
    let found = task.directory("dir").await.expect("a list");
    assert_eq!(pairs(&found), inside);
}

/// Asks for a directory that has nothing in it, where `keys` are there.
async fn finds_nothing(keys: &[&str], directory: &str) {
    let (_stage, [task]) = Stage::connected().await;
    for key in keys {
        task.insert(key, "value").await.expect("new");
    }
    assert_eq!(task.directory(directory).await.expect("a list"), []);
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_empty_returns_empty_list() {
    finds_nothing(&[], "dir").await;
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_wrong_dir_returns_empty_list() {
    finds_nothing(&["dir0/path"], "dir").await;
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_wrong_dir_prefix_returns_empty_list() {
    finds_nothing(&["wrong_dir/dir/path"], "dir").await;
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_non_directory_prefix_returns_empty_list() {
    finds_nothing(&["dir_key"], "dir").await;
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir_non_directory_key_returns_empty_list() {
    finds_nothing(&["dir"], "dir").await;
}
