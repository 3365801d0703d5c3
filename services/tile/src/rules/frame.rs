//! Frames: they are cut by rows, of which it is mostly unknown how many a chunk has.

use std::collections::BTreeSet;

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkId, ChunkOperator, Content};
use crate::column::{Column, ColumnType};
use crate::extent::Extent;
use crate::limits::{CHUNKS_MAX, COLUMN_NAME_BYTES_MAX, COLUMNS_MAX, COMBINE_SIZE};
use crate::operator::FrameFormat;
use crate::refusal::Reason;
use crate::rules::elementwise::each;
use crate::rules::take::{check_mask, kept};
use crate::splits::Splits;
use crate::tiled::Tiled;
use crate::tiling::Input;

/// A chunk for each file.
pub(super) fn read(
    builder: &mut Builder,
    data: &[u8],
    format: FrameFormat,
    files: &[u64],
    columns: &[Column],
) -> Result<Tiled, Reason> {
    check_columns(columns)?;
    if files.is_empty() {
        return Err(Reason::Value("a frame has a file at least"));
    }
    if files.len() > CHUNKS_MAX {
        return Err(Reason::TooManyChunks);
    }
    let is = data.len() as u64;
    let wanted = files.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    if is != wanted {
        return Err(Reason::DataBytes { is, wanted });
    }
    let content = Content::Frame(columns.to_vec());
    let splits = Splits(vec![(0..files.len()).map(|part| builder.unknown(part)).collect()]);
    let mut rest = data;
    let mut chunks = Vec::with_capacity(files.len());
    for (index, bytes) in builder.grid(&splits)?.zip(files) {
        let (file, others) = rest.split_at(usize::try_from(*bytes).unwrap_or(rest.len()).min(rest.len()));
        rest = others;
        let draft = Draft::new(ChunkOperator::ReadFrame { format }, Vec::new(), &content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &splits).with_data(file.to_vec()))?);
    }
    Ok(Tiled { content, splits, chunks })
}

pub(super) fn project(builder: &mut Builder, tiled: &Tiled, names: &[String]) -> Result<Tiled, Reason> {
    let columns = columns(tiled)?;
    let kept = names.iter().map(|name| find(columns, name).cloned()).collect::<Result<Vec<_>, _>>()?;
    check_columns(&kept)?;
    each(builder, tiled, &Content::Frame(kept), &ChunkOperator::Project { columns: names.to_vec() })
}

pub(super) fn column(builder: &mut Builder, tiled: &Tiled, name: &str) -> Result<Tiled, Reason> {
    let found = find(columns(tiled)?, name)?;
    let dtype = found.dtype.dtype().ok_or(Reason::Value("a tensor has no texts"))?;
    let operator = ChunkOperator::Column { name: name.to_owned() };
    each(builder, tiled, &Content::Tensor(dtype), &operator)
}

/// The mask must be cut as the frame is, as one that is made of its columns.
pub(super) fn filter(builder: &mut Builder, inputs: &[Input<'_>]) -> Result<Tiled, Reason> {
    let (tiled, mask) = (inputs[0].tiled, inputs[1].tiled);
    columns(tiled)?;
    check_mask(mask)?;
    if tiled.splits != mask.splits {
        return Err(match (tiled.splits.total(0), mask.splits.total(0)) {
            (Some(_), Some(_)) => Reason::Shapes { left: tiled.splits.shape(), right: mask.splits.shape() },
            _ => Reason::Unknown { axis: 0 },
        });
    }
    let splits = Splits(vec![kept(inputs[1], mask.chunks.len())]);
    let mut chunks = Vec::with_capacity(tiled.chunks.len());
    for (index, (rows, mask)) in builder.grid(&splits)?.zip(tiled.chunks.iter().zip(&mask.chunks)) {
        let draft = Draft::new(ChunkOperator::FilterRows, vec![*rows, *mask], &tiled.content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &splits))?);
    }
    Ok(Tiled { content: tiled.content.clone(), splits, chunks })
}

/// The first rows of each chunk, of groups of those, and so on.
pub(super) fn head(builder: &mut Builder, tiled: &Tiled, rows: u64) -> Result<Tiled, Reason> {
    columns(tiled)?;
    let extent =
        tiled.splits.total(0).map_or_else(|| builder.unknown(0), |total| Extent::Known(total.min(rows)));
    let splits = Splits(vec![vec![extent]]);
    builder.room(&tiled.splits.counts())?;
    let mut level: Vec<ChunkId> = tiled.chunks.clone();
    let mut part = 1;
    loop {
        let is_last = level.len() <= COMBINE_SIZE;
        let mut next = Vec::with_capacity(level.len().div_ceil(COMBINE_SIZE));
        for group in level.chunks(COMBINE_SIZE) {
            let draft = Draft::new(ChunkOperator::Head { rows }, group.to_vec(), &tiled.content);
            let (kind, draft) = if is_last {
                (Part::Output, draft.at(&[0], &splits))
            } else {
                let between = Splits(vec![vec![builder.unknown(part)]]);
                (Part::Between, draft.at(&[0], &between))
            };
            part += 1;
            next.push(builder.add(kind, draft)?);
        }
        if is_last {
            return Ok(Tiled { content: tiled.content.clone(), splits, chunks: next });
        }
        level = next;
    }
}

/// The columns of a frame.
pub(super) fn columns(tiled: &Tiled) -> Result<&[Column], Reason> {
    match &tiled.content {
        Content::Frame(columns) => Ok(columns),
        Content::Tensor(_) | Content::Partial => Err(Reason::Tensor),
    }
}

/// The column of that name.
pub(super) fn find<'a>(columns: &'a [Column], name: &str) -> Result<&'a Column, Reason> {
    let found = columns.iter().find(|column| column.name == name);
    found.ok_or_else(|| Reason::UnknownColumn(name.chars().take(COLUMN_NAME_BYTES_MAX).collect()))
}

/// Whether these can be the columns of a frame.
pub(super) fn check_columns(columns: &[Column]) -> Result<(), Reason> {
    if columns.is_empty() {
        return Err(Reason::Columns("none".to_owned()));
    }
    if columns.len() > COLUMNS_MAX {
        return Err(Reason::Columns(format!("{}, which is more than {COLUMNS_MAX}", columns.len())));
    }
    let mut names = BTreeSet::new();
    for Column { name, dtype: _ } in columns {
        if name.is_empty() || name.len() > COLUMN_NAME_BYTES_MAX {
            return Err(Reason::Text { bytes: name.len(), most: COLUMN_NAME_BYTES_MAX });
        }
        if !names.insert(name) {
            return Err(Reason::Columns(format!("{name} twice")));
        }
    }
    Ok(())
}

/// The type of the column of that name.
pub(super) fn type_of(columns: &[Column], name: &str) -> Result<ColumnType, Reason> {
    Ok(find(columns, name)?.dtype)
}
