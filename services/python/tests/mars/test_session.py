"""Sessions against nodes and workers that end, say nothing, or say what is wrong."""

import contextlib
import gzip
import io
import os
import time
import unittest
from unittest import mock

from mars.case import mars, mt, np
from mars.served import Served
from tripod_mars import ChunkLostError, ExecutionError, RefusedError, SessionError, release, wire
from tripod_mars.chunk.crc32c import crc32c

ROWS = np.arange(48.0).reshape(8, 6)


class Case(unittest.TestCase):
    def setUp(self):
        self.served = Served()
        self.addCleanup(self.served.close)
        self.addCleanup(mars.set_default_session, None)

    def connect(self, **options):
        session = mars.new_session(self.served.endpoints, **options)
        self.addCleanup(session.close)
        return session

    def tensor(self):
        return (mt.tensor(ROWS, chunk_size=3) + 1).sum(axis=0)

    def expect(self, tensor):
        np.testing.assert_array_equal(tensor.execute().fetch(), (ROWS + 1).sum(axis=0))


class Sessions(Case):
    """Executions, through nodes."""

    def test_a_session_begins_executes_and_ends(self):
        session = self.connect(labels={"who": "test"})
        self.expect(self.tensor())
        self.assertIn(session.session_id, self.served.cluster.sessions)
        session.destroy()
        self.assertEqual(self.served.cluster.sessions, set())
        with self.assertRaises(SessionError):
            session.execute(self.tensor())

    def test_a_session_that_others_have_stays(self):
        first = self.connect(session_id="shared")
        self.assertEqual(first.session_id, "shared")
        with self.assertRaises(RefusedError):
            self.connect(session_id="shared", if_not_exist=False)
        with self.connect(session_id="shared"):
            pass
        self.assertIn("shared", self.served.cluster.sessions)

    def test_the_default_session_is_where_the_endpoints_are(self):
        with mock.patch.dict(os.environ, {"TRIPOD_ENDPOINTS": ",".join(self.served.endpoints)}):
            self.expect(self.tensor())
        mars.get_default_session().destroy()
        with mock.patch.dict(os.environ):
            os.environ.pop("TRIPOD_ENDPOINTS", None)
            with self.assertRaisesRegex(SessionError, "TRIPOD_ENDPOINTS"):
                self.tensor().execute()

    def test_the_node_that_leads_dies_between_submission_and_end(self):
        self.connect()
        first = self.served.nodes[0]

        def end():
            first.away = True

        first.after["SubmitTileableGraph"] = end
        self.expect(self.tensor())
        self.assertIn("SubmitTileableGraph", first.taken)
        self.assertNotIn("WaitTileableGraph", first.taken)
        self.assertIn("WaitTileableGraph", self.served.nodes[1].taken)

    def test_nodes_that_have_ended_are_passed_by(self):
        self.connect()
        self.served.nodes[0].stop()
        self.served.nodes[1].away = True
        self.expect(self.tensor())

    def test_what_was_done_and_not_answered_is_done_once(self):
        self.connect()
        for node in self.served.nodes:
            node.lost = 2
        self.expect(self.tensor())
        self.assertEqual(len(self.served.cluster.graphs), 1)
        self.assertGreater(sum(node.taken.count("SubmitTileableGraph") for node in self.served.nodes), 1)

    def test_waits_are_repeated_until_the_graph_has_ended(self):
        session = self.connect()
        answers = iter([False, False, True])
        finish = self.served.cluster._WaitTileableGraph

        def slow(request, answer):
            finish(request, answer)
            answer.finished = next(answers)
            if not answer.finished:
                answer.info.state, answer.info.progress = 3, 0.5

        self.served.cluster._WaitTileableGraph = slow
        with mock.patch("tripod_mars.execution.HELD_S", 0.2):
            self.expect(self.tensor())
        waits = [request for name, request in self.served.cluster.calls if name == "WaitTileableGraph"]
        self.assertEqual([request.timeout.nanos for request in waits], [200_000_000] * 3)
        self.assertTrue(session.session_id)

    def test_a_graph_that_was_stopped_is_an_error(self):
        self.connect()
        finish = self.served.cluster._WaitTileableGraph

        def stopped(request, answer):
            finish(request, answer)
            answer.info.state = 7

        self.served.cluster._WaitTileableGraph = stopped
        with self.assertRaises(ExecutionError) as caught:
            self.tensor().execute()
        self.assertEqual(caught.exception.code, "CANCELLED")

    def test_who_is_interrupted_stops_the_graph(self):
        session = self.connect()
        send = session.scheduler.send

        def interrupted(name, *rest, **more):
            if name == "WaitTileableGraph":
                raise KeyboardInterrupt
            return send(name, *rest, **more)

        session.scheduler.send = interrupted
        with self.assertRaises(KeyboardInterrupt):
            self.tensor().execute()
        self.assertIn("StopTileableGraph", [name for name, _ in self.served.cluster.calls])

    def test_options_are_those_of_the_graph(self):
        self.connect()
        self.tensor().execute(timeout_s=2.5, priority=-3, max_reschedules=0, fuse=True)
        (options,) = [request.options for name, request in self.served.cluster.calls if name == "SubmitTileableGraph"]
        self.assertEqual((options.timeout.seconds, options.timeout.nanos), (2, 500_000_000))
        self.assertEqual((options.priority, options.fuse), (-3, True))
        self.assertTrue(options.HasField("max_reschedules"))

    def test_progress_is_shown_where_it_is_wanted(self):
        try:
            import tqdm  # noqa: F401
        except ImportError:
            self.skipTest("tqdm is not installed")
        self.connect()
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            self.tensor().execute(show_progress=True)
        self.assertIn("graph: 100%", shown.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as silent:
            self.tensor().execute()
        self.assertEqual(silent.getvalue(), "", "where there is no terminal")

    def test_one_result_that_is_unknown_keeps_no_other(self):
        session = self.connect()
        first, second = self.tensor().execute(), self.tensor().execute()
        known = second.node.placed.key
        del self.served.cluster.counts[first.node.placed.key]
        del first, second
        end = time.monotonic() + 20
        while known in self.served.cluster.counts:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.assertTrue(session.session_id)


    def test_a_loop_leaves_no_more_graphs_than_are_kept(self):
        self.connect()
        graphs, finish = self.served.cluster.graphs, self.served.cluster._WaitTileableGraph

        def failed(request, answer):
            finish(request, answer)
            answer.info.state = 5

        kept = self.tensor().execute()
        (graph_of_kept,) = graphs
        with mock.patch.object(release, "GRAPHS_KEPT", 2):
            for number in range(6):
                self.served.cluster._WaitTileableGraph = failed if number == 2 else finish
                with self.assertRaises(ExecutionError) if number == 2 else contextlib.nullcontext():
                    self.tensor().execute()
            newest = list(graphs)[-2:]
            end = time.monotonic() + 20
            while list(graphs) != [graph_of_kept, *newest]:
                self.assertLess(time.monotonic(), end, list(graphs))
                time.sleep(0.01)
        np.testing.assert_array_equal(kept.fetch(), (ROWS + 1).sum(axis=0))

    def test_a_node_that_does_not_know_yet_what_has_ended_is_asked_what_the_others_know(self):
        self.connect()
        cluster = self.served.cluster
        tileables, chunks, asked = cluster._GetTileableMetas, cluster._GetChunkMetas, []

        def behind(name, look):
            def answer_of(request, answer):
                asked.append((name, request.stale_ok))
                look(request, answer)
                for meta in answer.metas if request.stale_ok else ():
                    meta.CopyFrom(type(meta)(key=meta.key))

            return answer_of

        cluster._GetTileableMetas = behind("tileables", tileables)
        cluster._GetChunkMetas = behind("chunks", chunks)
        self.expect(self.tensor())
        both = [("tileables", True), ("tileables", False), ("chunks", True), ("chunks", False)]
        self.assertEqual(asked, both)


class Reads(Case):
    """Of chunks, from workers."""

    def executed(self, **options):
        self.connect(**options)
        return (mt.tensor(ROWS, chunk_size=3) + 1).execute()

    def check(self, tensor):
        np.testing.assert_array_equal(tensor.fetch(), ROWS + 1)

    def test_a_worker_that_is_gone_is_passed_by(self):
        tensor = self.executed()
        self.served.workers[0].stop()
        self.check(tensor)

    def test_bytes_that_were_changed_on_their_way_are_read_elsewhere(self):
        tensor = self.executed()

        def damaged(message):
            message.bytes = message.bytes[:-1] + bytes([message.bytes[-1] ^ 1])
            return message

        self.served.workers[1].change = damaged
        self.check(tensor)
        self.assertTrue(self.served.workers[1].requests)

    def test_an_answer_that_ends_too_early_is_read_elsewhere(self):
        tensor = self.executed()

        def cut(message):
            if message.seq == 1:
                raise RuntimeError("this worker ends here")
            return message

        self.served.workers[0].change = cut
        self.check(tensor)

    def test_a_chunk_that_is_made_again_is_waited_for(self):
        tensor = self.executed()
        missing = {"left": 4}

        def gone(message):
            if missing["left"]:
                missing["left"] -= 1
                return wire.ChunkData(chunk_key=message.chunk_key, error={"code": 5, "message": "lost"})
            return message

        for worker in self.served.workers:
            worker.change = gone
        np.testing.assert_array_equal(tensor[:3, :3].fetch(), ROWS[:3, :3] + 1)
        self.assertEqual(missing["left"], 0)

    def test_a_chunk_that_nobody_makes_again_is_an_error_that_says_what_was_tried(self):
        tensor = self.executed(patience_s=0.2)
        for worker in self.served.workers:
            worker.change = lambda message: wire.ChunkData(
                chunk_key=message.chunk_key, error={"code": 5, "message": "it is lost"}
            )
        with self.assertRaisesRegex(ChunkLostError, "it is lost"):
            tensor.fetch()

    def test_a_session_that_was_deleted_has_no_chunks(self):
        tensor = self.executed()
        self.served.cluster.chunks.clear()
        with self.assertRaises(SessionError):
            tensor.fetch()

    def test_data_is_compressed_as_both_know(self):
        tensor = self.executed(compressions=("gzip",))

        def compressed(message):
            message.bytes = gzip.compress(message.bytes)
            message.crc32c = crc32c(message.bytes)
            message.compression = wire.COMPRESSION_GZIP
            return message

        for worker in self.served.workers:
            worker.change = compressed
        self.check(tensor)
        asked = [request for worker in self.served.workers for request in worker.requests]
        self.assertEqual({tuple(request.compression_types) for request in asked}, {(wire.COMPRESSION_GZIP,)})


if __name__ == "__main__":
    unittest.main()
