//! Functions for trying a cluster out, for its tests and for benchmarks.
//!
//! | name | takes | gives |
//! |---|---|---|
//! | `tripod.noop` | nothing | nothing |
//! | `tripod.nothing` | nothing | no result at all |
//! | `tripod.echo` | a number | it |
//! | `tripod.add` | two numbers | their sum |
//! | `tripod.sum` | any number of numbers | their sum |
//! | `tripod.sleep` | milliseconds | nothing, after that time, or when it is cancelled |
//! | `tripod.sleep-on` | milliseconds | nothing, after that time, whoever wants it to end |
//! | `tripod.bytes` | a count | as many bytes |
//! | `tripod.length` | bytes | how many they are |
//! | `tripod.fail` | a text | the error with that text |
//! | `tripod.panic` | a text | a panic |
//! | `tripod.fibonacci` | n | the n-th number, by tasks that submit tasks |
//! | `tripod.get` | ids of objects | how many they are, after it has got all of them |
//! | `tripod.wait` | ids of objects | how many they are, when all are decided |
//! | `tripod.nest` | n | n, by as many tasks within each other, each of which waits for the next |
//! | `tripod.forward` | a function's name and a number | another task's result, as its own |

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tripod_proto::ray::Obj;

use crate::ObjectId;
use crate::context::Context;
use crate::function::Output;
use crate::reference::ObjectRef;
use crate::task::Task;
use crate::value::{Blob, from_obj};
use crate::worker::Worker;

/// How long `tripod.wait` waits.
const WAIT: Duration = Duration::from_secs(600);

/// How many bytes there are, without a copy of them.
struct Length(usize);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(deserializer).map(|bytes| Self(bytes.len()))
    }
}

/// Adds them to a worker.
#[must_use]
pub fn add_to(worker: Worker) -> Worker {
    worker
        .function("tripod.noop", || ())
        .full("tripod.nothing", 0, |_, _| Ok(Vec::new()))
        .function("tripod.echo", |number: i64| number)
        .function("tripod.add", |left: i64, right: i64| left.wrapping_add(right))
        .full("tripod.sum", 1, sum)
        .full("tripod.sleep", 1, sleep)
        .function("tripod.sleep-on", |time_ms: u64| std::thread::sleep(Duration::from_millis(time_ms)))
        .function("tripod.bytes", |count: u32| Blob(vec![7; count as usize]))
        .full("tripod.length", 1, length)
        .fallible("tripod.fail", |text: String| Err::<(), String>(text))
        .function("tripod.panic", |text: String| -> () { std::panic::panic_any(text) })
        .full("tripod.fibonacci", 1, fibonacci)
        .full("tripod.get", 1, |context, arguments| with_all(context, arguments, get_all))
        .full("tripod.wait", 1, |context, arguments| with_all(context, arguments, wait_for_all))
        .full("tripod.nest", 1, nest)
        .full("tripod.forward", 1, forward)
}

fn sleep(context: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let [time_ms] = arguments else { return Err("it takes 1 argument".to_owned()) };
    let time_ms: u64 = from_obj(time_ms).map_err(|error| error.to_string())?;
    if context.cancelled_within(Duration::from_millis(time_ms)) {
        return Err("cancelled".to_owned());
    }
    Ok(vec![Output::of(&())?])
}

fn sum(_: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let numbers = arguments.iter().map(from_obj::<i64>);
    let sum = numbers.sum::<Result<i64, _>>().map_err(|error| error.to_string())?;
    Ok(vec![Output::of(&sum)?])
}

fn length(_: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let [bytes] = arguments else { return Err("it takes 1 argument".to_owned()) };
    let Length(length) = from_obj(bytes).map_err(|error| error.to_string())?;
    Ok(vec![Output::of(&length)?])
}

fn fibonacci(context: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let [number] = arguments else { return Err("it takes 1 argument".to_owned()) };
    let number: u32 = from_obj(number).map_err(|error| error.to_string())?;
    if number < 2 {
        return Ok(vec![Output::of(&number)?]);
    }
    let part = |number: u32| -> Result<_, String> {
        let task = Task::of("tripod.fibonacci").arg(&number).map_err(|error| error.to_string())?;
        one_of(context, &task)
    };
    let sum = Task::of("tripod.add").object(&part(number - 1)?).object(&part(number - 2)?);
    // Whoever wants the number waits for it; this task does not.
    Ok(vec![Output::Object(one_of(context, &sum)?)])
}

fn nest(context: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let [depth] = arguments else { return Err("it takes 1 argument".to_owned()) };
    let depth: u64 = from_obj(depth).map_err(|error| error.to_string())?;
    if depth == 0 {
        return Ok(vec![Output::of(&0)?]);
    }
    let inner = Task::of("tripod.nest").arg(&(depth - 1)).map_err(|error| error.to_string())?;
    let inner: u64 = context.get(&one_of(context, &inner)?).map_err(|error| error.to_string())?;
    Ok(vec![Output::of(&(inner + 1))?])
}

fn forward(context: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let [name, number] = arguments else { return Err("it takes 2 arguments".to_owned()) };
    let told = |error: crate::value::ValueError| error.to_string();
    let (name, number): (String, i64) = (from_obj(name).map_err(told)?, from_obj(number).map_err(told)?);
    let task = Task::of(&name).arg(&number).map_err(told)?;
    Ok(vec![Output::Object(one_of(context, &task)?)])
}

/// Refers to the objects whose ids are the argument, and does something with them.
fn with_all(
    context: &Context,
    arguments: &[Obj],
    work: impl Fn(&Context, &[ObjectRef]) -> Result<(), String>,
) -> Result<Vec<Output>, String> {
    let [ids] = arguments else { return Err("it takes 1 argument".to_owned()) };
    let ids: Vec<ObjectId> = from_obj(ids).map_err(|error| error.to_string())?;
    let objects = ids.iter().map(|id| context.adopt(*id)).collect::<Result<Vec<_>, _>>();
    let objects = objects.map_err(|error| error.to_string())?;
    work(context, &objects)?;
    Ok(vec![Output::of(&objects.len())?])
}

fn get_all(context: &Context, objects: &[ObjectRef]) -> Result<(), String> {
    objects.iter().try_for_each(|object| {
        context.get::<IgnoredAny>(object).map(|_| ()).map_err(|error| error.to_string())
    })
}

fn wait_for_all(context: &Context, objects: &[ObjectRef]) -> Result<(), String> {
    let decided = context.wait(objects, 0, WAIT).map_err(|error| error.to_string())?;
    if decided.iter().all(|decided| *decided) { Ok(()) } else { Err("not all are decided".to_owned()) }
}

fn one_of(context: &Context, task: &Task) -> Result<ObjectRef, String> {
    let mut results = context.submit(task).map_err(|error| error.to_string())?;
    results.pop().ok_or_else(|| "the function has no result".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::to_obj;

    #[test]
    fn bytes_are_counted_without_reading_them_as_anything_else() {
        let object = to_obj(&Blob(vec![0xff; 3])).unwrap();
        assert_eq!(from_obj::<Length>(&object).unwrap().0, 3);
    }
}
