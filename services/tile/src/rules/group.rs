//! Rows with equal values, together.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkId, ChunkOperator, Content, Gives, Takes};
use crate::column::Column;
use crate::limits::{COMBINE_SIZE, REDUCERS_MAX};
use crate::operator::Aggregate;
use crate::refusal::Reason;
use crate::rules::frame::{check_columns, columns, find, type_of};
use crate::splits::Splits;
use crate::tiled::Tiled;

/// Groups of each chunk, and then of groups of chunks: merged in a tree to one chunk, or shuffled to as many as there are
/// reducers.
pub(super) fn group_by(
    builder: &mut Builder,
    tiled: &Tiled,
    by: &[String],
    aggregates: &[Aggregate],
    reducers: u32,
) -> Result<Tiled, Reason> {
    let result = result_columns(columns(tiled)?, by, aggregates)?;
    check_columns(&result)?;
    check_reducers(reducers)?;
    if by.is_empty() {
        return Err(Reason::Columns("none to group by".to_owned()));
    }
    let operator = |takes, gives| ChunkOperator::GroupBy {
        by: by.to_vec(),
        aggregates: aggregates.to_vec(),
        takes,
        gives,
    };
    let content = Content::Frame(result);
    builder.room(&tiled.splits.counts())?;
    let map = operator(Takes::Values, Gives::Partial);
    let mut level = Vec::with_capacity(tiled.chunks.len());
    for chunk in &tiled.chunks {
        level.push(builder.add(Part::Between, Draft::new(map.clone(), vec![*chunk], &Content::Partial))?);
    }
    let splits = rows(builder, reducers);
    let finish = operator(Takes::Partials, Gives::Result);
    let mut chunks = Vec::new();
    if reducers == 1 {
        let combine = operator(Takes::Partials, Gives::Partial);
        while level.len() > COMBINE_SIZE {
            level = combined(builder, &level, &combine)?;
        }
        let draft = Draft::new(finish, level, &content).at(&[0], &splits);
        chunks.push(builder.add(Part::Output, draft)?);
    } else {
        for (number, partial) in (0..).zip(shuffled(builder, &level, by, reducers)?) {
            let draft = Draft::new(finish.clone(), vec![partial], &content);
            chunks.push(builder.add(Part::Output, draft.at(&[number], &splits))?);
        }
    }
    Ok(Tiled { content, splits, chunks })
}

/// Rows whose values in these columns are equal come into one chunk.
pub(super) fn shuffle(
    builder: &mut Builder,
    tiled: &Tiled,
    by: &[String],
    reducers: u32,
) -> Result<Tiled, Reason> {
    check_reducers(reducers)?;
    let all = columns(tiled)?;
    let named = by.iter().map(|name| find(all, name).cloned()).collect::<Result<Vec<_>, _>>()?;
    check_columns(&named)?;
    let splits = rows(builder, reducers);
    let maps = mapped(builder, &tiled.chunks, by, reducers)?;
    let mut chunks = Vec::new();
    for (reducer, index) in (0..reducers).zip(builder.grid(&splits)?) {
        let draft = Draft::new(ChunkOperator::ShuffleReduce { reducer }, maps.clone(), &tiled.content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &splits))?);
    }
    Ok(Tiled { content: tiled.content.clone(), splits, chunks })
}

fn check_reducers(reducers: u32) -> Result<(), Reason> {
    if (1..=REDUCERS_MAX).contains(&reducers) {
        return Ok(());
    }
    Err(Reason::Value("there are between 1 and 4096 reducers"))
}

fn rows(builder: &Builder, reducers: u32) -> Splits {
    Splits(vec![(0..).zip(0..reducers).map(|(part, _)| builder.unknown(part)).collect()])
}

fn result_columns(
    columns: &[Column],
    by: &[String],
    aggregates: &[Aggregate],
) -> Result<Vec<Column>, Reason> {
    let mut result = by.iter().map(|name| find(columns, name).cloned()).collect::<Result<Vec<_>, _>>()?;
    for Aggregate { column, function, name } in aggregates {
        let values = type_of(columns, column)?;
        let dtype = function.result(values).ok_or(Reason::Value("texts have no sum and no mean"))?;
        result.push(Column { name: name.clone(), dtype });
    }
    Ok(result)
}

fn combined(
    builder: &mut Builder,
    level: &[ChunkId],
    combine: &ChunkOperator,
) -> Result<Vec<ChunkId>, Reason> {
    let add = |group: &[ChunkId]| {
        builder.add(Part::Between, Draft::new(combine.clone(), group.to_vec(), &Content::Partial))
    };
    level.chunks(COMBINE_SIZE).map(add).collect()
}

/// One node for each input, whose result has a part for each reducer.
fn mapped(
    builder: &mut Builder,
    inputs: &[ChunkId],
    by: &[String],
    reducers: u32,
) -> Result<Vec<ChunkId>, Reason> {
    let map = |input: &ChunkId| {
        let operator = ChunkOperator::ShuffleMap { by: by.to_vec(), reducers };
        builder.add(Part::Between, Draft::new(operator, vec![*input], &Content::Partial))
    };
    inputs.iter().map(map).collect()
}

/// Partial results, a chunk for each reducer.
fn shuffled(
    builder: &mut Builder,
    level: &[ChunkId],
    by: &[String],
    reducers: u32,
) -> Result<Vec<ChunkId>, Reason> {
    let maps = mapped(builder, level, by, reducers)?;
    let reduce = |reducer: u32| {
        let operator = ChunkOperator::ShuffleReduce { reducer };
        builder.add(Part::Between, Draft::new(operator, maps.clone(), &Content::Partial))
    };
    (0..reducers).map(reduce).collect()
}
