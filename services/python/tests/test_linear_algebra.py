"""U17: linear algebra over blocks of 10 x 10, with ten workers at two object stores, equals numpy's."""

import os
import sys
import unittest

import cloudpickle
import linear_algebra as la
import numpy as np
from cluster import ENDPOINTS, ClusterTest, counts, eventually

import tripod_ray as ray

# Workers do not have the module, so it travels with its functions.
cloudpickle.register_pickle_by_value(sys.modules["linear_algebra"])

WORKERS = 10
# Another machine with an object store, if the cluster has one.
SECOND_NODE_IP = "SECOND_NODE_IP"


class LinearAlgebra(ClusterTest):
    workers = 0
    stores = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        second = os.environ.get(SECOND_NODE_IP) if ENDPOINTS else None
        for place in range(WORKERS):
            cls.cluster.start_worker(*(["--node-ip", second] if second and place % 2 else []))
        cls.cluster.await_workers(WORKERS)

    def setUp(self):
        self.random = np.random.default_rng(17)

    def split(self, *shape):
        """An array of random numbers, and its matrix."""
        whole = self.random.normal(size=shape)
        return whole, la.split.remote(whole)

    def assert_is(self, matrix, whole):
        np.testing.assert_allclose(ray.get(la.assemble.remote(matrix)), whole, atol=1e-10)

    def test_matrices_are_made_and_put_together(self):
        whole, matrix = self.split(25, 37)
        self.assertEqual(ray.get(matrix).grid, (3, 4))
        self.assert_is(matrix, whole)
        for shape in [(10, 10), (3, 5), (20, 21)]:
            self.assert_is(la.zeros.remote(shape), np.zeros(shape))
            self.assert_is(la.ones.remote(shape), np.ones(shape))
            self.assert_is(la.eye.remote(shape), np.eye(*shape))

    def test_triangles_sums_and_transposes(self):
        one, left = self.split(30, 25)
        two, right = self.split(30, 25)
        self.assert_is(la.triu.remote(left), np.triu(one))
        self.assert_is(la.tril.remote(left), np.tril(one))
        self.assert_is(la.add.remote(left, right), one + two)
        self.assert_is(la.subtract.remote(left, right), one - two)
        self.assert_is(la.transpose.remote(left), one.T)
        self.assert_is(la.add.remote(la.triu.remote(left), la.tril.remote(right)), np.triu(one) + np.tril(two))

    def test_products(self):
        for rows, inner, columns in [(10, 10, 10), (7, 23, 4), (41, 30, 35)]:
            one, left = self.split(rows, inner)
            two, right = self.split(inner, columns)
            self.assert_is(la.dot.remote(left, right), one @ two)
        self.assert_is(la.gram.remote(left), one.T @ one)
        power = left = la.dot.remote(left, la.transpose.remote(left))
        expected = one @ one.T
        for _ in range(3):
            power, expected = la.dot.remote(power, left), expected @ (one @ one.T) / 1.0
        np.testing.assert_allclose(ray.get(la.assemble.remote(power)), expected, rtol=1e-9)

    def test_tsqr(self):
        for blocks, columns in [(1, 10), (2, 1), (3, 7), (4, 10), (7, 10)]:
            for rows in (10 * blocks, 10 * blocks - 3):
                whole, matrix = self.split(rows, columns)
                orthonormal, triangle = la.tsqr.remote(matrix)
                self.assert_factors(whole, ray.get(la.assemble.remote(orthonormal)), ray.get(triangle))

    def test_lu(self):
        for rows, columns in [(10, 10), (30, 10), (45, 4)]:
            whole, _ = np.linalg.qr(self.random.normal(size=(rows, columns)))
            lower, upper, signs = la.modified_lu.remote(la.split.remote(whole))
            lower, upper, signs = ray.get(la.assemble.remote(lower)), ray.get(upper), ray.get(signs)
            np.testing.assert_allclose(lower @ upper + np.eye(rows, columns) * signs, whole, atol=1e-10)
            np.testing.assert_array_equal(lower, np.tril(lower))
            np.testing.assert_array_equal(np.diag(lower), np.ones(columns))
            np.testing.assert_array_equal(upper, np.triu(upper))

    def test_qr(self):
        for shape in [(8, 8), (20, 20), (19, 35), (35, 12), (42, 33)]:
            whole, matrix = self.split(*shape)
            orthogonal, upper = (la.assemble.remote(factor) for factor in la.qr.remote(matrix))
            self.assert_factors(whole, ray.get(orthogonal), ray.get(upper))

    def assert_factors(self, whole, orthonormal, triangle):
        """The factors are numpy's, but for the signs of rows, which are free."""
        expected, upper = np.linalg.qr(whole)
        self.assertEqual((orthonormal.shape, triangle.shape), (expected.shape, upper.shape))
        signs = np.sign(np.diag(triangle)) * np.sign(np.diag(upper))
        np.testing.assert_allclose(orthonormal * signs, expected, atol=1e-9)
        np.testing.assert_allclose(triangle * signs[:, np.newaxis], upper, atol=1e-9)

    def test_nothing_is_left_when_everything_is_dropped(self):
        whole, matrix = self.split(30, 30)
        product = la.dot.remote(matrix, la.transpose.remote(matrix))
        result = la.assemble.remote(product)
        ray.get(result)
        made = [ref.id for ref in (matrix, product, result)]
        made += [ref.id for row in ray.get(product).rows + ray.get(matrix).rows for ref in row]
        del matrix, product, result, whole
        eventually(lambda: counts(made) == [-1] * len(made), "that matrices and their blocks are gone")


if __name__ == "__main__":
    unittest.main()
