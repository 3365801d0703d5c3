//! A worker that makes chunks for Mars: numbers instead of arrays, so that what comes of a graph is known without numpy.
//!
//! It is a process of its own, `tripod-chaos worker`, so that it can be killed. Of a chunk's node it reads the operator and a
//! number in the payload; inputs are numbers, too.
//!
//! | operator | makes |
//! |---|---|
//! | `sum` | the number and all inputs together |
//! | `slow` | the same, after a second, unless it is cancelled |
//! | `fail` | an error |

use std::io::Read as _;
use std::time::Duration;

use prost::Message as _;
use tokio::sync::oneshot;
use tripod_proto::mars::v1::ChunkNode;
use tripod_proto::ray::Obj;
use tripod_worker::value::from_obj;
use tripod_worker::{Config, Context, Output, Worker};

/// The word by which the program plays one.
pub const PLAYED_WORKER: &str = "worker";
/// The function that the cluster has chunks made by.
const CHUNK_FUNCTION: &str = "tripod.mars.chunk";
/// Tasks that may wait here.
const SLOTS: u32 = 16;
const SLOW: Duration = Duration::from_secs(1);

/// Executes chunks until the process that started this one ends.
///
/// # Errors
/// It cannot register, or its machine has no store any more.
pub async fn run(endpoints: Vec<String>, host: String) -> anyhow::Result<()> {
    let config = Config { host, ..Config::local(endpoints) };
    let worker = Worker::new(config).slots(SLOTS).full(CHUNK_FUNCTION, 1, chunk);
    Ok(worker.run(parent_ends()).await?)
}

/// Resolves when standard input ends, which the parent holds.
async fn parent_ends() {
    let (tell, told) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        // Whatever comes of reading, nobody is there any more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(tell);
    });
    let _ = told.await;
}

fn chunk(context: &Context, arguments: &[Obj]) -> Result<Vec<Output>, String> {
    let (node, inputs) = arguments.split_first().ok_or("it takes the node of a chunk")?;
    let node = node.pyobj_data.as_ref().ok_or("the first argument is no node of a chunk")?;
    let node = ChunkNode::decode(node.data.clone()).map_err(|error| error.to_string())?;
    let payload = std::str::from_utf8(&node.payload).map_err(|error| error.to_string())?;
    let mut sum: i64 = payload.parse().map_err(|_| format!("{payload:?} is no number"))?;
    for input in inputs {
        sum = sum.wrapping_add(from_obj::<i64>(input).map_err(|error| error.to_string())?);
    }
    match node.op_type.as_str() {
        "sum" => {}
        "slow" if context.cancelled_within(SLOW) => return Err("cancelled".to_owned()),
        "slow" => {}
        "fail" => return Err("on purpose".to_owned()),
        other => return Err(format!("there is no operator {other}")),
    }
    Ok(vec![Output::of(&sum)?])
}
