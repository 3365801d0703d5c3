"""Streams of batches and orders, threads that send by themselves, and signals meanwhile."""

import contextlib
import os
import queue
import signal
import socket
import tempfile
import threading
import unittest
import unittest.mock
from concurrent import futures

import grpc
from cluster import eventually
from fake_store import FakeStore
from test_outbox import Scripted

from tripod_ray import calls, outbox, wire
from tripod_ray.errors import RefusedError
from tripod_ray.interrupts import Held
from tripod_ray.batch_stream import BatchStream
from tripod_ray.link import Link
from tripod_ray.reference import ObjectRef
from tripod_ray.relay import RelayedBatchStream
from tripod_ray.service import Service

SESSION = "0123456789abcdef0123456789abcdef"


def take_interrupts(test):
    """As a program at a terminal does: one in the background of a shell begins with them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    test.addCleanup(signal.signal, signal.SIGINT, before)


class Node(grpc.GenericRpcHandler):
    """Takes batches as it is told to: `answer(request, context)` gives the leader to be told, or raises."""

    def __init__(self, answer=lambda request, context: "", streams=True):
        # The places of batches, for each stream; and those of calls.
        self.streams, self.calls = [], []
        self._answer, self._serves_streams = answer, streams
        self.server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        metadata = dict(details.invocation_metadata)
        if details.method == wire.LINE and self._serves_streams and metadata[wire.SESSION] == SESSION:
            return grpc.stream_stream_rpc_method_handler(self._stream)
        if details.method == wire.BATCH:
            return grpc.unary_unary_rpc_method_handler(lambda data, _: self._call(metadata))
        return None

    def _stream(self, requests, context):
        seen = []
        self.streams.append(seen)
        for data in requests:
            request = wire.RayLineRequest.FromString(data)
            seen.append(request.seq)
            leader = self._answer(request, context)
            if leader is None:
                return
            yield wire.RayLineResponse(leader=leader, batch=answer()).SerializeToString()

    def _call(self, metadata):
        self.calls.append((metadata[wire.SESSION], int(metadata[wire.SEQ]), int(metadata[wire.ACKED])))
        return answer().SerializeToString()


def answer():
    response = wire.RayBatchResponse()
    response.results.add()
    return response


class Streams(unittest.TestCase):
    def node(self, *arguments, **options):
        node = Node(*arguments, **options)
        self.addCleanup(lambda: node.server.stop(None).wait())
        return node

    def link(self, *nodes):
        link = Link([node.address for node in nodes])
        self.addCleanup(link.close)
        return link

    def send(self, link, *places):
        for seq in places:
            message = wire.RayLineRequest(seq=seq, acked=seq - 1)
            message.batch.calls.add().put.hold = True
            self.assertEqual(link.batch(message, SESSION), answer())

    def test_the_batches_of_a_process_go_over_one_stream(self):
        node = self.node()
        self.send(self.link(node), 1, 2, 3)
        self.assertEqual((node.streams, node.calls), ([[1, 2, 3]], []))

    def test_a_batch_whose_stream_breaks_goes_to_the_next_node_in_the_same_place(self):
        def breaks(request, context):
            return context.abort(grpc.StatusCode.UNAVAILABLE, "gone") if request.seq == 2 else ""

        def ends(request, _):
            return None if request.seq == 3 else ""

        broken, ended, last = self.node(breaks), self.node(ends), self.node()
        self.send(self.link(broken, ended, last), 1, 2, 3, 4)
        self.assertEqual((broken.streams, ended.streams, last.streams), ([[1, 2]], [[2, 3]], [[3, 4]]))

    def test_a_stream_moves_to_the_leader(self):
        leader = self.node()
        follower = self.node(lambda request, _: leader.address if request.seq == 2 else "")
        self.send(self.link(follower, leader), 1, 2, 3, 4)
        self.assertEqual((follower.streams, leader.streams), ([[1, 2]], [[3, 4]]))

    def test_a_node_that_serves_no_streams_is_called(self):
        node = self.node(streams=False)
        self.send(self.link(node), 1, 2)
        self.assertEqual(node.calls, [(SESSION, 1, 0), (SESSION, 2, 1)])

    def test_a_refusal_ends_the_stream_and_is_told(self):
        def refuse(request, context):
            if request.seq == 1:
                context.set_trailing_metadata(((wire.REASON, "session-expired"),))
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "session expired")
            return ""

        node = self.node(refuse)
        link = self.link(node)
        with self.assertRaises(RefusedError) as caught:
            self.send(link, 1)
        self.assertEqual(
            (caught.exception.code, caught.exception.reason), (wire.FAILED_PRECONDITION, "session-expired")
        )
        self.send(link, 2)
        self.assertEqual(node.streams, [[1], [2]])

    def test_a_wait_that_is_broken_off_leaves_no_answer_behind(self):
        take_interrupts(self)
        threads = []

        def interrupted(request, _):
            if request.seq == 1 and not threads:
                threads.append(threading.main_thread().ident)
                signal.pthread_kill(threads[0], signal.SIGINT)
            return ""

        node = self.node(interrupted)
        link = self.link(node)
        with self.assertRaises(KeyboardInterrupt):
            self.send(link, 1)
            # The answer may win: then the signal comes here.
            threading.Event().wait(60)
        self.send(link, 2)
        self.assertIn(2, node.streams[-1])


class RelayedStreams(Streams):
    """The same, of a process whose object store passes batches on."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = FakeStore(folder.name, 0, lambda *_: None)
        self.addCleanup(self.store.close)

    def link(self, *nodes):
        link = super().link(*nodes)
        link.relay = (self.store.path, 7)
        return link

    def send(self, link, *places):
        super().send(link, *places)
        if link._stream is not None:
            self.assertIs(type(link._stream), RelayedBatchStream)

    def test_without_its_store_a_process_sends_by_itself(self):
        node = self.node()
        link = self.link(node)
        self.send(link, 1)
        self.store.close()
        eventually(lambda: not is_there(self.store.path), "the end of the store")
        Streams.send(self, link, 2)
        self.assertIs(type(link._stream), BatchStream)
        self.assertEqual((node.streams, link.relay), ([[1], [2]], None))

    def test_a_store_that_is_frozen_is_left(self):
        node = self.node()
        with unittest.mock.patch("tripod_ray.relay._ANSWER_S", 1.0):
            link = self.link(node)
            with unittest.mock.patch("fake_store._relay", lambda _, stream, __: stream.read()):
                Streams.send(self, link, 1)
        self.assertIs(type(link._stream), BatchStream)
        self.assertEqual(node.streams, [[1]])


