"""The cluster of the test process behind ports: nodes and workers, each of which can be made to fail."""

import threading
from concurrent import futures

import grpc

from mars.local import LocalCluster
from tripod_mars import wire
from tripod_mars.errors import RefusedError
from tripod_mars.workers import WorkerError

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Node(grpc.GenericRpcHandler):
    """One node. `away`: it says so, as one without a leader. `lost`: so many answers do not come, though the call is done.
    `after`: what is called when it has answered a call of that name."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.away, self.lost, self.after = False, 0, {}
        self.taken = []
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        if name not in wire.SCHEDULER or "Scheduler" not in details.method:
            return None
        _, request, _ = wire.SCHEDULER[name]
        return grpc.unary_unary_rpc_method_handler(
            lambda message, context: self._answer(name, message, context),
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    def _answer(self, name, request, context):
        if self.away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "no leader")
        self.taken.append(name)
        try:
            answer = self.cluster.send(name, request)
        except RefusedError as error:
            context.abort(_CODES[error.code], str(error))
        if name in self.after:
            self.after[name]()
        if self.lost:
            self.lost -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        return answer

    def stop(self):
        self._server.stop(None).wait()


class Worker(grpc.GenericRpcHandler):
    """One worker. `change` gets each message that it sends, and gives the one that is sent instead, or raises."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.change = None
        self.requests = []
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        if name not in wire.WORKER or "Worker" not in details.method:
            return None
        _, request, _ = wire.WORKER[name]
        forms = {
            "request_deserializer": request.FromString,
            "response_serializer": lambda message: message.SerializeToString(),
        }
        if name in ("PutMutableChunksData", "PutChunksData"):
            return grpc.stream_unary_rpc_method_handler(lambda some, context: self._put(name, some, context), **forms)
        return grpc.unary_stream_rpc_method_handler(lambda one, context: self._read(name, one, context), **forms)

    def _read(self, name, request, context):
        self.requests.append(request)
        try:
            for message in self.cluster.stream(self.address, name, request, 0):
                yield self.change(message) if self.change else message
        except WorkerError as error:
            context.abort(_CODES[error.code], error.text)

    def _put(self, name, requests, context):
        try:
            return self.cluster.put(self.address, name, requests, 0)
        except WorkerError as error:
            context.abort(_CODES[error.code], error.text)

    def stop(self):
        self._server.stop(None).wait()


class Served:
    """Three nodes and two workers of one cluster."""

    def __init__(self):
        self.cluster = LocalCluster()
        self.nodes = [Node(self.cluster) for _ in range(3)]
        self.workers = [Worker(self.cluster) for _ in range(2)]
        self.cluster.worker_ids = tuple(worker.address for worker in self.workers)
        self.endpoints = [node.address for node in self.nodes]

    def close(self):
        stops = [threading.Thread(target=one.stop) for one in (*self.nodes, *self.workers)]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self.cluster.tiler.close()
