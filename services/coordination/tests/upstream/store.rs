//! `key_value_store_test` and `error_util_test`.

use tonic::Code;

use crate::support::payloads::{barrier_error, service_error};
use crate::support::stage::{Stage, plain, refused};
use crate::support::task::Task;

// Errors and what travels with them.

#[tokio::test(start_paused = true)]
async fn make_coordination_error_with_empty_payload() {
    let (stage, [_]) = Stage::connected().await;
    let status = refused(stage.task(7).register().await, Code::InvalidArgument);
    assert_eq!(status.message(), "Unexpected task registered with task=7");
    let mark = service_error(&status).expect("marked as the service's own");
    assert_eq!((mark.is_reported_error, mark.source_task_id), (false, 0));
}

#[tokio::test(start_paused = true)]
async fn make_coordination_error_with_error_origin() {
    let (_stage, [_, task]) = Stage::connected().await;
    let status = refused(task.restarted().register().await, Code::Aborted);
    let mark = service_error(&status).expect("marked as the service's own");
    assert_eq!((mark.is_reported_error, mark.source_task_id), (false, 1));
}

#[tokio::test(start_paused = true)]
async fn make_coordination_error_with_user_reported_error() {
    let (stage, [first, second]) = Stage::connected().await;
    let poll = stage.hold(first.poll()).await;
    second.report(13, "boom").await.expect("accepted");
    let status = refused(poll.end().await, Code::Internal);
    assert_eq!(status.message(), "boom");
    let mark = service_error(&status).expect("marked as the service's own");
    assert_eq!((mark.is_reported_error, mark.source_task_id), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn make_coordination_error_with_payload() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.hold(first.poll()).await;
    second.report(13, "boom").await.expect("accepted");
    let report = first.watch(-1).await.expect("a report").task_state.remove(1);
    assert_eq!((report.error_code, report.error_message.as_str()), (13, "boom"));
    assert_eq!(report.error_payload.expect("a payload").source_task_id, 1);
}

#[tokio::test(start_paused = true)]
async fn make_barrier_error_with_payload() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("barrier_id", 0, &[])).await;
    second.arrive("barrier_id", 0, &[]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    let waiting = stage.hold(first.arrive("barrier_id", 1, &[])).await;
    second.cancel("barrier_id", 1).await.expect("cancelled");
    let status = refused(waiting.end().await, Code::Cancelled);
    assert_eq!(barrier_error(&status), Some(("barrier_id".to_owned(), 1)));
    assert!(service_error(&status).is_some(), "marked as the service's own");
}

// The store.

/// A store with these keys; each has itself as its value.
async fn store(keys: &[&str]) -> (Stage, Task) {
    let stage = Stage::set(plain(1)).await;
    let [task] = stage.connect().await;
    for key in keys {
        task.insert(key, key).await.expect("new");
    }
    (stage, task)
}

async fn keys_below(task: &Task, directory: &str) -> Vec<String> {
    task.directory(directory).await.expect("a list").into_iter().map(|(key, _)| key).collect()
}

#[tokio::test(start_paused = true)]
async fn overwriting_insert_succeeds() {
    let (_stage, task) = store(&["key"]).await;
    task.overwrite("key", "new value").await.expect("replaced");
    assert_eq!(task.try_get("key").await.expect("there"), "new value");
}

#[tokio::test(start_paused = true)]
async fn overwriting_insert_fails() {
    let (_stage, task) = store(&["key"]).await;
    let status = refused(task.insert("key", "new value").await, Code::AlreadyExists);
    assert_eq!(service_error(&status), None, "upstream marks every error but this one");
    assert_eq!(task.try_get("key").await.expect("there"), "key");
}

#[tokio::test(start_paused = true)]
async fn get_existing_key() {
    let (_stage, task) = store(&["key"]).await;
    assert_eq!(task.try_get("key").await.expect("there"), "key");
}

