//! The functions of a worker. None of them waits for an object: what must wait is an argument of a further task, whose
//! results are given as one's own. So there are containers of references, tasks that submit tasks, and long chains of
//! results that mean others'.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tripod_proto::ray::Obj;
use tripod_worker::value::from_obj;
use tripod_worker::{Context, ObjectRef, Output, Task, Worker};

use super::block::Block;

/// Rows and columns of a block; those at the right and at the bottom may have fewer.
pub(super) const BLOCK: usize = 10;

type Outcome = Result<Vec<Output>, String>;

/// A matrix in blocks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Matrix {
    shape: (usize, usize),
    rows: Vec<Vec<ObjectRef>>,
}

impl Matrix {
    fn of(
        shape: (usize, usize),
        mut block: impl FnMut(usize, usize) -> Result<ObjectRef, String>,
    ) -> Result<Self, String> {
        let row = |i| (0..shape.1.div_ceil(BLOCK)).map(|j| block(i, j)).collect();
        Ok(Self { shape, rows: (0..shape.0.div_ceil(BLOCK)).map(row).collect::<Result<_, String>>()? })
    }

    fn column(&self, j: usize) -> Vec<ObjectRef> {
        self.rows.iter().map(|row| row[j].clone()).collect()
    }
}

/// How far the factors of a matrix are: what is left of it, and for each column of blocks the reflection.
#[derive(Debug, Serialize, Deserialize)]
struct Steps {
    rest: Matrix,
    reflections: Vec<(Matrix, ObjectRef)>,
}

/// The extent of a block.
fn extent(shape: (usize, usize), i: usize, j: usize) -> (usize, usize) {
    (BLOCK.min(shape.0 - i * BLOCK), BLOCK.min(shape.1 - j * BLOCK))
}

#[allow(clippy::needless_pass_by_value, reason = "it is used as a function")]
fn told(error: impl ToString) -> String {
    error.to_string()
}

fn read<T: DeserializeOwned>(arguments: &[Obj], place: usize) -> Result<T, String> {
    from_obj(arguments.get(place).ok_or("too few arguments")?).map_err(told)
}

fn blocks(arguments: &[Obj]) -> Result<Vec<Block>, String> {
    arguments.iter().map(|argument| from_obj(argument).map_err(told)).collect()
}

fn task<'a>(name: &str, objects: impl IntoIterator<Item = &'a ObjectRef>) -> Task {
    objects.into_iter().fold(Task::of(name), Task::object)
}

fn submit(context: &Context, task: &Task) -> Result<ObjectRef, String> {
    context.submit(task).map_err(told)?.pop().ok_or_else(|| "no result".to_owned())
}

fn filled(context: &Context, value: f64, shape: (usize, usize)) -> Result<ObjectRef, String> {
    submit(context, &Task::of("la.filled").arg(&(value, shape.0, shape.1)).map_err(told)?)
}

fn one<T: Serialize>(value: &T) -> Outcome {
    Ok(vec![Output::of(value)?])
}

/// The results of another task.
fn results_of(context: &Context, task: &Task) -> Outcome {
    Ok(context.submit(task).map_err(told)?.into_iter().map(Output::Object).collect())
}

/// The next argument, by value.
fn with<T: Serialize>(task: Task, value: &T) -> Result<Task, String> {
    task.arg(value).map_err(told)
}

/// Adds all of them to a worker.
pub(super) fn add_to(worker: Worker) -> Worker {
    of_matrices(of_blocks(worker))
        .full("la.tsqr", 2, tsqr)
        .full("la.lu", 3, |context, arguments| {
            let matrix: Matrix = read(arguments, 0)?;
            let whole = submit(context, &with(Task::of("la.assemble"), &matrix)?)?;
            results_of(context, &task("la.lu_whole", [&whole]))
        })
        .full("la.lu_whole", 3, lu_whole)
        .full("la.middle_below", 1, middle_below)
        .full("la.reflection", 3, reflection)
        .full("la.qr", 2, |context, arguments| {
            step(context, &Steps { rest: read(arguments, 0)?, reflections: Vec::new() })
        })
        .full("la.qr_next", 2, qr_next)
}

