"""Much data of a program goes to the workers before its graph, and is the same to whoever computes with it."""

import unittest
from unittest import mock

from mars.case import Case, mars, mt, np
from mars.served import Served
from tripod_mars import new_session, put, set_default_session, wire
from tripod_mars.errors import RefusedError
import tripod_mars.dataframe as md


class Put(Case):
    def setUp(self):
        super().setUp()
        for name, value in (("PUT_BYTES_LEAST", 100), ("PART_BYTES", 64), ("PATIENCE_S", 0.2)):
            patch = mock.patch.object(put, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.cluster.mutables.clear()
        self.cluster.put_chunks.clear()
        self.cluster.uploads.clear()
        self.cluster.calls.clear()
        self.cluster.no_puts = None

    def sent(self):
        """Bytes that graphs brought, and operators that they had."""
        graphs = [request.graph for name, request in self.cluster.calls if name == "SubmitTileableGraph"]
        nodes = [node for graph in graphs for node in graph.nodes]
        return sum(len(node.data) for node in nodes), [node.op_type for node in nodes]

    def test_arrays_are_put_as_they_are_to_be_cut(self):
        array = np.arange(60.0).reshape(12, 5)
        for chunk_size, chunks in ((None, 1), (4, 6), ((5, 2), 9), (([3, 9], [5]), 2)):
            self.cluster.uploads.clear()
            tensor = mt.tensor(array, chunk_size=chunk_size)
            self.same(tensor + 1, array + 1)
            # To both workers of a chunk.
            self.assertEqual(len(self.cluster.uploads), 2 * chunks)
            self.assertEqual(len(tensor.node.placed.chunk_keys), chunks)
        self.assertEqual(self.sent()[0], 0)
        self.assertEqual(set(self.sent()[1]), {"fetch", "binary"})
        self.assertEqual(self.cluster.put_chunks, {})

    def test_all_types_come_back(self):
        for array in (
            np.arange(400).reshape(5, 80) % 3 == 0,
            np.arange(40, dtype="i4"),
            np.arange(40) - 20,
            np.arange(40, dtype="f4") / 3,
            np.linspace(-1, 1, 40),
            np.asfortranarray(np.arange(40).reshape(8, 5)),
            np.arange(400)[::10],
        ):
            self.same(mt.tensor(array, chunk_size=32), array)
        self.assertEqual(self.sent(), (0, []), "nothing was to be computed")

    def test_little_travels_with_the_graph(self):
        self.same(mt.tensor(np.arange(12)) * 2, np.arange(12) * 2)
        self.assertEqual((self.cluster.uploads, self.sent()[0]), ([], 96))

    def test_what_was_put_is_there_for_the_next_graph_and_given_up_with_the_tensor(self):
        array = np.arange(60.0)
        tensor = mt.tensor(array, chunk_size=20)
        self.same(tensor + 1, array + 1)
        count = len(self.cluster.uploads)
        self.same(tensor * 2, array * 2)
        self.assertEqual(len(self.cluster.uploads), count)
        key = tensor.node.placed.key
        self.assertEqual(self.cluster.counts[key], 1)
        del tensor
        self.session.releases.close()
        self.assertNotIn(key, self.cluster.counts)

    def test_in_another_session_it_is_put_again(self):
        array = np.arange(60.0)
        tensor = mt.tensor(array)
        self.same(tensor + 1, array + 1)
        count = len(self.cluster.uploads)
        with self.cluster.session("other") as other:
            np.testing.assert_array_equal((tensor + 1).execute(session=other).fetch(session=other), array + 1)
        self.assertGreater(len(self.cluster.uploads), count)

    def test_frames_are_what_they_are_as_files(self):
        data = {
            "shop": ["a", "größe", "", None, "b,c", 'q"', "x\ny", "c"] * 8,
            "price": [1.5, 2.25, 0.1, None, 7.0, -3.5, float("nan"), 1e300] * 8,
            "count": [3, 1, None, 4, 1, 5, 9, 2] * 8,
            "open": [True, False, True, True, None, False, True, True] * 8,
            "small": np.arange(64, dtype="f4"),
        }
        for chunk_rows in (None, 10):
            by_put = md.DataFrame(data, chunk_rows=chunk_rows)
            found = by_put.to_dict()
            self.assertEqual(by_put.shape, (64, 5))
            with mock.patch.object(put, "PUT_BYTES_LEAST", 1 << 30):
                wanted = md.DataFrame(data, chunk_rows=chunk_rows).to_dict()
            for name in data:
                # With NaN, which is not itself.
                self.assertEqual(str(found[name].tolist()), str(wanted[name].tolist()), name)
                self.assertEqual(found[name].dtype, wanted[name].dtype)
        self.assertEqual(len(set(self.cluster.uploads)), 2)

    def test_columns_and_groups_of_a_frame_that_was_put(self):
        data = {"key": ["a", "b"] * 30, "value": np.arange(60.0)}
        frame = md.DataFrame(data, chunk_rows=7)
        sums = frame.groupby("key").agg({"value": "sum"}).to_dict()
        self.assertEqual(dict(zip(sums["key"], sums["value"])), {"a": 870.0, "b": 900.0})
        data["value"][:] = 0
        np.testing.assert_array_equal((frame["value"] + 1).to_numpy(), np.arange(60.0) + 1)
        self.assertEqual(self.sent()[0], 0)

    def test_where_it_cannot_be_put_it_travels_with_the_graph(self):
        array = np.arange(60.0)
        for refusal in ((12, "not here"), (9, "no --mutable-dir"), (8, "no room"), (14, "away"), (7, "a stranger")):
            self.cluster.calls.clear()
            self.cluster.no_puts = refusal
            self.same(mt.tensor(array, chunk_size=20) + 1, array + 1)
            self.assertEqual(self.sent()[0], 480)
            self.assertEqual(self.cluster.mutables, {}, "nothing is left behind")
        with mock.patch.object(self.cluster, "_CreateMutableTensor", self.no_store):
            self.same(mt.tensor(array) + 1, array + 1)
        frame = md.DataFrame({"a": array})
        np.testing.assert_array_equal(frame.to_dict()["a"], array)
        with mock.patch.object(put, "INLINE_BYTES_MAX", 400), self.assertRaisesRegex(ValueError, "480 bytes.*a stranger"):
            mt.tensor(array).execute()

    def no_store(self, request, answer):
        raise RefusedError(9, "no object store lives")

    def test_a_chunk_that_was_lost_before_the_seal_is_put_again(self):
        array, seal, losses = np.arange(60.0), self.cluster._SealMutableTileable, iter([True])

        def lossy(request, answer):
            if next(losses, False):
                self.cluster.put_chunks.popitem()
            seal(request, answer)

        with mock.patch.object(self.cluster, "_SealMutableTileable", lossy):
            self.same(mt.tensor(array, chunk_size=20) + 1, array + 1)
        self.assertEqual(len(self.cluster.uploads), 12)

    def test_what_an_interrupted_one_left_is_in_nobodys_way(self):
        array = np.arange(60.0)
        with mock.patch.object(self.session.puts, "_put_all", side_effect=KeyboardInterrupt):
            with mock.patch.object(self.session.puts, "_delete"), self.assertRaises(KeyboardInterrupt):
                mt.tensor(array).execute()
        self.assertEqual(len(self.cluster.mutables), 1)
        self.same(mt.tensor(array) + 1, array + 1)
        self.assertEqual((self.cluster.mutables, self.sent()[0]), ({}, 0))

    def test_messages_are_compressed_if_the_session_says_so(self):
        taken = []
        take = self.cluster.put_chunks_data

        def note(address, requests):
            requests = list(requests)
            taken.extend(request.compression for request in requests)
            return take(address, requests)

        with mock.patch.object(self.cluster, "put_chunks_data", note):
            with self.cluster.session("packed", compressions=("gzip",)) as session:
                array = np.arange(600.0)
                np.testing.assert_array_equal((mt.tensor(array) + 1).execute(session=session).fetch(session=session), array + 1)
        self.assertEqual(set(taken), {wire.COMPRESSION_GZIP})


class OverConnections(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.served = Served()
        cls.addClassCleanup(cls.served.close)

    def test_eight_mib_are_put_without_being_asked_for(self):
        session = new_session(self.served.endpoints, default=False)
        self.addCleanup(session.destroy)
        set_default_session(session)
        array = np.random.default_rng(5).random((1024, 1025))
        tensor = mt.tensor(array, chunk_size=512)
        np.testing.assert_array_equal((tensor[::7] + 1).execute().fetch(), array[::7] + 1)
        self.assertEqual(set(self.served.cluster.uploads), set(self.served.cluster.worker_ids))
        brought = [r.ByteSize() for name, r in self.served.cluster.calls if name == "SubmitTileableGraph"]
        self.assertLess(max(brought), 10_000)


if __name__ == "__main__":
    unittest.main()
