"""Tensors are what numpy makes of arrays, however they are cut."""

import unittest

from mars.case import Case, mt, np

ROWS = np.arange(-12, 18, dtype=np.int64).reshape(5, 6)
HALVES = ROWS / 2
TRUTHS = ROWS % 3 == 0
LINE = np.array([3, -1, 2, 0, 5], np.int32)


class Elements(Case):
    def test_operators_of_two_tensors(self):
        other = np.array([1, 2, 3, -4, 5, 6], np.int32)
        for expression in (
            lambda _, a, b: a + b,
            lambda _, a, b: a - b,
            lambda _, a, b: a * b,
            lambda _, a, b: a / b,
            lambda _, a, b: a // b,
            lambda _, a, b: a % b,
            lambda _, a, b: a == b,
            lambda _, a, b: a != b,
            lambda _, a, b: a < b,
            lambda _, a, b: a <= b,
            lambda _, a, b: a > b,
            lambda _, a, b: a >= b,
            lambda _, a, b: -a + abs(b),
            lambda m, a, b: m.maximum(a, b) - m.minimum(a, b),
            lambda m, a, b: m.logical_and(a, b) | m.logical_not(b),
            lambda m, a, b: m.logical_or(a, b) & ~m.logical_xor(a, b),
            lambda m, a, b: (a > 0) ^ (b > 0),
        ):
            for left in (ROWS, HALVES, ROWS.astype(np.int32), HALVES.astype(np.float32)):
                self.both(expression, left, other)
        self.both(lambda _, a, b: a**b, HALVES, np.float32(2), rounding=True)

    def test_operators_with_numbers_have_the_kind_of_the_number(self):
        for array in (ROWS, ROWS.astype(np.int32), HALVES, HALVES.astype(np.float32)):
            for expression in (
                lambda _, a: a + 1,
                lambda _, a: 1 - a,
                lambda _, a: a * 0.5,
                lambda _, a: 3 // a,
                lambda _, a: True + a,
                lambda _, a: a % 3 - (a**2),
                lambda _, a: a + np.float32(1.5),
                lambda _, a: np.float64(1.5) * a,
                lambda _, a: np.int64(7) + a,
                lambda _, a: a == 2.0,
            ):
                self.both(expression, array)
        self.both(lambda _, a: a + 1, TRUTHS)
        self.both(lambda _, a: a * 1.5, TRUTHS)

    def test_functions_of_one_tensor(self):
        positive = np.abs(HALVES) + 1
        for array in (positive, positive.astype(np.float32), ROWS**2 + 1):
            for name in ("sqrt", "exp", "log", "tanh"):
                self.both(lambda m, a, name=name: getattr(m, name)(a), array, rounding=True)
        self.same(mt.sigmoid(mt.tensor(HALVES, chunk_size=2)), 1 / (1 + np.exp(-HALVES)), rounding=True)
        self.same(mt.relu(mt.tensor(ROWS, chunk_size=2)), np.maximum(ROWS, 0))
        self.both(lambda m, a: m.clip(a, -2, 4), ROWS)
        self.both(lambda m, a: m.square(a) + m.isnan(a), HALVES)

    def test_types_are_converted(self):
        for dtype in ("bool", "i4", "i8", "f4", "f8"):
            for array in (ROWS, HALVES, TRUTHS):
                self.both(lambda _, a, dtype=dtype: a.astype(dtype), array)

    def test_where_takes_tensors_and_numbers(self):
        self.both(lambda m, c, a, b: m.where(c, a, b), TRUTHS, ROWS, HALVES)
        self.both(lambda m, c, a: m.where(c, a, 0.5), TRUTHS, ROWS)
        self.both(lambda m, c: m.where(c, 1, 0), TRUTHS)

    def test_tensors_are_broadcast(self):
        self.both(lambda _, a, b: a[:, None] * b[None, :] + a[:, None], LINE, np.arange(3))
        self.both(lambda _, a, b: a + b, ROWS, 2.5)
        self.both(lambda _, a, b: a + b, np.zeros((3, 1, 2)), np.ones((4, 1)))