fn of_blocks(worker: Worker) -> Worker {
    worker
        .function("la.filled", |(value, rows, columns): (f64, usize, usize)| {
            Block::of(rows, columns, |_, _| value)
        })
        .function("la.numbers_block", |(seed, first, shape): (u64, (usize, usize), (usize, usize))| {
            Block::numbers(seed, first, shape)
        })
        .function("la.eye_block", |(rows, columns): (usize, usize)| Block::eye(rows, columns))
        .function("la.triu_block", |block: Block| block.only(|i, j| i <= j))
        .function("la.tril_block", |block: Block| block.only(|i, j| i >= j))
        .function("la.transpose_block", |block: Block| block.transpose())
        .function("la.add_block", |left: Block, right: Block| left.with(&right, |left, right| left + right))
        .function("la.subtract_block", |left: Block, right: Block| {
            left.with(&right, |left, right| left - right)
        })
        .function("la.dot_block", |left: Block, right: Block| left.dot(&right))
        .function("la.first_rows", |block: Block, first: usize, end: usize| {
            block.part((first, 0), (end - first, block.columns))
        })
        .function("la.middle", |upper: Block, signs: Block, top: Block| Block::middle(&upper, &signs, &top))
        .function("la.reflected", |block: Block, left: Block, middle: Block, projected: Block| {
            block.with(&left.dot(&middle).dot(&projected), |block, change| block - change)
        })
        .full("la.products", 1, |_, arguments| sum_of_products(arguments, Block::clone))
        .full("la.projected", 1, |_, arguments| sum_of_products(arguments, Block::transpose))
        .full("la.join", 1, |_, arguments| {
            let [across, rest @ ..] = arguments else { return Err("too few arguments".to_owned()) };
            one(&Block::join(from_obj(across).map_err(told)?, &blocks(rest)?))
        })
        .full("la.qr_block", 2, |_, arguments| {
            let (orthonormal, triangle) = Block::join(1, &blocks(arguments)?).qr();
            Ok(vec![Output::of(&orthonormal)?, Output::of(&triangle)?])
        })
}

/// The first half of the blocks, in a way, times the second half, place by place.
fn sum_of_products(arguments: &[Obj], left: impl Fn(&Block) -> Block) -> Outcome {
    let blocks = blocks(arguments)?;
    let (first, second) = blocks.split_at(blocks.len() / 2);
    let products = first.iter().zip(second).map(|(one, other)| left(one).dot(other));
    let sum = products.reduce(|sum, product| sum.with(&product, |sum, product| sum + product));
    one(&sum.ok_or("no blocks")?)
}

fn of_matrices(worker: Worker) -> Worker {
    worker
        .full("la.split", 1, |context, arguments| one(&split(context, &read(arguments, 0)?)?))
        .full("la.assemble", 1, |context, arguments| {
            let matrix: Matrix = read(arguments, 0)?;
            let join = with(Task::of("la.join"), &matrix.rows[0].len())?;
            results_of(context, &matrix.rows.iter().flatten().fold(join, Task::object))
        })
        .full("la.full", 1, |context, arguments| {
            let (value, shape) = read(arguments, 0)?;
            one(&Matrix::of(shape, |i, j| filled(context, value, extent(shape, i, j)))?)
        })
        .full("la.numbers", 1, |context, arguments| {
            let (seed, shape): (u64, _) = read(arguments, 0)?;
            let block = |i, j| {
                let part = (seed, (i * BLOCK, j * BLOCK), extent(shape, i, j));
                submit(context, &with(Task::of("la.numbers_block"), &part)?)
            };
            one(&Matrix::of(shape, block)?)
        })
        .full("la.eye", 1, |context, arguments| one(&eye(context, read(arguments, 0)?)?))
        .full("la.triu", 1, |context, arguments| triangle(context, arguments, "la.triu_block", |i, j| i < j))
        .full("la.tril", 1, |context, arguments| triangle(context, arguments, "la.tril_block", |i, j| i > j))
        .full("la.transpose", 1, |context, arguments| {
            let Matrix { shape, rows } = read(arguments, 0)?;
            let block = |i: usize, j: usize| submit(context, &task("la.transpose_block", [&rows[j][i]]));
            one(&Matrix::of((shape.1, shape.0), block)?)
        })
        .full("la.add", 1, |context, arguments| by_places(context, arguments, "la.add_block"))
        .full("la.subtract", 1, |context, arguments| by_places(context, arguments, "la.subtract_block"))
        .full("la.dot", 1, |context, arguments| {
            let (left, right): (Matrix, Matrix) = (read(arguments, 0)?, read(arguments, 1)?);
            let block = |i: usize, j: usize| {
                submit(context, &task("la.products", left.rows[i].iter().chain(&right.column(j))))
            };
            one(&Matrix::of((left.shape.0, right.shape.1), block)?)
        })
}

