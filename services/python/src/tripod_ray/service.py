"""What the scheduler calls on a worker."""

import threading
from collections import OrderedDict
from concurrent import futures

import grpc

from . import wire

# Attempts that are remembered, so that one that is sent again is not run again.
_SEEN_MOST = 20_000


class Service(grpc.GenericRpcHandler):
    """Queues what comes, in the order in which it comes: answers mean "queued"."""

    def __init__(self, workerid, queue):
        """`queue(item)` takes `ExecuteTaskRequest`, `ImportFunctionRequest`,
        `ExportReusableVariableRequest`'s twin of imports, and None for the end."""
        self._workerid = workerid
        self._queue = queue
        self._seen = OrderedDict()
        self._lock = threading.Lock()
        imports = wire.message("ImportReusableVariableRequest")
        self._handlers = {
            "/WorkerService/ExecuteTask": self._handler(self._execute, wire.ExecuteTaskRequest),
            "/WorkerService/ImportFunction": self._handler(self._import_function, wire.ImportFunctionRequest),
            "/WorkerService/ImportReusableVariable": self._handler(self._import_variable, imports),
            "/WorkerService/Die": self._handler(self._die, wire.DieRequest),
        }

    def service(self, details):
        return self._handlers.get(details.method)

    def serve(self, address):
        """Listens, and answers with the server. Raises `OSError` if the address cannot be had."""
        # One thread, so that calls are queued in the order in which they came.
        server = grpc.server(
            futures.ThreadPoolExecutor(1, "tripod-service"),
            handlers=(self,),
            options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)],
        )
        try:
            bound = server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(str(error)) from None
        if not bound:
            raise OSError(f"cannot listen on {address}")
        server.start()
        return server

    @staticmethod
    def _handler(function, request):
        return grpc.unary_unary_rpc_method_handler(
            function, request.FromString, lambda reply: reply.SerializeToString()
        )

    def _execute(self, request, call):
        if request.HasField("workerid") and request.workerid != self._workerid:
            call.abort(grpc.StatusCode.FAILED_PRECONDITION, f"this is worker {self._workerid}")
        run = (request.operationid, request.attempt)
        if not request.HasField("operationid") or self._is_new(run):
            self._queue(request)
        return wire.ExecuteTaskReply()

    def _is_new(self, run):
        with self._lock:
            if run in self._seen:
                return False
            self._seen[run] = None
            if len(self._seen) > _SEEN_MOST:
                self._seen.popitem(last=False)
            return True

    def _import_function(self, request, _):
        self._queue(request.function)
        return wire.ImportFunctionReply()

    def _import_variable(self, request, _):
        self._queue(request.reusable_variable)
        return wire.AckReply()

    def _die(self, _, __):
        self._queue(None)
        return wire.DieReply()
