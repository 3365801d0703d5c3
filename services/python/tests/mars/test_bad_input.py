"""Bad input is refused before anything is sent, or before anything of it is kept, with the reason and with the node."""

import unittest

from mars.case import Case, mt, np
from tripod_mars import GraphRefusedError, RefusedError, UnsupportedError, execution, wire
from tripod_mars.graph import Sent

ROWS = np.arange(12, dtype=np.int64).reshape(3, 4)


class BadInput(Case):
    def setUp(self):
        super().setUp()
        self.graphs, self.sent = set(self.cluster.graphs), self.submissions()

    def submissions(self):
        return sum(name == "SubmitTileableGraph" for name, _ in self.cluster.calls)


class InThePrograms(BadInput):
    def test_what_the_program_says_wrong_is_never_sent(self):
        whole, truths, nothing = mt.tensor(ROWS, chunk_size=2), mt.tensor(ROWS > 4), mt.zeros((0, 0))
        for what, expression, kind, text in (
            ("shapes", lambda: whole + whole[:, :3], ValueError, "broadcast"),
            ("shapes of products", lambda: whole @ whole, ValueError, "not aligned"),
            ("a type", lambda: -truths, TypeError, "numpy boolean negative"),
            ("a type that is not here", lambda: mt.zeros(3, dtype=np.int8), UnsupportedError, "int8"),
            ("an axis above the last", lambda: whole.sum(axis=2), ValueError, "axis 2 is out of bounds"),
            ("an axis below the first", lambda: whole.sum(axis=-3), ValueError, "axis -3 is out of bounds"),
            ("an axis twice", lambda: mt.transpose(whole, (0, -2)), ValueError, "duplicate value"),
            ("an index behind the last", lambda: whole[3], IndexError, "index 3 is out of bounds"),
            ("an index before the first", lambda: whole[-4], IndexError, "index -4 is out of bounds"),
            ("a list of indexes", lambda: whole[[0, 7]], IndexError, "index 7 is out of bounds"),
            ("too many indexes", lambda: whole[0, 0, 0], IndexError, "too many indices"),
            ("a shape", lambda: whole.reshape(5, -1), ValueError, "cannot reshape"),
            ("the largest of nothing", lambda: mt.max(nothing, axis=0), ValueError, "zero-size array"),
            ("the place of nothing", lambda: mt.argmin(nothing, axis=1), ValueError, "empty sequence"),
            ("a way to cut", lambda: mt.tensor(ROWS, chunk_size=0), ValueError, "chunk"),
        ):
            with self.subTest(what), self.assertRaisesRegex(kind, text):
                expression().execute()
        self.assertEqual(self.submissions(), self.sent)

    def test_a_graph_that_no_node_would_take_is_not_sent(self):
        before, execution.GRAPH_BYTES_MAX = execution.GRAPH_BYTES_MAX, 1000
        self.addCleanup(setattr, execution, "GRAPH_BYTES_MAX", before)
        with self.assertRaisesRegex(GraphRefusedError, "bytes, and the limit is 1000"):
            (mt.tensor(np.arange(1000)) + 1).execute()
        self.assertEqual(self.submissions(), self.sent)


class AtTheCluster(BadInput):
    def test_a_node_that_cannot_be_cut_is_told_with_its_line(self):
        for what, attributes, text in (
            ("an axis", {"axes": [-3]}, "axis -3 of 2"),
            ("an axis twice", {"axes": [0, 0]}, "twice"),
            ("something else", {"ddof": 1}, "variance"),
        ):
            wrong = mt.tensor(ROWS, chunk_size=2).sum(axis=0)
            wrong.node.attributes = {**wrong.node.attributes, **attributes}
            with self.subTest(what):
                with self.assertRaisesRegex(GraphRefusedError, text) as caught:
                    (wrong + 1).execute()
                self.assertIn("wrong = mt.tensor(ROWS", caught.exception.line)
                self.assertEqual(set(self.cluster.graphs), self.graphs)

    def test_graphs_that_are_none_are_refused_with_the_node(self):
        tensor = mt.tensor(ROWS, chunk_size=2)
        sent = Sent([(tensor + 1 + tensor.sum()).node], self.session.session_id)
        keys = [node.key for node in sent.message.nodes]

        def circle(graph):
            first, last = graph.nodes[1], graph.nodes[len(graph.nodes) - 1]
            first.inputs[0] = last.key

        for what, change, target, text in (
            ("a circle", circle, None, "in a cycle"),
            ("a key twice", lambda graph: graph.nodes.add().CopyFrom(graph.nodes[0]), None, "two tileables"),
            ("an unknown input", lambda graph: graph.nodes[1].inputs.__setitem__(0, "nobody"), None, "unknown input nobody"),
            ("another type", lambda graph: setattr(graph.nodes[1], "dtype", 2), None, "declared as"),
            ("an unknown target", lambda graph: None, "nobody", "unknown target nobody"),
        ):
            graph = wire.TileableGraph.FromString(sent.message.SerializeToString())
            change(graph)
            targets = sent.target_keys if target is None else [target]
            with self.subTest(what):
                with self.assertRaisesRegex(RefusedError, text) as caught:
                    self.session.context.submit_tileable_graph(self.session.session_id, graph, what, targets)
                if target is None:
                    self.assertTrue(any(key in str(caught.exception) for key in keys), caught.exception)
                self.assertEqual(set(self.cluster.graphs), self.graphs)


if __name__ == "__main__":
    unittest.main()
