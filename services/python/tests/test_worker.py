"""A worker's own service, and calls to nodes that fail."""

import socket
import threading
import unittest
from concurrent import futures

import grpc

from tripod_ray import wire
from tripod_ray.errors import RefusedError, UnreachableError
from tripod_ray.link import Link
from tripod_ray.service import Service


class ServiceOfAWorker(unittest.TestCase):
    def setUp(self):
        self.queued = []
        self.service = Service(3, self.queued.extend)
        server = self.service.serve("127.0.0.1:0")
        self.addCleanup(lambda: server.stop(None).wait())

    def test_an_attempt_that_comes_twice_is_queued_once(self):
        service = Service(3, self.queued.extend)
        for operation, attempt in [(0, 1), (0, 1), (1, 1), (0, 2), (0, 1)]:
            service._execute(
                wire.ExecuteTaskRequest(operationid=operation, attempt=attempt, workerid=3), None
            )
        self.assertEqual([(r.operationid, r.attempt) for r in self.queued], [(0, 1), (1, 1), (0, 2)])

    def test_a_task_for_another_worker_is_refused(self):
        class Aborted(Exception):
            pass

        class Call:
            def abort(self, code, text):
                raise Aborted(code)

        with self.assertRaises(Aborted) as caught:
            Service(3, self.queued.extend)._execute(
                wire.ExecuteTaskRequest(operationid=0, workerid=2), Call()
            )
        self.assertIs(caught.exception.args[0], grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(self.queued, [])

    def test_many_orders_are_queued_in_their_order_up_to_one_that_is_not_its_own(self):
        request = wire.RayTellRequest()
        request.orders.add().function.function.implementation = b"f"
        for operation, worker in [(0, 3), (0, 3), (1, 3), (2, 4), (3, 3)]:
            order = request.orders.add().execute
            order.operationid, order.attempt, order.workerid = operation, 1, worker
        with grpc.insecure_channel(f"127.0.0.1:{self.service.port}") as channel:
            data = channel.unary_unary("/tripod.v1.RayPeer/Tell")(request.SerializeToString(), timeout=60)
        told = [order.code for order in wire.RayTellResponse.FromString(data).orders]
        self.assertEqual(told, [0, 0, 0, 0, wire.FAILED_PRECONDITION])
        self.assertEqual(self.queued[0].implementation, b"f")
        self.assertEqual([item.operationid for item in self.queued[1:]], [0, 1])
        service = Service(3, self.queued.extend)
        request = wire.RayTellRequest(orders=[wire.message("tripod.v1.RayOrder")() for _ in range(3)])
        request.orders[0].die.SetInParent()
        request.orders[1].deallocate.SetInParent()
        told = [order.code for order in service._tell(request, None).orders]
        self.assertEqual((told, self.queued[-1]), ([0, wire.UNIMPLEMENTED], None))

    def test_an_export_that_an_earlier_leader_sends_late_is_left_alone(self):
        service = Service(3, self.queued.extend)
        # Functions are replayed before variables, so the two are counted apart.
        for exportid, implementation in [(0, b"a"), (3, b"b"), (0, b"late"), (3, b"again"), (4, b"c")]:
            request = wire.ImportFunctionRequest(exportid=exportid)
            request.function.implementation = implementation
            service._import_function(request, None)
        self.assertEqual([item.implementation for item in self.queued], [b"a", b"b", b"c"])
        self.queued.clear()
        orders = wire.RayTellRequest()
        for exportid, name in [(1, b"x"), (2, b"y"), (1, b"late"), (None, b"of 2016"), (5, b"z")]:
            variable = orders.orders.add().variable
            variable.reusable_variable.name = name
            if exportid is not None:
                variable.exportid = exportid
        told = service._tell(orders, None)
        self.assertEqual([order.code for order in told.orders], [0] * 5)
        late = wire.message("ImportReusableVariableRequest")(exportid=2)
        service._import_variable(late, None)
        self.assertEqual([item.name for item in self.queued], [b"x", b"y", b"of 2016", b"z"])

    def test_an_address_that_is_taken_is_an_error(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with self.assertRaises(OSError):
                Service(3, self.queued.extend).serve(f"127.0.0.1:{taken.getsockname()[1]}")


class Node(grpc.GenericRpcHandler):
    """Answers every call as it is told, and remembers it."""

    def __init__(self, answer):
        self.calls = []
        self._answer = answer
        self.server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def service(self, details):
        def handle(data, context):
            metadata = dict(details.invocation_metadata)
            self.calls.append((data, metadata.get(wire.SEQ)))
            return self._answer(context)

        return grpc.unary_unary_rpc_method_handler(handle)


class Links(unittest.TestCase):
    def node(self, answer):
        node = Node(answer)
        self.addCleanup(lambda: node.server.stop(None).wait())
        return node

    def link(self, *nodes):
        link = Link([node.address if isinstance(node, Node) else node for node in nodes])
        self.addCleanup(link.close)
        return link

    def test_the_next_node_gets_the_same_call(self):
        away = self.node(lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, "no leader"))
        there = self.node(lambda _: b"answer")
        link = self.link(away, there)
        metadata = ((wire.SEQ, "7"),)
        self.assertEqual(link.call("/a/b", b"ask", metadata), b"answer")
        self.assertEqual((away.calls, there.calls), ([(b"ask", "7")], [(b"ask", "7")]))
        link.call("/a/b", b"ask", metadata)
        self.assertEqual(len(away.calls), 1, "it stays with the node that answered")

    def test_calls_go_to_the_leader_once_it_is_known(self):
        leader = self.node(lambda _: b"leader")

        def tell(context):
            context.send_initial_metadata(((wire.LEADER, leader.address),))
            return b"follower"

        follower = self.node(tell)
        link = self.link(follower, leader)
        self.assertEqual([link.call("/a/b", b"") for _ in range(3)], [b"follower", b"leader", b"leader"])
        alone = self.link(follower)
        self.assertEqual([alone.call("/a/b", b"") for _ in range(2)], [b"follower"] * 2, "it is not known")

    def test_a_node_that_says_nothing_is_left(self):
        silent = threading.Event()
        self.addCleanup(silent.set)
        frozen = self.node(lambda _: silent.wait(60) and b"" or b"")
        there = self.node(lambda _: b"answer")
        self.assertEqual(self.link(frozen, there).call("/a/b", b"", attempt_s=0.5), b"answer")

    def test_refusals_come_with_their_reason(self):
        def refuse(context):
            context.set_trailing_metadata(((wire.REASON, "expired"),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "given up")

        with self.assertRaises(RefusedError) as caught:
            self.link(self.node(refuse)).call("/a/b", b"")
        self.assertEqual(
            (caught.exception.code, caught.exception.reason), (wire.FAILED_PRECONDITION, "expired")
        )

    def test_the_schedulers_word_is_not_asked_for_again(self):
        def no_store(context):
            context.set_trailing_metadata(((wire.REASON, "no-store"),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "there is no store at that address")

        node = self.node(no_store)
        with self.assertRaisesRegex(RefusedError, "no store"):
            self.link(node, node).call("/a/b", b"")
        self.assertEqual(len(node.calls), 1)

    def test_trouble_of_a_node_is_tried_elsewhere_whatever_its_code(self):
        def trouble(context):
            context.set_trailing_metadata(((wire.OUTAGE, "overloaded"),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls")

        self.assertEqual(self.link(self.node(trouble), self.node(lambda _: b"x")).call("/a/b", b""), b"x")

    def test_an_answer_that_is_cut_off_is_nobodys_word(self):
        def cut_off(context):
            context.abort(grpc.StatusCode.UNKNOWN, "the stream was terminated without a final status")

        node, other = self.node(cut_off), self.node(lambda _: b"")
        self.assertEqual(self.link(node, other).call("/a/b", b""), b"")
        message = wire.RayLineRequest(seq=7, acked=6)
        self.assertEqual(self.link(node, other).batch(message, "session"), wire.RayBatchResponse())
        self.assertEqual(other.calls[1:], [(message.SerializeToString(), None)], "a batch as it was")

    def test_a_cluster_that_is_not_there_is_named(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{nobody.getsockname()[1]}"
            with self.assertRaisesRegex(UnreachableError, address):
                self.link(address).call("/a/b", b"", patience_s=0.5)
        with self.assertRaises(ValueError):
            Link(" , ")


if __name__ == "__main__":
    unittest.main()
