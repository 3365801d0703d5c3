//! Linear algebra over blocks of 10 x 10, with ten workers at two object stores: thousands of tasks, most of them
//! submitted by tasks, containers of references, and results that mean others'. What comes of it is compared with what
//! is computed here without blocks.

mod block;
mod functions;

use std::future::pending;

use tokio::task::JoinSet;
use tripod_worker::{Driver, ObjectRef, Task, Worker};

use super::site::{Site, one};
use block::Block;
use tripod_wait::deadline;

/// What rounding may cost.
const CLOSE: f64 = 1e-9;

/// Workers of this process at each machine in turn.
struct Workers(JoinSet<()>);

impl Workers {
    fn start(site: &Site, count: usize) -> Self {
        let mut workers = Self(JoinSet::new());
        for place in 0..count {
            workers.at(site, place % site.machines.len());
        }
        workers
    }

    /// Another worker.
    fn at(&mut self, site: &Site, machine: usize) {
        let worker = functions::add_to(Worker::new(site.config(machine)));
        self.0.spawn(async move {
            // It ends with the test, or with its store.
            let _ = worker.run(pending()).await;
        });
    }
}

fn of(name: &str, objects: &[&ObjectRef]) -> Task {
    objects.iter().fold(Task::of(name), |task, object| task.object(object))
}

async fn split(driver: &Driver, whole: &Block) -> ObjectRef {
    let whole = driver.put(whole).await.expect("written");
    one(driver, of("la.split", &[&whole])).await
}

/// The whole of a matrix in blocks.
async fn whole(driver: &Driver, matrix: &ObjectRef) -> Block {
    let whole = one(driver, of("la.assemble", &[matrix])).await;
    block(driver, &whole).await
}

async fn block(driver: &Driver, object: &ObjectRef) -> Block {
    driver.get_within(object, deadline()).await.expect("a block")
}

fn assert_close(found: &Block, expected: &Block) {
    let distance = found.distance(expected);
    assert!(distance < CLOSE, "they are {distance} apart");
}

/// Orthonormal columns times an upper triangle.
fn assert_factors(orthonormal: &Block, triangle: &Block, product: &Block) {
    assert_close(
        &orthonormal.transpose().dot(orthonormal),
        &Block::eye(orthonormal.columns, orthonormal.columns),
    );
    assert_close(&triangle.only(|i, j| i > j), &Block::of(triangle.rows, triangle.columns, |_, _| 0.0));
    assert_close(&orthonormal.dot(triangle), product);
}

async fn sums_and_products(driver: &Driver) {
    let (one_whole, two_whole) = (Block::numbers(1, (0, 0), (25, 32)), Block::numbers(2, (0, 0), (25, 32)));
    let (left, right) = (split(driver, &one_whole).await, split(driver, &two_whole).await);
    assert_eq!(whole(driver, &left).await, one_whole);
    for (value, shape) in [(0.0, (25, 32)), (1.0, (7, 21))] {
        let full = one(driver, Task::of("la.full").arg(&(value, shape)).expect("a shape")).await;
        assert_eq!(whole(driver, &full).await, Block::of(shape.0, shape.1, |_, _| value));
    }
    let eye = one(driver, Task::of("la.eye").arg(&(23, 12)).expect("a shape")).await;
    assert_eq!(whole(driver, &eye).await, Block::eye(23, 12));
    let sum = one(driver, of("la.add", &[&left, &right])).await;
    let difference = one(driver, of("la.subtract", &[&sum, &right])).await;
    assert_close(&whole(driver, &sum).await, &one_whole.with(&two_whole, |one, two| one + two));
    assert_close(&whole(driver, &difference).await, &one_whole);
    let turned = one(driver, of("la.transpose", &[&right])).await;
    let product = one(driver, of("la.dot", &[&left, &turned])).await;
    let expected = one_whole.dot(&two_whole.transpose());
    assert_close(&whole(driver, &product).await, &expected);
    let upper = one(driver, of("la.triu", &[&product])).await;
    let lower = one(driver, of("la.tril", &[&product])).await;
    assert_close(&whole(driver, &upper).await, &expected.only(|i, j| i <= j));
    assert_close(&whole(driver, &lower).await, &expected.only(|i, j| i >= j));
}

