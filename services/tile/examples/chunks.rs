//! Reads graphs, each a line of JSON, and prints for each its chunk graph as a line of JSON, or `{"refused": ...}`. What
//! compares tiling with numpy begins it (`tests/clients/tile_numpy.py`). With `--fused`, chains are one chunk.

use std::io::{BufRead, Write};

use tripod_tile::{Helpers, fuse, tile};

fn main() -> std::io::Result<()> {
    let is_fused = std::env::args().any(|argument| argument == "--fused");
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let graph = serde_json::from_str(&line?)?;
        match tile(&graph, Helpers::Refused) {
            Ok(chunks) if is_fused => serde_json::to_writer(&mut out, &fuse(chunks, |_, _| true))?,
            Ok(chunks) => serde_json::to_writer(&mut out, &chunks)?,
            Err(refusal) => {
                serde_json::to_writer(&mut out, &serde_json::json!({ "refused": refusal.to_string() }))?;
            }
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}
