//! Graphs and what is made of them, as text: tileables as lines of JSON, a line of dashes, the chunks.
//! `UPDATE_EXPECT=1` writes what is made of them now; review the difference.

use std::path::{Path, PathBuf};

use tripod_tile::{ChunkGraph, ChunkNode, Helpers, TileableGraph, tile, write_operator};

const DASHES: &str = "----";

#[test]
fn transcripts_read_as_written() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let files = files();
    assert!(!files.is_empty(), "the transcripts are missing");
    let mut wrong = Vec::new();
    for file in files {
        let written = std::fs::read_to_string(&file).unwrap();
        let actual = run(&written);
        if update {
            std::fs::write(&file, &actual).unwrap();
        } else if actual != written {
            wrong.push(format!("{}:\n{actual}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "UPDATE_EXPECT=1 writes what came out\n{}", wrong.join("\n"));
}

/// A transcript that says something else must be noticed, or the test above proves nothing.
#[test]
fn a_wrong_transcript_is_noticed() {
    let written = "{\"key\":\"a\",\"operator\":{\"op\":\"matmul\"}}\n----\nnothing\n";
    assert_ne!(run(written), written);
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiling/transcripts");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    files
}

/// The transcript with what is made of its graphs. Blocks are divided by an empty line.
fn run(written: &str) -> String {
    let blocks = written.trim_end().split("\n\n").map(|block| {
        let asked: Vec<&str> = block.lines().take_while(|line| *line != DASHES).collect();
        format!("{}\n{DASHES}\n{}", asked.join("\n"), said(&asked))
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn said(asked: &[&str]) -> String {
    let lines = asked.iter().filter(|line| !line.starts_with('#'));
    let tileables =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")));
    let graph = TileableGraph { tileables: tileables.collect(), targets: Vec::new() };
    match tile(&graph, Helpers::ForTests) {
        Ok(chunks) => shown(&chunks),
        Err(refusal) => format!("refused: {refusal}\n"),
    }
}

fn shown(graph: &ChunkGraph) -> String {
    let key = |id: &tripod_tile::ChunkId| graph.nodes[id.0].key.to_string();
    let node = |node: &ChunkNode| {
        let (name, attributes) = write_operator(&node.operator);
        let attributes = String::from_utf8(attributes).unwrap();
        let extents: Vec<_> = node.extents.iter().map(ToString::to_string).collect();
        let inputs: Vec<_> = node.inputs.iter().map(key).collect();
        let from = if inputs.is_empty() { String::new() } else { format!(" <- {}", inputs.join(" ")) };
        let data = if node.data.is_empty() { String::new() } else { format!(" data {:?}", node.data) };
        format!("{} {}[{}] {name} {attributes}{from}{data}\n", node.key, node.content, extents.join(","))
    };
    let target = |target: &tripod_tile::Target| {
        let chunks: Vec<_> = target.chunks.iter().map(key).collect();
        format!("= {} {} {}\n", target.key, target.content, chunks.join(" "))
    };
    graph.nodes.iter().map(node).chain(graph.targets.iter().map(target)).collect()
}