/// A matrix of a whole one, whose blocks are put.
fn split(context: &Context, whole: &Block) -> Result<Matrix, String> {
    let shape = (whole.rows, whole.columns);
    Matrix::of(shape, |i, j| {
        context.put(&whole.part((i * BLOCK, j * BLOCK), extent(shape, i, j))).map_err(told)
    })
}

fn eye(context: &Context, shape: (usize, usize)) -> Result<Matrix, String> {
    Matrix::of(shape, |i, j| match extent(shape, i, j) {
        extent if i == j => submit(context, &with(Task::of("la.eye_block"), &extent)?),
        extent => filled(context, 0.0, extent),
    })
}

/// Blocks that stay as they are are in both matrices.
fn triangle(
    context: &Context,
    arguments: &[Obj],
    diagonal: &str,
    stays: impl Fn(usize, usize) -> bool,
) -> Outcome {
    let matrix: Matrix = read(arguments, 0)?;
    let block = |i: usize, j: usize| match () {
        () if i == j => submit(context, &task(diagonal, [&matrix.rows[i][j]])),
        () if stays(i, j) => Ok(matrix.rows[i][j].clone()),
        () => filled(context, 0.0, extent(matrix.shape, i, j)),
    };
    one(&Matrix::of(matrix.shape, block)?)
}

fn by_places(context: &Context, arguments: &[Obj], name: &str) -> Outcome {
    let (left, right): (Matrix, Matrix) = (read(arguments, 0)?, read(arguments, 1)?);
    let block = |i: usize, j: usize| submit(context, &task(name, [&left.rows[i][j], &right.rows[i][j]]));
    one(&Matrix::of(left.shape, block)?)
}

/// Orthonormal columns and the triangle of a matrix of one column of blocks: two triangles at a time are put below each
/// other and factored again, until one is left; the orthonormal factors come down the same tree.
fn tsqr(context: &Context, arguments: &[Obj]) -> Outcome {
    let matrix: Matrix = read(arguments, 0)?;
    let columns = matrix.shape.1;
    let factored = |blocks: &[ObjectRef]| -> Result<(ObjectRef, ObjectRef), String> {
        let results = context.submit(&task("la.qr_block", blocks)).map_err(told)?;
        <[_; 2]>::try_from(results)
            .map(|[factor, triangle]| (factor, triangle))
            .map_err(|_| told("two results"))
    };
    // The factors of each level, and how many rows their triangles have.
    let mut levels: Vec<Vec<(ObjectRef, usize)>> = Vec::new();
    let mut below = matrix.column(0);
    let mut extents: Vec<_> = (0..below.len()).map(|i| extent(matrix.shape, i, 0).0).collect();
    loop {
        let together = if levels.is_empty() { 1 } else { 2 };
        let factors = below.chunks(together).map(factored).collect::<Result<Vec<_>, _>>()?;
        extents = extents.chunks(together).map(|extents| columns.min(extents.iter().sum())).collect();
        below = factors.iter().map(|(_, triangle)| triangle.clone()).collect();
        levels.push(factors.into_iter().map(|(factor, _)| factor).zip(extents.iter().copied()).collect());
        if below.len() == 1 {
            break;
        }
    }
    let mut parts = vec![levels.pop().expect("one level")[0].0.clone()];
    for level in levels.iter().rev() {
        let part = |(place, (factor, extent)): (usize, &(ObjectRef, usize))| {
            let first = if place % 2 == 1 { level[place - 1].1 } else { 0 };
            let rows = with(task("la.first_rows", [&parts[place / 2]]), &first)?;
            let rows = submit(context, &with(rows, &(first + extent))?)?;
            submit(context, &task("la.dot_block", [factor, &rows]))
        };
        parts = level.iter().enumerate().map(part).collect::<Result<_, String>>()?;
    }
    let shape = (matrix.shape.0, columns.min(matrix.shape.0));
    let orthonormal = Matrix { shape, rows: parts.into_iter().map(|part| vec![part]).collect() };
    let triangle = below.pop().expect("the last one");
    Ok(vec![Output::of(&orthonormal)?, Output::Object(triangle)])
}

