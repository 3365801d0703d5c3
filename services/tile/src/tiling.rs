//! The way from a graph of tileables to one of chunks.

use crate::builder::Builder;
use crate::chunk::{ChunkGraph, Content, Target};
use crate::graph::{Declared, Tileable, TileableGraph};
use crate::operator::check_shape;
use crate::order::order;
use crate::refusal::{Reason, Refusal, shape};
use crate::rules;
use crate::tiled::Tiled;

/// Whether operators may be used that only delay, fail or take memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helpers {
    Refused,
    ForTests,
}

/// The chunks of which the targets of a graph are made.
///
/// # Errors
/// The first node that cannot be tiled, and why.
pub fn tile(graph: &TileableGraph, helpers: Helpers) -> Result<ChunkGraph, Refusal> {
    let order = order(graph)?;
    let mut builder = Builder::default();
    let mut done: Vec<Option<Tiled>> = graph.tileables.iter().map(|_| None).collect();
    for place in &order.places {
        let tileable = &graph.tileables[*place];
        builder.begin(*place, &tileable.key);
        let inputs = order.inputs[*place]
            .iter()
            .map(|input| Input { place: *input, tiled: done[*input].as_ref().expect("inputs come first") });
        let tiled = one(&mut builder, tileable, &inputs.collect::<Vec<_>>(), helpers)
            .map_err(|reason| Refusal { node: Some(tileable.key.clone()), reason })?;
        done[*place] = Some(tiled);
    }
    let mut targets = Vec::with_capacity(order.targets.len());
    for place in order.targets {
        let tiled = done[place].take().expect("targets are tiled, and each is listed once");
        let Tiled { content, splits, chunks } = tiled;
        targets.push(Target { key: graph.tileables[place].key.clone(), content, splits, chunks });
    }
    Ok(builder.finish(targets))
}

/// One of the inputs of a tileable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Its place in the graph, by which its extents are called.
    pub(crate) place: usize,
    pub(crate) tiled: &'a Tiled,
}

fn one(
    builder: &mut Builder,
    tileable: &Tileable,
    inputs: &[Input<'_>],
    helpers: Helpers,
) -> Result<Tiled, Reason> {
    if !tileable.operator.has_data() && !tileable.data.is_empty() {
        return Err(Reason::Data);
    }
    let tiled = rules::apply(builder, tileable, inputs, helpers)?;
    let counts = tiled.splits.counts();
    assert_eq!(counts.iter().product::<usize>(), tiled.chunks.len(), "every index has a chunk");
    if let Content::Tensor(dtype) = &tiled.content {
        // Extents that nobody knows are those of something that was looked at.
        let known: Vec<u64> = tiled.splits.shape().into_iter().map(|extent| extent.unwrap_or(1)).collect();
        check_shape(&known, *dtype)?;
    }
    if let Some(declared) = &tileable.declared {
        check_declared(declared, &tiled)?;
    }
    Ok(tiled)
}

fn check_declared(declared: &Declared, tiled: &Tiled) -> Result<(), Reason> {
    let dtype = tiled.dtype()?;
    let is = tiled.splits.shape();
    let agrees = |(declared, is): (&Option<u64>, &Option<u64>)| match (declared, is) {
        (Some(declared), Some(is)) => declared == is,
        _ => true,
    };
    let same_dims = declared.shape.len() == is.len();
    if declared.dtype == dtype && same_dims && declared.shape.iter().zip(&is).all(agrees) {
        return Ok(());
    }
    Err(Reason::Declared {
        declared: format!("{}{}", declared.dtype, shape(&declared.shape)),
        is: format!("{dtype}{}", shape(&is)),
    })
}