#[tokio::test(start_paused = true)]
async fn get_missing_key() {
    let (_stage, task) = store(&[]).await;
    refused(task.try_get("key").await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn get_prefix_no_match() {
    let (_stage, task) = store(&["/x/y"]).await;
    assert!(keys_below(&task, "/a").await.is_empty());
}

/// The key that is the prefix itself is no part of the directory.
#[tokio::test(start_paused = true)]
async fn get_prefix_exact_match() {
    let (_stage, task) = store(&["a", "a/b", "a/c"]).await;
    assert_eq!(keys_below(&task, "a").await, ["a/b", "a/c"]);
}

#[tokio::test(start_paused = true)]
async fn get_prefix_no_exact_match() {
    let (_stage, task) = store(&["a/b/c", "a/b/d", "x"]).await;
    assert_eq!(keys_below(&task, "a/b").await, ["a/b/c", "a/b/d"]);
}

#[tokio::test(start_paused = true)]
async fn get_prefix_with_directory_format() {
    let (_stage, task) = store(&["a", "a/b", "a/b/c", "ab", "a-b"]).await;
    assert_eq!(keys_below(&task, "a/").await, ["a/b", "a/b/c"]);
}

#[tokio::test(start_paused = true)]
async fn add_callback_and_then_key() {
    let (stage, task) = store(&[]).await;
    let waiting = stage.hold(task.get("key")).await;
    task.insert("key", "value").await.expect("new");
    assert_eq!(waiting.end().await.expect("it came"), "value");
}

#[tokio::test(start_paused = true)]
async fn add_key_then_callback() {
    let (_stage, task) = store(&["key"]).await;
    assert_eq!(task.get("key").await.expect("there"), "key");
}

#[tokio::test(start_paused = true)]
async fn delete_key() {
    let (_stage, task) = store(&["key"]).await;
    task.delete("key").await.expect("deleted");
    refused(task.try_get("key").await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn delete_missing_key() {
    let (_stage, task) = store(&["key"]).await;
    task.delete("other").await.expect("nothing to do");
    assert_eq!(task.try_get("key").await.expect("there"), "key");
}

/// Deletes `prefix` and tells which of the keys are left.
async fn left_after_delete(keys: &[&str], prefix: &str) -> Vec<String> {
    let (_stage, task) = store(keys).await;
    task.delete(prefix).await.expect("deleted");
    let mut left = Vec::new();
    for key in keys {
        if task.try_get(key).await.is_ok() {
            left.push((*key).to_owned());
        }
    }
    left
}

#[tokio::test(start_paused = true)]
async fn delete_prefix_no_match() {
    assert_eq!(left_after_delete(&["ab/c", "b/a"], "a").await, ["ab/c", "b/a"]);
}

#[tokio::test(start_paused = true)]
async fn delete_prefix_exact_match() {
    assert_eq!(left_after_delete(&["a", "a/b", "a/b/c", "ab"], "a").await, ["ab"]);
}

#[tokio::test(start_paused = true)]
async fn delete_prefix_no_exact_match() {
    assert_eq!(left_after_delete(&["a/b", "a/b/c", "a/c"], "a/b/").await, ["a/c"]);
    assert_eq!(left_after_delete(&["a/b", "a/c", "b"], "a").await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn callback_can_delete_key_without_deadlock() {
    let (stage, task) = store(&[]).await;
    let waiting = stage.hold(task.get("key")).await;
    task.insert("key", "value").await.expect("new");
    waiting.end().await.expect("it came");
    task.delete("key").await.expect("deleted");
    refused(task.try_get("key").await, Code::NotFound);
}

/// Who waits for a key writes another one as soon as it is there.
async fn write_when(waiter: Task, key: &'static str) -> Result<String, tonic::Status> {
    let found = waiter.get(key).await?;
    waiter.insert("answer", &found).await?;
    Ok(found)
}

#[tokio::test(start_paused = true)]
async fn callback_invoked_without_mutex_on_add_callback_for_key() {
    let (_stage, task) = store(&["key"]).await;
    write_when(task.clone(), "key").await.expect("there");
    assert_eq!(task.get("answer").await.expect("written"), "key");
}

#[tokio::test(start_paused = true)]
async fn callback_invoked_without_mutex_on_increment_by() {
    let (stage, task) = store(&[]).await;
    let waiting = stage.hold(write_when(task.clone(), "key")).await;
    task.increment("key", 3).await.expect("counted from 0");
    assert_eq!(task.get("answer").await.expect("written"), "3");
    waiting.end().await.expect("it came");
}

#[tokio::test(start_paused = true)]
async fn callback_invoked_without_mutex_on_put() {
    let (stage, task) = store(&[]).await;
    let waiting = stage.hold(write_when(task.clone(), "key")).await;
    task.overwrite("key", "value").await.expect("new");
    assert_eq!(task.get("answer").await.expect("written"), "value");
    waiting.end().await.expect("it came");
}

#[tokio::test(start_paused = true)]
async fn normalize_key() {
    let (_stage, task) = store(&["//a///b/c//", "/"]).await;
    for same in ["a/b/c", "/a/b/c", "a//b/c/", "a/b/c\0and more"] {
        assert_eq!(task.try_get(same).await.expect("one key"), "//a///b/c//", "{same:?}");
    }
    for same in ["", "/", "///"] {
        assert_eq!(task.try_get(same).await.expect("one key"), "/", "{same:?}");
    }
    refused(task.try_get("a/bc").await, Code::NotFound);
}

/// Adds to a key that has this value.
async fn increment(value: &str, by: i64) -> Result<String, tonic::Status> {
    let (_stage, task) = store(&[]).await;
    task.insert("key", value).await.expect("new");
    let sum = task.increment("key", by).await?;
    assert_eq!(task.try_get("key").await.expect("there"), sum);
    Ok(sum)
}

#[tokio::test(start_paused = true)]
async fn increment_by_positive_value_succeeds() {
    assert_eq!(increment("1", 41).await.expect("added"), "42");
}

#[tokio::test(start_paused = true)]
async fn increment_by_negative_value_succeeds() {
    assert_eq!(increment("1", -3).await.expect("added"), "-2");
}

#[tokio::test(start_paused = true)]
async fn increment_by_without_existing_value_succeeds() {
    let (_stage, task) = store(&[]).await;
    assert_eq!(task.increment("key", 5).await.expect("counted from 0"), "5");
    assert_eq!(task.try_get("key").await.expect("there"), "5");
}

#[tokio::test(start_paused = true)]
async fn increment_by_with_invalid_value_fails() {
    refused(increment("invalid", 1).await, Code::FailedPrecondition);
}
