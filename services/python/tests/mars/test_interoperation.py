"""Functions of numpy with tensors, pictures of graphs, and what a session keeps."""

import gc
import shutil
import time
import unittest

from mars.case import Case, mars, mt, np
from tripod_mars import UnsupportedError

ROWS = np.arange(12.0).reshape(3, 4)


class Numpy(Case):
    def test_functions_of_numpy_are_those_of_tensors(self):
        def through_numpy(expression):
            tensor = mt.tensor(ROWS, chunk_size=2)
            found = expression(tensor)
            self.assertIsInstance(found, mt.Tensor)
            self.same(found, expression(ROWS), rounding=True)

        for expression in (
            lambda a: np.sum(a, axis=0),
            lambda a: np.exp(a) + np.sqrt(a),
            lambda a: np.concatenate([a, a], axis=1),
            lambda a: np.where(a > 3, a, 0),
            lambda a: np.add.reduce(a),
            lambda a: np.maximum.reduce(a, axis=1, keepdims=True),
            lambda a: np.float64(2) - a,
            lambda a: ROWS + a,
            lambda a: ROWS @ a.T,
            lambda a: np.matmul(a, ROWS.T),
            lambda a: np.var(a, axis=1, ddof=1),
            lambda a: np.transpose(a),
            lambda a: np.reshape(a, (4, 3)),
            lambda a: np.clip(a, 2, 5),
            lambda a: np.mean(a, keepdims=True),
        ):
            through_numpy(expression)

    def test_others_are_refused_by_name(self):
        tensor = mt.tensor(ROWS)
        for name, call in {
            "linalg.svd": lambda: np.linalg.svd(tensor),
            "fft.fft": lambda: np.fft.fft(tensor),
            "sort": lambda: np.sort(tensor),
            "arctan2": lambda: np.arctan2(tensor, tensor),
            "add.accumulate": lambda: np.add.accumulate(tensor),
            "where": lambda: np.sum(tensor, where=ROWS > 1),
            "out": lambda: np.add(tensor, 1, out=ROWS),
        }.items():
            with self.assertRaisesRegex(UnsupportedError, name):
                call()

    def test_an_array_of_a_tensor_has_its_elements(self):
        tensor = mt.tensor(ROWS, chunk_size=3) * 2
        self.assertTrue(np.array_equal(np.asarray(tensor), ROWS * 2))
        self.assertEqual(np.asarray(tensor, np.float32).dtype, np.float32)


class Pictures(Case):
    def test_a_graph_is_drawn(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        dot = str((tensor + 1).sum(axis=0).visualize())
        self.assertIn("reduce sum\\nfloat64 [4]", dot)
        self.assertEqual(dot.count("->"), 2)

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_a_graph_is_an_svg(self):
        self.assertIn("<svg", mt.ones(3).visualize().svg)


class Results(Case):
    def test_what_was_executed_is_fetched_by_later_graphs(self):
        tensor = (mt.tensor(ROWS, chunk_size=2) + 1).execute()
        calls = len(self.cluster.calls)
        self.same(tensor.sum(), (ROWS + 1).sum())
        graph = next(request.graph for name, request in self.cluster.calls[calls:] if name == "SubmitTileableGraph")
        self.assertEqual([node.op_type for node in graph.nodes], ["fetch", "reduce"])

    def test_what_the_program_forgets_is_given_up(self):
        tensor = (mt.tensor(ROWS, chunk_size=2) + 1).execute()
        later = tensor * 2
        key = tensor.node.placed.key
        self.assertEqual(self.cluster.counts[key], 1)
        del tensor
        gc.collect()
        self.same(later, (ROWS + 1) * 2)
        gc.collect()
        self.wait(lambda: key not in self.cluster.counts)
        kept = later.node.placed.key
        self.session.close()
        self.assertIn(kept, self.cluster.counts)

    def test_a_loop_keeps_the_last_of_its_results(self):
        tensor = mt.zeros(4, chunk_size=2)
        for _ in range(20):
            tensor = (tensor + 1).execute()
        self.assertEqual(tensor.fetch().tolist(), [20] * 4)
        gc.collect()
        self.wait(lambda: len(self.cluster.counts) <= 1)

    def test_slices_of_results_are_read_without_a_graph(self):
        tensor = mt.tensor(np.arange(100), chunk_size=10).execute()
        calls, asked = len(self.cluster.calls), len(self.cluster.asked)
        self.assertEqual(tensor[12:47:7].fetch().tolist(), list(range(12, 47, 7)))
        self.assertEqual(tensor[-1].fetch(), 99)
        self.assertEqual(tensor[58:55:-1].fetch().tolist(), [58, 57, 56])
        self.assertNotIn("SubmitTileableGraph", [name for name, _ in self.cluster.calls[calls:]])
        keys = {key for _, request in self.cluster.asked[asked:] for key in request.chunk_keys}
        self.assertEqual(len(keys), 6, "of ten chunks those that have some of it")

    def test_a_session_is_a_context(self):
        with self.cluster.session("short") as session:
            self.assertEqual(mt.ones(2).execute(session=session).fetch().tolist(), [1, 1])
        self.assertNotIn("short", self.cluster.sessions)
        self.assertIsNot(mars.get_default_session(), session)

    def wait(self, condition):
        end = time.monotonic() + 20
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
