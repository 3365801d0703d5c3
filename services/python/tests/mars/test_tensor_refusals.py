"""What cannot be is refused where the program says it, as numpy would, and with the program's line."""

import unittest

from mars.case import Case, mt, np
from tripod_mars import ExecutionError, GraphRefusedError, NotExecutedError, SessionError, UnsupportedError
from tripod_mars import execution

ROWS = np.arange(12, dtype=np.int64).reshape(3, 4)
TRUTHS = ROWS > 4


class AsNumpy(Case):
    def test_shapes_and_axes(self):
        for expression in (
            lambda _, a: a + a[:, :3],
            lambda _, a: a[5],
            lambda _, a: a[1, 2, 3],
            lambda _, a: a[..., ...],
            lambda _, a: a[[0, 7]],
            lambda _, a: a["x"],
            lambda _, a: a[::0],
            lambda m, a: m.sum(a, axis=2),
            lambda m, a: m.sum(a, axis=(0, 0)),
            lambda m, a: m.max(a[:0]),
            lambda m, a: m.argmin(a[:0]),
            lambda m, a: m.max(a[:0, :0], axis=0),
            lambda m, a: m.argmax(a[:0, :0], axis=1),
            lambda _, a: a.reshape(5, -1),
            lambda _, a: a.reshape(-1, -1),
            lambda m, a: m.transpose(a, (0,)),
            lambda m, a: m.concatenate([a, a[0]]),
            lambda m, a: m.concatenate([a, a[:, :2]]),
            lambda m, a: m.stack([a, a[0]]),
            lambda m, a: m.split(a, 2),
            lambda m, a: m.squeeze(a, 0),
            lambda m, a: m.compress([[True]], a),
            lambda m, _: len(m.zeros(())),
            lambda m, a: a.__setitem__((0, slice(3)), m.ones(4)),
            lambda m, _: m.zeros((2, -1)),
            lambda m, _: m.linspace(0, 1, -1),
        ):
            self.both_refuse(expression, ROWS)

    def test_types(self):
        self.both_refuse(lambda _, a: -a, TRUTHS)
        self.both_refuse(lambda _, a: a - a, TRUTHS)
        self.both_refuse(lambda _, a: a**-1, ROWS)
        self.both_refuse(lambda _, a: a + 2**31, ROWS.astype(np.int32))
        self.both_refuse(lambda m, _: m.full(2, 2**40, dtype=np.int32), ROWS)

    def test_shapes_of_products(self):
        tensor = mt.tensor(ROWS)
        with self.assertRaises(ValueError):
            tensor @ tensor
        with self.assertRaises(ValueError):
            tensor @ mt.tensor(1)


class Unsupported(Case):
    def test_what_numpy_has_and_the_cluster_has_not(self):
        tensor, mask = mt.tensor(ROWS), mt.tensor(TRUTHS)
        for call in (
            lambda: mt.tensor(np.array([1j])),
            lambda: mt.tensor(ROWS.astype(np.int8)),
            lambda: mt.sqrt(mask),
            lambda: mask // mask,
            lambda: ~tensor,
            lambda: tensor & 1,
            lambda: tensor[[0, 1], [1, 2]],
            lambda: tensor[tensor],
            lambda: tensor[0, [1, 2]],
            lambda: mt.where(mask),
            lambda: tensor.__setitem__([0, 1], 3),
            lambda: tensor.__setitem__(mask, ROWS[TRUTHS]),
            lambda: mt.sum(tensor, out=np.zeros(4)),
            lambda: mt.arange(3, dtype=np.float32),
            lambda: mt.random.rand(3, dtype=int),
            lambda: mt.ones((2, 2, 2)) @ mt.ones((2, 2, 2)),
            lambda: len(tensor[tensor[:, 0] > 1]),
        ):
            with self.assertRaises(UnsupportedError):
                call()

    def test_ways_to_cut(self):
        for wrong in (0, (2,), (0, 1), ((1, 1), (4,))):
            with self.assertRaises(ValueError):
                mt.tensor(ROWS, chunk_size=wrong)