class Parts(Case):
    def test_slices_of_any_step(self):
        for expression in (
            lambda _, a: a[1:4],
            lambda _, a: a[::-1, ::2],
            lambda _, a: a[-2:, :-1:3],
            lambda _, a: a[3:0:-2],
            lambda _, a: a[2],
            lambda _, a: a[-1, 3],
            lambda _, a: a[..., 1],
            lambda _, a: a[None, 1:, ..., None],
            lambda _, a: a[:, None, -1],
            lambda _, a: a[10:],
            lambda _, a: a[1:3][::-1][0],
            lambda _, a: a[...],
        ):
            self.both(expression, ROWS)

    def test_places_and_masks(self):
        for expression in (
            lambda _, a: a[[3, 0, -1]],
            lambda _, a: a[:, [5, 5, 0]],
            lambda _, a: a[1:, np.array([0, 2])],
            lambda _, a: a[[]],
            lambda _, a: a[a[:, 0] > -3],
            lambda _, a: a[:, np.array([True, False] * 3)],
            lambda _, a: a[None, a[:, 0] > -3],
            lambda _, a: a[a > 2],
            lambda m, a: m.take(a, [1, 2], axis=1),
            lambda m, a: m.take(a, [[1, 2], [0, 7]]),
            lambda m, a: m.take(a, 3, axis=0),
            lambda m, a: m.compress([True, False, True, True, False], a, axis=0),
        ):
            self.both(expression, ROWS)

    def test_assignment_changes_the_handle_and_nothing_else(self):
        def assigned(m, a):
            before, alias = a + 0, a.copy()
            a[1:3, ::2] = -7
            a[0] = a[4]
            a[..., -1] = m.arange(5)
            a[a > 12] = 0
            a[4, 5] = 99.9
            return m.stack([before, a, alias])

        self.both(assigned, ROWS)
        self.both(assigned, HALVES)

    def test_what_is_not_known_is_executed_first(self):
        def expression(_, a):
            picked = a[a[:, 0] > -10]
            return picked[1:].reshape(-1) + picked[-1, -1]

        calls = len(self.cluster.calls)
        self.both(expression, ROWS)
        sent = [name for name, _ in self.cluster.calls[calls:] if name == "SubmitTileableGraph"]
        self.assertGreater(len(sent), 2, "a graph that was refused, one for the mask, one for the rest")

    def test_splits(self):
        for sections in (1, 2, 3, 6):
            for part in range(sections):
                self.both(lambda m, a, s=sections, p=part: m.split(a, s, axis=1)[p], ROWS)
        for part in range(4):
            self.both(lambda m, a, p=part: m.array_split(a, 4)[p], ROWS)
            self.both(lambda m, a, p=part: m.split(a, [1, 3, 4])[p], ROWS)


class Shapes(Case):
    def test_axes_move(self):
        cube = np.arange(24.0).reshape(2, 3, 4)
        for expression in (
            lambda _, a: a.T,
            lambda m, a: m.transpose(a, (1, 0, 2)),
            lambda _, a: a.transpose(2, 0, 1),
            lambda m, a: m.swapaxes(a, 0, -1),
            lambda m, a: m.moveaxis(a, 0, 2),
            lambda m, a: m.moveaxis(a, [0, 1], [-1, 0]),
            lambda m, a: m.expand_dims(a, (0, -1)),
            lambda m, a: m.squeeze(m.expand_dims(a, 1)),
            lambda _, a: a.reshape(6, -1),
            lambda _, a: a.reshape((4, 3, 2)),
            lambda m, a: m.ravel(a),
        ):
            self.both(expression, cube)

    def test_tensors_are_joined(self):
        self.both(lambda m, a, b: m.concatenate([a, b, a]), ROWS, HALVES)
        self.both(lambda m, a, b: m.concatenate([a, b], axis=-1), ROWS, HALVES[:, :1])
        self.both(lambda m, a, b: m.concatenate([a, b], axis=None), ROWS, LINE)
        self.both(lambda m, a, b: m.stack([a, b], axis=1), ROWS, TRUTHS)

    def test_another_way_to_cut_changes_no_element(self):
        tensor = mt.tensor(ROWS, chunk_size=4)
        for chunk_size in (1, (3, 5), ((2, 3), (6,)), ((2, 3), 4)):
            self.same(tensor.rechunk(chunk_size) + 0, ROWS)

    def test_sources(self):
        for expression in (
            lambda m: m.zeros((3, 4)),
            lambda m: m.ones(5, dtype=np.int32),
            lambda m: m.full((2, 2), 7),
            lambda m: m.full((), 0.1),
            lambda m: m.eye(5, 4, k=1),
            lambda m: m.identity(3),
            lambda m: m.arange(7),
            lambda m: m.arange(2, -9, -3),
            lambda m: m.arange(0.1, 2.0, 0.3),
            lambda m: m.arange(5, dtype=np.int32),
            lambda m: m.linspace(0, 1, 11),
            lambda m: m.linspace(3, -2, 7, endpoint=False),
            lambda m: m.zeros_like(m.ones((2, 3), dtype=bool)),
        ):
            self.both(expression)
        self.same(mt.arange(10, chunk_size=3) + mt.linspace(0, 9, 10, chunk_size=4), 2.0 * np.arange(10))

    def test_a_large_array_is_sent_in_small_chunks_and_cut_as_it_is_wanted(self):
        whole = np.arange(150_000).reshape(3, -1)
        for chunk_size in (None, 100_000):
            tensor = mt.tensor(whole, chunk_size=chunk_size)
            calls = len(self.cluster.calls)
            self.same(tensor, whole)
            (graph,) = [request.graph for name, request in self.cluster.calls[calls:] if name == "SubmitTileableGraph"]
            self.assertEqual([node.op_type for node in graph.nodes], ["from_bytes", "rechunk"])
            self.assertEqual([len(axis) for axis in tensor.node.placed.splits], [1, 1])

    def test_random_tensors_depend_on_their_seed_alone(self):
        first, again = (mt.random.rand(50, 40, chunk_size=16, seed=3) for _ in range(2))
        self.assertTrue(np.array_equal(first.to_numpy(), again.to_numpy()))
        state = mt.random.RandomState(5)
        one, two = state.normal(3, 0.5, size=2000), state.normal(3, 0.5, size=2000)
        self.assertFalse(np.array_equal(one.to_numpy(), two.to_numpy()))
        self.assertAlmostEqual(float(one.mean()), 3, delta=0.1)
        state.seed(5)
        self.assertTrue(np.array_equal(one.to_numpy(), state.normal(3, 0.5, size=2000).to_numpy()))
        uniform = mt.random.uniform(-2, 5, size=3000, dtype=np.float32).to_numpy()
        self.assertTrue((uniform >= -2).all() and (uniform < 5).all() and uniform.dtype == np.float32)


