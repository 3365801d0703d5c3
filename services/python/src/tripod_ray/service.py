"""What the scheduler calls on a worker."""

import logging
import socket
import threading
from collections import OrderedDict
from concurrent import futures

import grpc

from . import wire
from .relay import RelayedOrders, RelayEnded

# Attempts that are remembered, so that one that is sent again is not run again.
_SEEN_MOST = 20_000
_THREADS = 16
# A task or an import as a node takes it has 16 MiB; what its order adds is far less than as much again.
_ORDER_BYTES_MAX = 64 << 20

_log = logging.getLogger("tripod_ray")


class Service(grpc.GenericRpcHandler):
    """Queues what comes, in the order in which it comes: answers mean "queued"."""

    def __init__(self, workerid, queue):
        """`queue(items)` takes a list of `ExecuteTaskRequest`, `Function`, `ReusableVar`, `RayCancelOrder`, and
        None for the end."""
        self._workerid = workerid
        # Where it listens, when it does.
        self.port = None
        self._queue = queue
        self._seen = OrderedDict()
        # The highest number of an export that was queued, of functions and of variables.
        self._exports = {}
        self._lock = threading.Lock()
        # Orders that come by the object store, if they do.
        self._relayed = None
        imports = wire.message("ImportReusableVariableRequest")
        self._handlers = {
            "/tripod.v1.RayPeer/Tell": self._handler(self._tell, wire.RayTellRequest),
            "/tripod.v1.RayPeerLine/Orders": grpc.stream_stream_rpc_method_handler(
                self._follow, wire.RayTellRequest.FromString, lambda reply: reply.SerializeToString()
            ),
            "/WorkerService/ExecuteTask": self._handler(self._execute, wire.ExecuteTaskRequest),
            "/WorkerService/ImportFunction": self._handler(self._import_function, wire.ImportFunctionRequest),
            "/WorkerService/ImportReusableVariable": self._handler(self._import_variable, imports),
            "/WorkerService/Die": self._handler(self._die, wire.DieRequest),
        }

    def service(self, details):
        return self._handlers.get(details.method)

    def serve(self, address):
        """Listens, and answers with the server. Raises `OSError` if the address cannot be had."""
        # Each leader sends its orders one after the other. A stream occupies a thread, also one whose leader went
        # away without a word, until that is noticed.
        server = grpc.server(
            futures.ThreadPoolExecutor(_THREADS, "tripod-service"),
            handlers=(self,),
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", _ORDER_BYTES_MAX),
                ("grpc.keepalive_time_ms", 10_000),
                ("grpc.keepalive_timeout_ms", 5_000),
            ],
        )
        try:
            bound = server.add_insecure_port(address)
        except RuntimeError:
            bound = 0
        if not bound:
            raise OSError(f"cannot listen on {address}, as the scheduler wants it: {_why_not(address)}")
        self.port = bound
        server.start()
        return server

    def follow(self, path):
        """Has the object store whose socket this is pass orders on. Streams to this process end."""
        try:
            self._relayed = RelayedOrders(path, self._workerid, self.tell)
        except RelayEnded as error:
            # Whether it is gone is for the other connection to it to tell; orders come here directly.
            _log.info("the object store passes no orders on: %s", error)

    def close(self):
        if self._relayed is not None:
            self._relayed.close()

    @staticmethod
    def _handler(function, request):
        return grpc.unary_unary_rpc_method_handler(
            function, request.FromString, lambda reply: reply.SerializeToString()
        )

    def _execute(self, request, call):
        if not self._is_mine(request):
            call.abort(grpc.StatusCode.FAILED_PRECONDITION, self._whose())
        if self._is_new(request):
            self._queue([request])
        return wire.ExecuteTaskReply()

    def _follow(self, requests, call):
        for request in requests:
            yield self.tell(request)
            if self._relayed is not None and self._relayed.open:
                # The leader asks the object store first when it opens the next one.
                return

    def _tell(self, request, _):
        return self.tell(request)

    def tell(self, request):
        """All of them up to the first that is not for this worker."""
        reply, items = wire.RayTellResponse(), []
        for order in request.orders:
            kind = order.WhichOneof("order")
            told = reply.orders.add()
            if kind == "execute":
                if not self._is_mine(order.execute):
                    told.code, told.text = wire.FAILED_PRECONDITION, self._whose()
                    break
                if self._is_new(order.execute):
                    items.append(order.execute)
            elif kind == "function":
                items.extend(self._imported(kind, order.function, order.function.function))
            elif kind == "variable":
                items.extend(self._imported(kind, order.variable, order.variable.reusable_variable))
            elif kind == "cancel":
                items.append(order.cancel)
            elif kind == "die":
                items.append(None)
            else:
                told.code, told.text = wire.UNIMPLEMENTED, f"a worker is not told: {kind}"
                break
        if items:
            self._queue(items)
        return reply

    def _is_mine(self, request):
        return not request.HasField("workerid") or request.workerid == self._workerid

    def _whose(self):
        return f"this is worker {self._workerid}"

    def _is_new(self, request):
        if not request.HasField("operationid"):
            return True
        run = (request.operationid, request.attempt)
        with self._lock:
            if run in self._seen:
                return False
            self._seen[run] = None
            if len(self._seen) > _SEEN_MOST:
                self._seen.popitem(last=False)
            return True

    def _imported(self, kind, request, what):
        """What is to be queued. Exports of a kind come in the order of their numbers, so one that is not above
        those before it is late: a leader that was replaced has sent it, and it must not undo what came after."""
        if request.HasField("exportid"):
            with self._lock:
                if request.exportid <= self._exports.get(kind, -1):
                    return []
                self._exports[kind] = request.exportid
        return [what]

    def _import_function(self, request, _):
        self._queue(self._imported("function", request, request.function))
        return wire.ImportFunctionReply()

    def _import_variable(self, request, _):
        self._queue(self._imported("variable", request, request.reusable_variable))
        return wire.AckReply()

    def _die(self, _, __):
        self._queue([None])
        return wire.DieReply()


def _why_not(address):
    """Why nobody can listen there; gRPC does not say."""
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
            probe.listen()
        except (OSError, ValueError) as error:
            return error
    return "somebody else had the port"