def is_there(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


class RelayedOrders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = FakeStore(folder.name, 0, lambda *_: None)
        self.addCleanup(self.store.close)
        self.queued = []
        self.service = Service(3, self.queued.extend)
        server = self.service.serve("127.0.0.1:0")
        self.addCleanup(lambda: server.stop(None).wait())

    def follow(self):
        self.service.follow(self.store.path)
        self.addCleanup(self.service.close)
        eventually(lambda: 3 in self.store.followers, "the worker takes orders from the store")
        return self.store.followers.pop(3)

    def test_orders_by_the_store_are_queued_once_with_those_that_come_directly(self):
        follower = self.follow()
        self.assertEqual([told.code for told in follower.tell(orders(1, 2)).orders], [0, 0])
        self.service.tell(orders(2, 3))
        self.assertEqual([told.code for told in follower.tell(orders(3, 4)).orders], [0, 0])
        self.assertEqual([item.operationid for item in self.queued], [1, 2, 3, 4])

    def test_a_stream_to_the_worker_ends_when_the_store_passes_orders_on(self):
        """Then the leader asks the store, when it opens the next one."""
        requests = queue.SimpleQueue()
        with grpc.insecure_channel(f"127.0.0.1:{self.service.port}") as channel:
            answers = channel.stream_stream("/tripod.v1.RayPeerLine/Orders")(
                iter(requests.get, None), timeout=60
            )
            for operation in (1, 2):
                requests.put(orders(operation).SerializeToString())
                next(answers)
            follower = self.follow()
            requests.put(orders(3).SerializeToString())
            # It may end before that is read: then the leader sends it again.
            answered = len(list(answers))
            requests.put(None)
            # Without the store streams are served for as long as leaders want.
            follower.close()
            eventually(lambda: not self.service._relayed.open, "the end of the connection")
            more = [orders(operation).SerializeToString() for operation in (4, 5)]
            answers = channel.stream_stream("/tripod.v1.RayPeerLine/Orders")(iter(more), timeout=60)
            self.assertEqual(len(list(answers)), 2)
        expected = [1, 2, 3, 4, 5] if answered else [1, 2, 4, 5]
        self.assertEqual([item.operationid for item in self.queued], expected)

    def test_a_store_that_passes_nothing_on_is_no_fault(self):
        self.store.close()
        eventually(lambda: not is_there(self.store.path), "the end of the store")
        self.service.follow(self.store.path)
        self.service.tell(orders(1))
        self.assertEqual(len(self.queued), 1)


def orders(*operations):
    request = wire.RayTellRequest()
    for operation in operations:
        order = request.orders.add().execute
        order.operationid, order.attempt, order.workerid = operation, 1, 3
    return request


class Orders(unittest.TestCase):
    def test_orders_over_a_stream_are_queued_and_answered_in_order_beside_calls(self):
        queued = []
        service = Service(3, queued.extend)
        server = service.serve("127.0.0.1:0")
        self.addCleanup(lambda: server.stop(None).wait())
        requests = []
        for operation in range(3):
            request = wire.RayTellRequest()
            order = request.orders.add().execute
            order.operationid, order.attempt, order.workerid = operation // 2, 1, 3
            requests.append(request.SerializeToString())
        gate = threading.Event()

        def send():
            yield requests[0]
            gate.wait(60)
            yield from requests[1:]

        with grpc.insecure_channel(f"127.0.0.1:{service.port}") as channel:
            answers = channel.stream_stream("/tripod.v1.RayPeerLine/Orders")(send(), timeout=60)
            told = [wire.RayTellResponse.FromString(next(answers))]
            # Another leader's call is not kept waiting by a stream that is open.
            execute = wire.ExecuteTaskRequest(operationid=9, attempt=1, workerid=3).SerializeToString()
            channel.unary_unary("/WorkerService/ExecuteTask")(execute, timeout=60)
            gate.set()
            told.extend(wire.RayTellResponse.FromString(data) for data in answers)
        self.assertEqual([[order.code for order in one.orders] for one in told], [[0], [0], [0]])
        self.assertEqual([item.operationid for item in queued], [0, 9, 1], "one that came twice is not run twice")


class Waiting(unittest.TestCase):
    """A driver's thread that waits for an answer sends by itself."""

    def setUp(self):
        self.link = Scripted()
        self.outbox = outbox.Outbox(self.link)
        self.outbox.direct = True
        self.outbox.register(wire.RegisterWorkerRequest())
        self.addCleanup(self.outbox.close)
        self.threads = []
        batch = self.link.batch

        def note(message, session):
            self.threads.append(threading.current_thread())
            return batch(message, session)

        self.link.batch = note

    def submit(self, name):
        ref = ObjectRef(self.outbox)
        self.outbox.post(calls.Submit(name.encode(), [], [ref]))
        return ref

    @contextlib.contextmanager
    def unheard(self):
        """The outbox's own thread does not hear of what is posted meanwhile."""
        self.outbox._rung = True
        yield
        self.outbox._rung = False

    def test_who_waits_sends_all_that_is_there(self):
        with self.unheard():
            first, second = self.submit("first"), self.submit("second")
        self.assertEqual((second.id, first.id), (1, 0))
        self.assertEqual(self.link.flat(), [("submit", "first"), ("submit", "second")])
        self.assertEqual(self.threads, [threading.current_thread()])

    def test_threads_send_one_after_the_other_whichever_was_first(self):
        take_interrupts(self)
        for number in range(4):
            ref = ObjectRef(self.outbox)
            with self.unheard():
                self.outbox.post(calls.Submit(b"x", [], [ref]))
            if number % 2:
                with futures.ThreadPoolExecutor(1) as pool:
                    pool.submit(self.outbox.await_ids, (ref,)).result(60)
            self.assertEqual(ref.id, number)

    def test_who_has_limited_time_does_not_send(self):
        ref = self.submit("x")
        self.assertTrue(self.outbox.await_ids((ref,), 60))
        self.assertEqual([thread.name for thread in self.threads], ["tripod-outbox"])

    def test_what_is_left_behind_is_sent_by_the_thread_of_the_outbox(self):
        ref = self.submit("x")
        self.assertEqual(ref.id, 0)
        del ref
        eventually(lambda: ("decrement", 0) in self.link.flat(), "the reference is given up")

    def test_a_batch_whose_wait_was_broken_off_is_sent_again_in_its_place(self):
        batch, broken = self.link.batch, []

        def breaks(message, session):
            if not broken:
                broken.append(message.seq)
                raise KeyboardInterrupt
            return batch(message, session)

        self.link.batch = breaks
        with self.unheard():
            refs = [self.submit("x"), self.submit("y")]
        with self.assertRaises(KeyboardInterrupt):
            self.outbox.await_ids(refs)
        self.assertEqual([ref.id for ref in refs], [0, 1])
        self.assertEqual((broken, self.link.sequences[1:]), ([2], [(2, 1)]))
        self.assertEqual(self.link.flat(), [("submit", "x"), ("submit", "y")])


class Signals(unittest.TestCase):
    def test_handlers_run_where_they_may_and_otherwise_at_the_end(self):
        came = []
        before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        held = Held()
        with held:
            os.kill(os.getpid(), signal.SIGALRM)
            self.assertEqual(came, [])
            with held.allowed():
                self.assertEqual(len(came), 1)
                os.kill(os.getpid(), signal.SIGALRM)
                self.assertEqual(len(came), 2)
            os.kill(os.getpid(), signal.SIGALRM)
            self.assertEqual(len(came), 2)
        self.assertEqual(len(came), 3)
        os.kill(os.getpid(), signal.SIGALRM)
        self.assertEqual(len(came), 4, "the handler is its own again")

    def test_an_interrupt_is_raised_at_the_end(self):
        take_interrupts(self)
        done = []
        with self.assertRaises(KeyboardInterrupt), Held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)
        self.assertEqual(done, [True])

    def test_other_threads_are_left_alone(self):
        kept = []

        take_interrupts(self)
        held = Held()
        with held:
            self.assertIsNot(signal.getsignal(signal.SIGINT), signal.default_int_handler)

        def run():
            with held, held.allowed():
                kept.append(signal.getsignal(signal.SIGINT))

        handler = signal.getsignal(signal.SIGINT)
        with futures.ThreadPoolExecutor(1) as pool:
            pool.submit(run).result(60)
        self.assertEqual(kept, [handler])


if __name__ == "__main__":
    unittest.main()