class Reductions(Case):
    def test_reductions_along_axes(self):
        for name in ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std"):
            for array in (ROWS, ROWS.astype(np.int32), HALVES.astype(np.float32)):
                if name == "prod":
                    array = array[:2, :3]
                for axis in (None, 0, -1, (0, 1), ()):
                    for keepdims in (False, True):
                        self.both(
                            lambda m, a, n=name, x=axis, k=keepdims: getattr(m, n)(a, axis=x, keepdims=k),
                            array,
                            rounding=True,
                        )

    def test_places_and_counts(self):
        for name in ("argmax", "argmin"):
            for axis in (None, 0, 1):
                self.both(lambda m, a, n=name, x=axis: getattr(m, n)(a % 5, axis=x), ROWS)
        self.both(lambda m, a: m.count_nonzero(a, axis=0), ROWS)
        self.both(lambda _, a: a.sum(axis=1), TRUTHS)

    def test_variance_takes_something_from_the_number(self):
        self.both(lambda m, a: m.var(a, axis=0, ddof=1), HALVES, rounding=True)
        self.both(lambda _, a: a.std(ddof=2), HALVES, rounding=True)

    def test_products(self):
        self.both(lambda _, a, b: a @ b, ROWS, HALVES.T)
        self.both(lambda m, a, b: m.dot(a, b), ROWS, np.arange(6.0))
        self.both(lambda m, a, b: m.matmul(a, b), np.arange(5), ROWS)
        self.both(lambda m, a, b: m.dot(a, b), LINE, LINE)
        self.both(lambda _, a: np.ones((3, 5)) @ a, ROWS)


class Handles(Case):
    def test_a_tensor_is_a_number_where_one_is_needed(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        self.assertEqual(float(tensor.sum()), ROWS.sum())
        self.assertEqual([10, 20, 30][mt.tensor(np.int64(2))], 30)
        self.assertTrue(tensor.max() > 3)
        self.assertEqual(tensor[1, 1].item(), ROWS[1, 1])
        self.assertEqual(len(tensor), 5)
        self.assertEqual([one.shape for one in tensor], [(6,)] * 5)
        with self.assertRaisesRegex(ValueError, "ambiguous"):
            bool(tensor > 0)

    def test_several_are_one_graph(self):
        tensor = mt.tensor(ROWS, chunk_size=2) + 1
        calls = len(self.cluster.calls)
        first, second = mt.execute(tensor, tensor.sum())
        self.assertEqual([name for name, _ in self.cluster.calls[calls:]].count("SubmitTileableGraph"), 1)
        found = mt.fetch(first, second)
        self.assertTrue(np.array_equal(found[0], ROWS + 1) and found[1] == (ROWS + 1).sum())


if __name__ == "__main__":
    unittest.main()