fn lu_whole(context: &Context, arguments: &[Obj]) -> Outcome {
    let (lower, upper, signs) = read::<Block>(arguments, 0)?.modified_lu();
    Ok(vec![Output::of(&split(context, &lower)?)?, Output::of(&upper)?, Output::of(&signs)?])
}

fn middle_below(context: &Context, arguments: &[Obj]) -> Outcome {
    let lower: Matrix = read(arguments, 0)?;
    let (upper, signs): (ObjectRef, ObjectRef) = read(arguments, 1)?;
    results_of(context, &task("la.middle", [&upper, &signs, &lower.rows[0][0]]))
}

/// Y, T and R of a matrix of one column of blocks, which is (I - Y T Y') times R.
fn reflection(context: &Context, arguments: &[Obj]) -> Outcome {
    let matrix: Matrix = read(arguments, 0)?;
    let factors = context.submit(&with(Task::of("la.tsqr"), &matrix)?).map_err(told)?;
    let [orthonormal, triangle] = &factors[..] else { return Err("two results".to_owned()) };
    let factors = context.submit(&task("la.lu", [orthonormal])).map_err(told)?;
    let [lower, upper, signs] = &factors[..] else { return Err("three results".to_owned()) };
    let middle = submit(context, &with(task("la.middle_below", [lower]), &(upper, signs))?)?;
    let triangle = submit(context, &task("la.dot_block", [signs, triangle]))?;
    Ok([lower.clone(), middle, triangle].map(Output::Object).into())
}

/// Begins the next column of blocks.
fn step(context: &Context, steps: &Steps) -> Outcome {
    let Steps { rest: Matrix { shape, rows }, reflections } = steps;
    let place = reflections.len();
    let column = rows[place..].iter().map(|row| vec![row[place].clone()]).collect();
    let shape = (shape.0 - place * BLOCK, extent(*shape, 0, place).1);
    let reflection = with(Task::of("la.reflection"), &Matrix { shape, rows: column })?;
    let results = context.submit(&reflection).map_err(told)?;
    let [reflector, middle, triangle] = &results[..] else { return Err("three results".to_owned()) };
    let next = with(task("la.qr_next", [reflector]), &(middle, triangle, steps))?;
    results_of(context, &next)
}

/// Applies the reflection of a column of blocks to those at its right.
fn qr_next(context: &Context, arguments: &[Obj]) -> Outcome {
    let reflector: Matrix = read(arguments, 0)?;
    let (middle, triangle, mut steps): (ObjectRef, ObjectRef, Steps) = read(arguments, 1)?;
    let place = steps.reflections.len();
    let turned = submit(context, &task("la.transpose_block", [&middle]))?;
    for column in place + 1..steps.rest.rows[0].len() {
        reflect(context, &mut steps.rest.rows[place..], column, &reflector, &turned)?;
    }
    steps.rest.rows[place][place] = triangle;
    steps.reflections.push((reflector, middle));
    let shape = steps.rest.shape;
    let count = shape.0.min(shape.1);
    if steps.reflections.len() < count.div_ceil(BLOCK) {
        return step(context, &steps);
    }
    let upper = Matrix::of((count, shape.1), |i, j| match () {
        () if i <= j => Ok(steps.rest.rows[i][j].clone()),
        () => filled(context, 0.0, extent((count, shape.1), i, j)),
    })?;
    // What is left of a column is still that of the identity, and has nothing in these rows.
    let mut orthogonal = eye(context, (shape.0, count))?;
    for (place, (reflector, middle)) in steps.reflections.iter().enumerate().rev() {
        for column in place..orthogonal.rows[0].len() {
            reflect(context, &mut orthogonal.rows[place..], column, reflector, middle)?;
        }
    }
    Ok(vec![Output::of(&orthogonal)?, Output::of(&upper)?])
}

/// Applies I - Y M Y' to one column of the blocks of these rows.
fn reflect(
    context: &Context,
    rows: &mut [Vec<ObjectRef>],
    column: usize,
    reflector: &Matrix,
    middle: &ObjectRef,
) -> Result<(), String> {
    let left = reflector.column(0);
    let projected =
        submit(context, &task("la.projected", left.iter().chain(rows.iter().map(|row| &row[column]))))?;
    for (row, part) in rows.iter_mut().zip(&left) {
        row[column] = submit(context, &task("la.reflected", [&row[column], part, middle, &projected]))?;
    }
    Ok(())
}
