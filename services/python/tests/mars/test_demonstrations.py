"""Five programs whose results must be numpy's."""

import unittest

from mars.case import Case, mt, np


class Demonstrations(Case):
    def test_a_product_with_its_own_transpose(self):
        whole = np.random.default_rng(1).random((8, 8))
        tensor = mt.tensor(whole, chunk_size=4)
        found = ((tensor + 1) @ tensor.T).sum(axis=0).execute().fetch()
        np.testing.assert_allclose(found, ((whole + 1) @ whole.T).sum(axis=0), rtol=1e-13)

    def test_b_mean_and_variance_of_many_random_values(self):
        tensor = mt.random.rand(200_000, chunk_size=20_000, seed=11)
        mean, variance = mt.execute(tensor.mean(), tensor.var())
        whole = tensor.to_numpy()
        np.testing.assert_allclose([mean.fetch(), variance.fetch()], [whole.mean(), whole.var()], rtol=1e-12)

    def test_c_something_that_is_there_already_and_one(self):
        # A sealed mutable tensor is a tensor that was executed; `test_mutable` seals one.
        sealed = mt.tensor(np.arange(10), chunk_size=4).execute()
        np.testing.assert_array_equal((sealed + 1).execute().fetch(), np.arange(10) + 1)

    def test_d_regression_by_gradient_descent(self):
        chance = np.random.default_rng(3)
        points, weights = chance.random((60, 4)), np.array([1.0, -2, 3, 0.5])
        values = points @ weights
        x, y = mt.tensor(points, chunk_size=(16, 4)).execute(), mt.tensor(values, chunk_size=16).execute()
        w, expected = mt.zeros(4), np.zeros(4)
        for _ in range(20):
            w = (w - 0.5 * (x.T @ (x @ w - y)) / 60).execute()
            expected = expected - 0.5 * (points.T @ (points @ expected - values)) / 60
        np.testing.assert_allclose(w.fetch(), expected, rtol=1e-12)

    def test_e_the_same_graph_twice_is_the_same(self):
        def result():
            tensor = mt.random.normal(0, 1, (40, 30), chunk_size=16, seed=5)
            return ((tensor + 1) @ tensor.T).sum(axis=0).execute().fetch()

        np.testing.assert_array_equal(result(), result())


if __name__ == "__main__":
    unittest.main()