async fn factors(driver: &Driver) {
    for (blocks, columns) in [(1, 10), (3, 7), (6, 10)] {
        let tall = Block::numbers(3, (0, 0), (10 * blocks - 3, columns));
        let tall_in_blocks = split(driver, &tall).await;
        let results = driver.submit(&of("la.tsqr", &[&tall_in_blocks])).await.expect("submitted");
        let orthonormal = whole(driver, &results[0]).await;
        assert_factors(&orthonormal, &block(driver, &results[1]).await, &tall);

        let results = driver.submit(&of("la.lu", &[&results[0]])).await.expect("submitted");
        let (lower, upper) = (whole(driver, &results[0]).await, block(driver, &results[1]).await);
        let signs = block(driver, &results[2]).await;
        let signs = Block::of(lower.rows, lower.columns, |i, j| if i == j { signs.at(i, i) } else { 0.0 });
        assert_close(&lower.dot(&upper).with(&signs, |product, sign| product + sign), &orthonormal);
        assert_close(&upper, &upper.only(|i, j| i <= j));
    }
    for (rows, columns) in [(8, 8), (35, 22), (31, 44)] {
        let any = Block::numbers(4, (0, 0), (rows, columns));
        let any_in_blocks = split(driver, &any).await;
        let results = driver.submit(&of("la.qr", &[&any_in_blocks])).await.expect("submitted");
        let orthonormal = whole(driver, &results[0]).await;
        assert_factors(&orthonormal, &whole(driver, &results[1]).await, &any);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u17_linear_algebra_over_blocks_with_ten_workers_at_two_stores() {
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 2, 0);
    let _workers = Workers::start(&site, 10);
    site.until_workers(10);
    let driver = site.driver(0).await;
    sums_and_products(&driver).await;
    factors(&driver).await;
    site.until_empty();
    let status = site.status();
    assert_eq!(status["tasks"]["failed"], 0, "{status:#}");
    assert!(status["tasks"]["succeeded"].as_u64().is_some_and(|tasks| tasks > 500), "{status:#}");
}

/// When a store is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Killed {
    Before,
    Between,
    After,
}

/// A machine other than the driver's dies with what was only there, and another one comes.
fn replace_a_machine(site: &mut Site, workers: &mut Workers) {
    drop(site.machines.remove(1));
    let another = site.new_machine(0);
    site.machines.push(another);
    for _ in 0..3 {
        workers.at(site, site.machines.len() - 1);
    }
}

/// Each of the machines that die is another one, and they die one soon after the other: that they are gone is found at
/// about the same time, as it takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u25_products_are_right_whenever_a_store_is_killed() {
    let data = tempfile::tempdir().expect("a directory");
    let mut site = Site::start(data.path(), 4, 0);
    let mut workers = Workers::start(&site, 8);
    site.until_workers(8);
    let driver = site.driver(0).await;
    let shape = (40, 40);
    let numbers = [0, 1].map(|seed: u64| Block::numbers(seed, (0, 0), shape));
    let mut matrices = Vec::new();
    for _ in 0..3 {
        for (seed, numbers) in (0..2u64).zip(&numbers) {
            let matrix = one(&driver, Task::of("la.numbers").arg(&(seed, shape)).unwrap()).await;
            assert_eq!(whole(&driver, &matrix).await, *numbers);
            matrices.push(matrix);
        }
    }
    let mut products = Vec::new();
    for (when, matrices) in
        [Killed::Before, Killed::Between, Killed::After].into_iter().zip(matrices.chunks(2))
    {
        let mut kill = |now: Killed| {
            if when == now {
                tokio::task::block_in_place(|| replace_a_machine(&mut site, &mut workers));
            }
        };
        kill(Killed::Before);
        products.push((one(&driver, of("la.dot", &[&matrices[0], &matrices[1]])).await, 0));
        kill(Killed::Between);
        products.push((one(&driver, of("la.dot", &[&matrices[1], &matrices[0]])).await, 1));
        kill(Killed::After);
    }
    drop(matrices);
    for (product, left) in products {
        assert_close(&whole(&driver, &product).await, &numbers[left].dot(&numbers[1 - left]));
    }
    site.until_empty();
    let status = site.status();
    assert_eq!(status["tasks"]["failed"], 0, "no task is at fault: {status:#}");
}