class OfTheCluster(Case):
    def test_a_graph_that_fails_tells_the_line_and_the_traceback(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        wrong = tensor + 1
        wrong.node.attributes = {**wrong.node.attributes, "function": "pow", "right": {"scalar": -1}}  # the line
        with self.assertRaises(ExecutionError) as caught:
            (wrong * 2).execute()
        self.assertEqual(caught.exception.code, "EXCEPTION")
        self.assertIn("Traceback", caught.exception.traceback_text)
        self.assertIn("negative integer powers", str(caught.exception))
        self.assertIn("wrong = tensor + 1", caught.exception.line)
        self.assertIn("test_tensor_refusals.py", str(caught.exception))

    def test_a_graph_that_is_refused_tells_the_line(self):
        broken = mt.tensor(ROWS, chunk_size=2).rechunk(3)
        broken.node.attributes = {"chunks": [3]}
        with self.assertRaises(GraphRefusedError) as caught:
            (broken + 1).execute()
        self.assertIn(".rechunk(3)", caught.exception.line)
        self.assertIn("rechunk: chunking", caught.exception.reason)

    def test_lengths_that_only_execution_tells_and_do_not_fit(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        both = tensor[tensor[:, 0] > 3] + tensor[tensor[:, 0] < 3]
        self.assertEqual(both.shape, (None, 4))
        # One and two rows are broadcast, as they are in numpy.
        self.assertEqual(both.execute().shape, (2, 4))
        with self.assertRaisesRegex(GraphRefusedError, "do not go together"):
            (tensor[tensor[:, 0] > 3] + tensor[tensor[:, 0] > -1]).execute()

    def test_the_largest_of_what_turns_out_to_be_nothing(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        # Before a place is looked for, it is executed how many there are; then the cluster knows that there are none.
        for function, kind in ((mt.max, ExecutionError), (mt.argmin, GraphRefusedError)):
            none = function(tensor[tensor[:, 0] > 100], axis=0)
            with self.assertRaisesRegex(kind, "of no elements") as caught:
                none.execute()
            self.assertIn("none = function(", caught.exception.line)

    def test_what_was_not_executed_is_not_fetched(self):
        with self.assertRaises(NotExecutedError):
            mt.ones(3).fetch()

    def test_other_sessions_have_nothing_of_it(self):
        tensor = (mt.ones(3) + 1).execute()
        other = self.cluster.session("other")
        self.addCleanup(other.close)
        with self.assertRaisesRegex(SessionError, "executed in session local"):
            (tensor + 1).execute(session=other)
        source = mt.ones(3).execute()
        self.assertEqual((source + 1).execute(session=other).fetch(session=other).tolist(), [2, 2, 2])
        gone = self.cluster.session("gone")
        self.cluster.sessions.discard("gone")
        with self.assertRaises(SessionError):
            mt.ones(3).execute(session=gone)
        gone.close()
        with self.assertRaisesRegex(SessionError, "closed"):
            mt.ones(3).execute(session=gone)

    def test_large_graphs_go_in_parts(self):
        data = np.arange(execution.PART_BYTES // 8 * 2 + 5, dtype=np.int64)
        tensor = mt.tensor(data[:1000], chunk_size=400)
        before, execution.PART_BYTES = execution.PART_BYTES, 1000
        self.addCleanup(setattr, execution, "PART_BYTES", before)
        calls = len(self.cluster.calls)
        self.same(tensor + 1, data[:1000] + 1)
        parts = [request.part for name, request in self.cluster.calls[calls:] if name == "SubmitTileableGraph"]
        self.assertGreater(len(parts), 8)
        self.assertEqual([part.last for part in parts], [False] * (len(parts) - 1) + [True])


if __name__ == "__main__":
    unittest.main()
