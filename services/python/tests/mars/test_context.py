"""The calls as functions, in the three places where a context may be."""

import unittest

from mars.case import mars, mt, np
from mars.served import Served
from tripod_mars import Context, Environment, RefusedError, get_context, wire
from tripod_mars.graph import Sent


class Contexts(unittest.TestCase):
    def setUp(self):
        self.served = Served()
        self.addCleanup(self.served.close)
        self.session = mars.new_session(self.served.endpoints, session_id="s")
        self.addCleanup(mars.set_default_session, None)
        self.addCleanup(self.session.close)

    def test_env_says_where_a_context_is(self):
        address = self.served.workers[0].address
        client = get_context()
        self.assertIs(client, self.session.context)
        self.assertEqual(client.env, Environment.CLIENT)
        scheduler = Context.of_scheduler(self.served.endpoints[1], "s")
        worker = Context.of_worker(self.served.endpoints, address, "s")
        for context in (scheduler, worker):
            self.addCleanup(context.scheduler.close)
            self.addCleanup(context.workers.close)
        self.assertEqual((scheduler.env, worker.env), (Environment.SCHEDULER, Environment.WORKER))
        self.assertTrue(scheduler.has_session())
        self.assertIn("HasSession", self.served.nodes[1].taken, "the node beside it is asked")
        with worker.current():
            self.assertIs(get_context(), worker)
        self.assertIs(get_context(), client)
        tensor = mt.tensor(np.arange(6), chunk_size=3).execute()
        keys = tensor.node.placed.chunk_keys
        self.assertEqual([one.tolist() for one in worker.get_chunks_data("s", None, keys)], [[0, 1, 2], [3, 4, 5]])
        with self.assertRaises(ValueError):
            client.get_chunks_data("s", None, keys)
        picked = client.get_chunks_data("s", address, keys, [(slice(None, None, -1),), (slice(1, 2),)])
        self.assertEqual([one.tolist() for one in picked], [[2, 1, 0], [4]])
        with self.assertRaises(KeyError):
            client.get_chunks_data("s", address, ["nothing"])

    def test_sessions(self):
        context = self.session.context
        self.assertEqual(context.create_session("t"), "t")
        with self.assertRaises(RefusedError):
            context.create_session("t")
        self.assertEqual(context.create_session("t", if_not_exist=True), "t")
        self.assertTrue(context.delete_session("t"))
        self.assertFalse(context.has_session("t"))

    def test_graphs(self):
        context = self.session.context
        sent = Sent([(mt.ones(4, chunk_size=2) + 1).node], "s")
        context.submit_tileable_graph("s", sent.message, "g", sent.target_keys, {"priority": 2})
        finished, info = context.wait_tileable_graph("s", "g", timeout=1.0)
        self.assertTrue(finished)
        self.assertEqual(wire.GRAPH_STATES[info.state], "SUCCEEDED")
        self.assertEqual(context.stop_tileable_graph("s", "g"), "SUCCEEDED")
        (meta,) = context.get_tileable_metas("s", sent.target_keys)
        self.assertEqual([list(axis.extents) for axis in meta.nsplits], [[2, 2]])
        metas = context.get_chunk_metas("s", [*meta.chunk_keys, "nothing"])
        self.assertEqual([one.found for one in metas], [True, True, False])

    def test_every_call_is_a_function(self):
        context = self.session.context
        context.create_mutable_tensor("s", "m", (4,), np.float32, chunk_size=2)
        calls = {
            "CountSchedulers": context.count_schedulers,
            "GetSchedulers": context.get_schedulers,
            "GetSchedulersInfo": lambda: context.get_schedulers_info(["a:1"], ["role"]),
            "CountWorkers": lambda: context.count_workers(["ready"]),
            "GetWorkers": context.get_workers,
            "GetWorkersInfo": lambda: context.get_workers_info(filter_fields=["slots"]),
            "ListSessions": context.list_sessions,
            "SubmitChunkGraph": lambda: context.submit_chunk_graph("s", wire.ChunkGraph(), "c"),
            "GetTileableGraphInfo": lambda: context.get_tileable_graph_info("s", "c", ["state"]),
            "GetChunkGraphInfo": lambda: context.get_chunk_graph_info("s", "c"),
            "WaitChunkGraph": lambda: context.wait_chunk_graph("s", "c", timeout=0.0),
            "StopChunkGraph": lambda: context.stop_chunk_graph("s", "c"),
            "DeleteTileableGraph": lambda: context.delete_tileable_graph("s", "c"),
            "DeleteChunkGraph": lambda: context.delete_chunk_graph("s", "c"),
            "CreateMutableDataFrame": lambda: context.create_mutable_dataframe("s", "f", (3, 2), {"a": "i8", "b": str}),
            "GetMutableTileable": lambda: context.get_mutable_tileable("s", "m"),
            "SealMutableTileable": lambda: context.seal_mutable_tileable("s", "m", timestamp=5),
            "DeleteMutableTileable": lambda: context.delete_mutable_tileable("s", "m", if_exist=True),
        }
        for name, call in calls.items():
            call()
            self.assertEqual(self.served.cluster.calls[-1][0], name)
        # The others have tests of their own, or are streams of changes, or what sessions and stores do by themselves.
        others = {
            "CreateSession", "HasSession", "DeleteSession", "SubmitTileableGraph", "WaitTileableGraph", "StopTileableGraph",
            "GetTileableMetas", "GetChunkMetas", "CreateMutableTensor", "WatchWorkers", "WatchGraph", "DecrefTileables",
            "GetMutableStates",
        }  # fmt: skip
        self.assertEqual({*calls, *others}, {*wire.SCHEDULER})

    def test_batches_are_put_and_read(self):
        context, address = self.session.context, self.served.workers[0].address
        info = context.create_mutable_tensor("s", "b", (2,), "i8")
        values = np.array([3, 4]).tobytes()
        from tripod_mars.chunk.crc32c import crc32c

        batch = wire.MutableBatch(
            chunk_key=info.chunks[0].key,
            epoch=info.epoch,
            client_id="me",
            batch_no=1,
            timestamp_ns=5,
            slab={"values": values},
            crc32c=crc32c(values),
        )
        self.assertEqual(context.put_mutable_chunks_data("s", address, [batch]), (1, 0))
        self.assertEqual(context.put_mutable_chunks_data("s", address, [batch]), (0, 1))
        (found,) = context.get_mutable_chunks_data("s", address, [info.chunks[0].key], timestamp=5)
        self.assertEqual(found.tolist(), [3, 4])
        batch.epoch = 7
        with self.assertRaises(RefusedError):
            context.put_mutable_chunks_data("s", address, [batch])


if __name__ == "__main__":
    unittest.main()
