//! Compiles the .proto files with a compiler that is itself a crate: no protoc on build machines.

use prost::Message as _;

const FILES: &[&str] = &[
    "etcd/kv.proto",
    "mars/v1/mars.proto",
    "mindspore/ps_core.proto",
    "mindspore/topology.proto",
    "peer/peer.proto",
    "ray/graph.proto",
    "ray/ray.proto",
    "ray/types.proto",
    "tensorflow/coordination.proto",
    "tensorflow/eager.proto",
    "tensorflow/payload.proto",
    "tensorflow/worker.proto",
    "tripod/v1/agents.proto",
    "tripod/v1/calls.proto",
    "tripod/v1/cluster.proto",
    "tripod/v1/jobs.proto",
    "tripod/v1/kv.proto",
    "tripod/v1/levels.proto",
    "tripod/v1/local_store.proto",
    "tripod/v1/mindspore.proto",
    "tripod/v1/ray.proto",
    "tripod/v1/sessions.proto",
    "tripod/v1/snapshots.proto",
    "tripod/v1/tokens.proto",
    "xla/coordination.proto",
    RUNTIME,
];
const RUNTIME: &str = "xla/runtime.proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let (mut runtime, mut others) = (descriptors.clone(), descriptors);
    runtime.file.retain(|file| file.name() == RUNTIME);
    others.file.retain(|file| file.name() != RUNTIME);
    // A token gets into no text by itself.
    let builder = || tonic_prost_build::configure().bytes(".").skip_debug([".tripod.v1.CreatedToken"]);
    builder().compile_fds(others)?;
    // A client that has a call `Connect` has no room for a method `connect` that opens a channel.
    builder().build_transport(false).compile_fds(runtime)?;
    Ok(())
}
