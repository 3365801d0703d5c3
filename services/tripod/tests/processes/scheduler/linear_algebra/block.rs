//! Blocks: small matrices of numbers, and what is computed with one or two of them.

use serde::{Deserialize, Serialize};

/// A matrix as its rows, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

impl Block {
    pub(super) fn of(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let places = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        Self { rows, columns, values: places.map(|(i, j)| value(i, j)).collect() }
    }

    pub(super) fn eye(rows: usize, columns: usize) -> Self {
        Self::of(rows, columns, |i, j| if i == j { 1.0 } else { 0.0 })
    }

    /// A part of a matrix of numbers that look random, between -1 and 1.
    pub(super) fn numbers(seed: u64, first: (usize, usize), shape: (usize, usize)) -> Self {
        Self::of(shape.0, shape.1, |i, j| {
            let place = ((first.0 + i) << 20 | (first.1 + j)) as u64;
            let mixed =
                (place + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            f64::from(u32::try_from(mixed >> 32).expect("32 bits")) / f64::from(u32::MAX) * 2.0 - 1.0
        })
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    fn set(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.columns + j] = value;
    }

    /// The same places of both.
    pub(super) fn with(&self, other: &Self, both: impl Fn(f64, f64) -> f64) -> Self {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        Self::of(self.rows, self.columns, |i, j| both(self.at(i, j), other.at(i, j)))
    }

    /// Only the places that are wanted; the others are zero.
    pub(super) fn only(&self, wanted: impl Fn(usize, usize) -> bool) -> Self {
        Self::of(self.rows, self.columns, |i, j| if wanted(i, j) { self.at(i, j) } else { 0.0 })
    }

    pub(super) fn transpose(&self) -> Self {
        Self::of(self.columns, self.rows, |i, j| self.at(j, i))
    }

    pub(super) fn dot(&self, right: &Self) -> Self {
        assert_eq!(self.columns, right.rows);
        let product = |i, j| (0..self.columns).map(|k| self.at(i, k) * right.at(k, j)).sum();
        Self::of(self.rows, right.columns, product)
    }

    /// A part of it.
    pub(super) fn part(&self, first: (usize, usize), shape: (usize, usize)) -> Self {
        Self::of(shape.0, shape.1, |i, j| self.at(first.0 + i, first.1 + j))
    }

    /// Blocks as one matrix, from the left to the right and from the top to the bottom.
    pub(super) fn join(across: usize, blocks: &[Self]) -> Self {
        let columns = blocks[..across].iter().map(|block| block.columns).sum();
        let mut values = Vec::new();
        for beside in blocks.chunks(across) {
            for i in 0..beside[0].rows {
                for block in beside {
                    values.extend_from_slice(&block.values[i * block.columns..(i + 1) * block.columns]);
                }
            }
        }
        Self { rows: values.len() / columns, columns, values }
    }

    /// Orthonormal columns and an upper triangle whose product it is, by Gram and Schmidt, twice for accuracy.
    pub(super) fn qr(&self) -> (Self, Self) {
        let count = self.rows.min(self.columns);
        let mut orthonormal = self.part((0, 0), (self.rows, count));
        for j in 0..count {
            for _ in 0..2 {
                for k in 0..j {
                    let along: f64 =
                        (0..self.rows).map(|i| orthonormal.at(i, k) * orthonormal.at(i, j)).sum();
                    for i in 0..self.rows {
                        orthonormal.set(i, j, orthonormal.at(i, j) - along * orthonormal.at(i, k));
                    }
                }
            }
            let length = (0..self.rows).map(|i| orthonormal.at(i, j).powi(2)).sum::<f64>().sqrt();
            for i in 0..self.rows {
                orthonormal.set(i, j, orthonormal.at(i, j) / length);
            }
        }
        let triangle = orthonormal.transpose().dot(self).only(|i, j| i <= j);
        (orthonormal, triangle)
    }

    /// L, U and S of orthonormal columns, so that they are L U + S: S is diagonal, of ones with the signs that make
    /// every pivot at least 1, so none is searched for.
    pub(super) fn modified_lu(&self) -> (Self, Self, Self) {
        let count = self.columns;
        let (mut lower, mut upper) = (self.clone(), Self::of(count, count, |_, _| 0.0));
        let mut signs = Self::of(count, count, |_, _| 0.0);
        for k in 0..count {
            signs.set(k, k, if lower.at(k, k) >= 0.0 { -1.0 } else { 1.0 });
            lower.set(k, k, lower.at(k, k) - signs.at(k, k));
            for j in k..count {
                upper.set(k, j, lower.at(k, j));
            }
            for i in k + 1..self.rows {
                lower.set(i, k, lower.at(i, k) / upper.at(k, k));
                for j in k + 1..count {
                    lower.set(i, j, lower.at(i, j) - lower.at(i, k) * upper.at(k, j));
                }
            }
        }
        let lower = Self::of(self.rows, count, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => lower.at(i, j),
        });
        (lower, upper, signs)
    }

    /// T, of which I - Y T Y' is the reflection whose first columns are L U + S, for Y = L: -U S over the transpose of
    /// the first rows of L.
    pub(super) fn middle(upper: &Self, signs: &Self, lower: &Self) -> Self {
        let scaled = upper.dot(signs);
        let mut middle = Self::of(upper.rows, upper.columns, |i, j| -scaled.at(i, j));
        for j in 0..upper.columns {
            for i in 0..upper.rows {
                let known: f64 = (0..j).map(|k| middle.at(i, k) * lower.at(j, k)).sum();
                middle.set(i, j, middle.at(i, j) - known);
            }
        }
        middle
    }

    /// The largest difference of any place.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        self.with(other, |left, right| (left - right).abs()).values.into_iter().fold(0.0, f64::max)
    }
}
