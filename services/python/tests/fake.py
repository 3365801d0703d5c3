"""A cluster for tests in one process: a scheduler's port, object stores, and real workers as processes of
their own."""

import argparse
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import time
from concurrent import futures

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_scheduler import FakeScheduler, Refused, abort
from fake_store import FakeStore

from tripod_ray import wire


class FakeCluster(grpc.GenericRpcHandler):
    """Serves `stores` object stores on loopback. `address` is what drivers and workers are given."""

    def __init__(self, stores=1, ttl_ms=3000, capacity_bytes=1 << 30):
        self._folder = tempfile.TemporaryDirectory(prefix="tripod-fake-")
        self._lines = {}
        self._workers = []
        self._held_ports = []
        self.ttl_ms, self.beats = ttl_ms, 0
        # Why there are no schedulers yet, if that is so, and how often it was said.
        self.too_early, self.refused_early = None, 0
        # Its feature level; what needs more is refused.
        self.level = 10
        # Whether it is of a build that does not know what needs more.
        self.is_older = False
        # Every so manieth answer is lost on its way; 0: none.
        self.lose_every = 0
        self._answers = 0
        self.stores = {}
        self.scheduler = FakeScheduler(self.stores, self._send)
        self.scheduler.port = self._free_port
        self._server = grpc.server(futures.ThreadPoolExecutor(16), handlers=(self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{self.port}"
        for objstoreid in range(stores):
            store = FakeStore(self._folder.name, objstoreid, self.scheduler.ready, capacity_bytes)
            store.server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(_StoreInfo(store),))
            store.address = f"127.0.0.1:{store.server.add_insecure_port('127.0.0.1:0')}"
            store.server.start()
            self.stores[objstoreid] = store
        self._server.start()

    def start_worker(self, *more, stderr=None):
        """A real worker process."""
        command = [sys.executable, "-m", "tripod_ray.worker", "--address", self.address, "--until-eof", *more]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr, text=stderr is not None)
        self._workers.append(worker)
        return worker

    def close(self):
        for worker in self._workers:
            worker.kill()
            worker.wait()
            worker.stdin.close()
            if worker.stderr is not None:
                worker.stderr.close()
        self._server.stop(None).wait()
        for line in self._lines.values():
            line.put(None)
        for store in self.stores.values():
            store.server.stop(None).wait()
            store.close()
        for held in self._held_ports:
            held.close()
        self._folder.cleanup()

    def stop_nodes(self):
        """For good. Object stores stay."""
        self._server.stop(None).wait()

    def await_workers(self, count, timeout_s=60):
        """Waits until so many workers can be given tasks."""
        self.await_true(
            lambda: sum(w.alive and w.ready for w in self.scheduler.workers) >= count,
            timeout_s,
            f"{count} workers",
        )

    def await_true(self, condition, timeout_s=30, what="the condition"):
        end = time.monotonic() + timeout_s
        with self.scheduler.changed:
            while not condition():
                if time.monotonic() > end:
                    raise AssertionError(f"{what} did not come true in {timeout_s} s")
                self.scheduler.changed.wait(0.05)

    def service(self, details):
        handlers = {
            wire.REGISTER_WORKER: self._register,
            wire.EXPORT_FUNCTION: self._export_function,
            wire.EXPORT_VARIABLE: self._export_variable,
            wire.KILL_WORKERS: self._kill_workers,
            wire.SCHEDULER_INFO: self._scheduler_info,
            wire.TASK_INFO: self._task_info,
            wire.BATCH: self._batch,
            wire.WAIT: self._wait,
            wire.HEARTBEAT: self._heartbeat,
        }
        handler = handlers.get(details.method)
        return handler and grpc.unary_unary_rpc_method_handler(handler)

    def _once(self, context, work):
        """Exactly once by session and sequence, in the order of the sequences."""
        metadata = dict(context.invocation_metadata())
        session, seq = metadata[wire.SESSION], int(metadata[wire.SEQ])
        scheduler = self.scheduler
        with scheduler.lock:
            replies = scheduler.sessions.setdefault(session, {})
            if seq not in replies:
                if seq != len(replies) + 1 or int(metadata[wire.ACKED]) >= seq:
                    scheduler.violations.append(f"sequence {seq} after {len(replies)}")
                try:
                    replies[seq] = work(metadata).SerializeToString()
                except Refused as refused:
                    abort(context, refused)
                except Exception as error:
                    traceback.print_exc()
                    scheduler.violations.append(repr(error))
                    raise
            self._answers += 1
            if self.lose_every and self._answers % self.lose_every == 0:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")
            return replies[seq]

    def _register(self, data, context):
        if self.too_early is not None:
            self.refused_early += 1
            abort(context, Refused(wire.FAILED_PRECONDITION, self.too_early, wire.LEVEL_LOW))
        request = wire.RegisterWorkerRequest.FromString(data)
        offers = {wire.CPUS_MILLI, wire.MEMORY_BYTES, wire.RESOURCES_MILLI}
        self._check_level(context, not self.is_older and not offers.isdisjoint(dict(context.invocation_metadata())))
        return self._once(context, lambda metadata: self.scheduler.register(request, metadata))

    def _check_level(self, context, is_newer):
        if is_newer and self.is_older:
            abort(context, Refused(wire.INVALID_ARGUMENT, "call 0: call: it is none", "invalid"))
        if is_newer and self.level < 10:
            text = f"T4401 level-low: this needs feature level 10, and the cluster is at {self.level}: node 2 supports "
            text += f"{self.level} only (older; upgrade it); see `tripod level show`"
            abort(context, Refused(wire.FAILED_PRECONDITION, text, wire.LEVEL_LOW))

    def _batch(self, data, context):
        request = wire.RayBatchRequest.FromString(data)
        self._check_level(context, any(map(needs_level_10, request.calls)))
        if wire.SESSION not in dict(context.invocation_metadata()):
            with self.scheduler.lock:
                return self.scheduler.batch(request).SerializeToString()

        def work(metadata):
            if metadata.get(wire.WORKER) != str(request.workerid):
                self.scheduler.violations.append("a batch that does not name its process in its metadata")
            self.scheduler.living(request.workerid)
            return self.scheduler.batch(request)

        return self._once(context, work)

    def _export_function(self, data, context):
        function = wire.ExportFunctionRequest.FromString(data).function

        def work(_):
            self.scheduler.export(
                "/WorkerService/ImportFunction", wire.ImportFunctionRequest(function=function)
            )
            return wire.message("ExportFunctionReply")()

        return self._once(context, work)

    def _export_variable(self, data, context):
        variable = wire.ExportReusableVariableRequest.FromString(data).reusable_variable

        def work(_):
            request = wire.message("ImportReusableVariableRequest")(reusable_variable=variable)
            self.scheduler.export("/WorkerService/ImportReusableVariable", request)
            return wire.AckReply()

        return self._once(context, work)

    def _kill_workers(self, _, context):
        return self._once(context, lambda _: wire.KillWorkersReply(success=self.scheduler.kill_workers()))

    def _scheduler_info(self, *_):
        reply = wire.SchedulerInfoReply()
        with self.scheduler.lock:
            for found in self.scheduler.objects:
                reply.reference_count.append(found.count() % 2**64)
                reply.target_objectid.append((-1 if found.target is None else found.target) % 2**64)
            workers = self.scheduler.workers
            reply.avail_worker.extend(w.id for w in workers if w.alive and w.ready and not w.tasks)
            for name, (results, workers) in self.scheduler.functions.items():
                entry = reply.function_table[name.decode()]
                entry.num_return_vals = results
                entry.workerid.extend(sorted(workers))
        return reply.SerializeToString()

    def _task_info(self, *_):
        reply = wire.TaskInfoReply()
        with self.scheduler.lock:
            reply.num_succeeded = self.scheduler.succeeded
            for task, address, text in self.scheduler.failed:
                reply.failed_task.add(
                    operationid=task.op, function_name=task.name, worker_address=address, error_message=text
                )
            for worker in self.scheduler.workers:
                for task in worker.tasks if worker.alive else ():
                    reply.running_task.add(
                        operationid=task.op, function_name=task.name, worker_address=worker.address
                    )
        return reply.SerializeToString()

    def _wait(self, data, _):
        request = wire.RayWaitRequest.FromString(data)
        end = time.monotonic() + request.timeout_ms / 1000
        reply = wire.RayWaitResponse()
        with self.scheduler.changed:
            while True:
                places = [
                    p for p, objectid in enumerate(request.objectids) if self.scheduler.located(objectid)
                ]
                left = end - time.monotonic()
                if len(places) >= (request.at_least or len(request.objectids)) or left <= 0:
                    break
                self.scheduler.changed.wait(left)
        for place in places:
            reply.objects.add(place=place)
        return reply.SerializeToString()

    def _heartbeat(self, data, context):
        request = wire.HeartbeatRequest.FromString(data)
        reply = wire.HeartbeatResponse(ttl_ms=self.ttl_ms)
        self.beats += 1
        try:
            with self.scheduler.lock:
                self.scheduler.living(request.id)
        except Refused:
            reply.order = wire.HeartbeatResponse.ORDER_REREGISTER
        return reply.SerializeToString()

    def _send(self, worker, path, request):
        """Orders of a worker go out in their order, each answered before the next."""
        line = self._lines.get(worker.id)
        if line is None:
            line = self._lines[worker.id] = queue.SimpleQueue()
            threading.Thread(target=self._deliver, args=(worker, line), daemon=True).start()
        line.put((path, request.SerializeToString()))

    def _deliver(self, worker, line):
        with grpc.insecure_channel(worker.address) as channel:
            while (order := line.get()) is not None:
                try:
                    channel.unary_unary(order[0])(order[1], timeout=30, wait_for_ready=True)
                except grpc.RpcError:
                    pass

    def _free_port(self):
        """An address for a worker: bound and never listening here, so nobody else is given it by the
        system."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        held.close()
        return address


def needs_level_10(call):
    options = call.options
    needs = options.priority or options.cpus_milli or options.memory_bytes or options.resources_milli
    return bool(needs) or call.WhichOneof("call") in ("cancel", "describe")


class _StoreInfo(grpc.GenericRpcHandler):
    def __init__(self, store):
        self._store = store

    def service(self, details):
        return details.method == wire.STORE_INFO and grpc.unary_unary_rpc_method_handler(self._info) or None

    def _info(self, *_):
        info = wire.ObjStoreInfoReply(local_socket=self._store.path, objstoreid=self._store.objstoreid)
        return info.SerializeToString()


def main():
    """A cluster that other processes use, until its input ends: prints its address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cluster = FakeCluster()
    try:
        for _ in range(options.workers):
            cluster.start_worker()
        cluster.await_workers(options.workers)
        print(cluster.address, flush=True)
        sys.stdin.read()
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
