"""A worker or driver towards the cluster: it registers, stays alive, and puts, gets and waits."""

import contextlib
import logging
import os
import resource
import socket
import threading
import time

from . import again, calls, layout, level, link, wire
from .context import current, during, next_child, sheltered
from .errors import (
    ExpiredError,
    GetTimeoutError,
    RefusedError,
    StoreError,
    TaskError,
    TripodError,
    UnreachableError,
)
from .needs import NONE
from .outbox import Outbox
from .progress import Waiting, count, late, names
from .reference import ObjectRef
from .store import Gets, StoreConnection

# A result that this machine's store gets by itself, since its worker is here too, needs no word to the
# scheduler. Later than this it is asked for: it may be elsewhere, or be lost.
_REQUEST_AFTER_S = 0.003
_WAIT_SLICE_S = 5.0
_TTL_FIRST_MS = 3000
# No worker and no object has it: what is asked of it has no effect.
_NOBODY = 2**64 - 1

_log = logging.getLogger("tripod_ray")


class Process:
    """One registration with the scheduler. It ends with `close`, or when `lost` says why."""

    def __init__(self, endpoints, *, driver, node_ip=None, store_address="", job=None, slots=None, offers=(), credentials=None):
        """Registers, and connects to the object store of this machine. `offers` is metadata by which a worker says
        what it has, `credentials` how it proves who it is. Raises `TripodError`."""
        _raise_descriptor_limit()
        self.link = link.Link(endpoints, job, credentials)
        self.outbox = Outbox(self.link)
        self.outbox.direct = driver
        self.driver = driver
        self.on_order = None
        self.on_lost = None
        # Attempts that the worker has, for its heartbeats.
        self.running = lambda: ()
        self.last_answer_s = time.monotonic()
        self.ttl_ms = _TTL_FIRST_MS
        self._stopped = threading.Event()
        # Whether the cluster's level is known to be that of `level.TASKS`; levels never fall.
        self._knows_tasks = False
        # Keys of functions that this process has exported.
        self.exported = set()
        try:
            node_ip = node_ip or os.environ.get("TRIPOD_NODE_IP") or _own_ip(self.link.endpoints[0])
            self._register(node_ip, store_address, slots, offers)
            self.store = self._connect_store()
            if self.store.relay_path is not None:
                self.link.relay = (self.store.relay_path, self.workerid)
        except BaseException:
            self.outbox.close(0.1)
            self.link.close()
            raise
        self.outbox.on_lost = self._ended
        self.store.on_lost = self._store_lost
        if self.store.lost is not None:
            # It went before anybody was to be told.
            self._store_lost(self.store.lost)
        self._heart = threading.Thread(target=self._beat, name="tripod-heartbeat", daemon=True)
        self._heart.start()

    @property
    def lost(self):
        """Why this registration is over; None while it is not."""
        return self.outbox.lost

    def close(self):
        """Sends what is left, and ends all connections."""
        self._stopped.set()
        self.outbox.close()
        self.store.on_lost = None
        self.store.close()
        self.link.close()

    def lose(self, error):
        """The registration is over: whoever waits is told."""
        self.outbox.lose(error)

    def note(self, error):
        """Takes notice of what the store answered. One that is gone is given up together with its workers:
        the tasks that it failed are run again elsewhere, so nothing is reported of them any more."""
        if error.gone:
            self.lose(error)

    def submit(self, function, arguments, results, options, needs=NONE):
        """Submits a task; its handles get their ids later. `function` is the encoded name."""
        with sheltered():
            self._check()
            if needs != NONE:
                self._require(needs.named())
            refs = [ObjectRef(self.outbox) for _ in range(results)]
            self.outbox.post(calls.Submit(function, arguments, refs, next_child(), options, needs))
            return refs

    def cancel(self, ref, grace_ms):
        """The task of which this is a result is not to run any more. Whether it was not over before."""
        with sheltered():
            self._check()
            self._require("cancel")
            return self.outbox.ask(calls.Cancel(ref, grace_ms))

    def put(self, value):
        """Stores a value, and answers with its handle."""
        return self.put_packed(layout.pack(value))

    def put_packed(self, packed):
        with sheltered():
            self._check()
            task = current()
            objectid, present = self.outbox.ask(calls.Put(next_child()))
            if not present:
                last = self.contain(objectid, packed)
                present = self._store(objectid, packed, task.run if task else None, last)
            ref = ObjectRef(self.outbox, objectid)
            if present and task is not None:
                again.compare(self, task, ref, packed)
            return ref

    def contain(self, objectid, packed):
        """Tells the scheduler which ids are inside an object that is about to be stored."""
        ids = [ref.id for ref in packed.refs]
        if not ids:
            return None
        self.outbox.post(calls.Increment(ids))
        contain = calls.Contain(objectid, ids)
        self.outbox.post(contain)
        return contain

    def get(self, refs, timeout_s=None):
        """The values of handles, in their order. Raises the first failure among them, or
        `GetTimeoutError`."""
        with sheltered():
            return self._get(refs, timeout_s)

    def _get(self, refs, timeout_s):
        self._check()
        end = None if timeout_s is None else time.monotonic() + timeout_s
        waiting = Waiting("get")
        if not self._await_ids(refs, end, waiting):
            unknown = sum(ref._id is None for ref in refs)
            raise GetTimeoutError(
                f"the scheduler did not accept the tasks of {unknown} of {count(len(refs))} within "
                f"{timeout_s} s; next: `tripod ray status`"
            )
        gets = Gets(self.store, [ref._id for ref in refs])
        try:
            self._await_objects(gets, end, timeout_s, waiting)
            return [self.value(gets, place, ref) for place, ref in enumerate(refs)]
        except StoreError as error:
            self.note(error)
            if self.lost is not None:
                raise self.lost from None
            raise
        finally:
            gets.close()

    def value(self, gets, place, ref):
        """The value of an object that came. `ref` is kept alive by values that lie in shared memory."""
        memory, metadata_offset = gets.take(place, ref)
        return layout.unpack(memory, metadata_offset, self.handle)

    def handle(self, objectid):
        """A handle of an id that was found in an object; what it was found in keeps it alive until it is
        counted."""
        self.outbox.post(calls.Increment([objectid]))
        return ObjectRef(self.outbox, objectid)

    def adopt(self, objectid):
        """A handle of an id for which this process owns a reference already."""
        return ObjectRef(self.outbox, objectid)

    def wait(self, refs, wanted, timeout_s):
        """The places of the first `wanted` handles, in their order, whose objects can be had or never will."""
        with sheltered():
            return self._wait(refs, wanted, timeout_s)

    def _wait(self, refs, wanted, timeout_s):
        self._check()
        end = None if timeout_s is None else time.monotonic() + timeout_s
        waiting = Waiting("wait")
        if not self._await_ids(refs, end, waiting):
            return []
        request = wire.RayWaitRequest(objectids=[ref._id for ref in refs], at_least=wanted)
        with self.outbox.pausing() if timeout_s != 0 else contextlib.nullcontext():
            while True:
                left = _WAIT_SLICE_S if end is None else min(_WAIT_SLICE_S, max(0.0, end - time.monotonic()))
                request.timeout_ms = int(left * 1000)
                data, attempt_s = request.SerializeToString(), left + 5.0
                if timeout_s == 0:
                    answer = self.link.call(wire.WAIT, data, attempt_s=attempt_s)
                else:
                    answer = during(lambda: self.link.call(wire.WAIT, data, attempt_s=attempt_s))
                reply = wire.RayWaitResponse.FromString(answer)
                places = [waited.place for waited in reply.objects]
                if len(places) >= wanted or (end is not None and time.monotonic() >= end):
                    return places[:wanted]
                self._check()
                waiting.say(lambda: _decided(refs, places, wanted))

    def read(self, path, request, reply, trailers=None):
        """A call that changes nothing."""
        return reply.FromString(self.link.call(path, request.SerializeToString(), trailers=trailers))

    def _check(self):
        if self.outbox.lost is not None:
            raise self.outbox.lost

    def takes_descriptions(self):
        """Whether the cluster can be told what objects are."""
        if not self._knows_tasks:
            with contextlib.suppress(RefusedError):
                self._ask_level()
        return self._knows_tasks

    def _require(self, what):
        """Raises `RefusedError` if the cluster's level is below that of `level.TASKS`."""
        if not self._knows_tasks:
            try:
                self._ask_level()
            except RefusedError as error:
                raise level.too_low(what, error) from None

    def _ask_level(self):
        """The same. It is asked before anything relies on it, since a node of an earlier build leaves out what it does
        not know, and says nothing."""
        request = wire.RayBatchRequest()
        asked = request.calls.add().cancel
        asked.workerid = asked.objectid = _NOBODY
        try:
            self.link.call(wire.BATCH, request.SerializeToString())
        except RefusedError as error:
            raise level.told(error) from None
        self._knows_tasks = True

    def _await_ids(self, refs, end, waiting):
        """Whether the scheduler accepts the tasks of all of them by a time."""
        while not self.outbox.await_ids(refs, waiting.left(end)):
            if end is not None and time.monotonic() >= end:
                return False
            unknown = sum(ref._id is None for ref in refs)
            waiting.say(lambda: f"the scheduler did not accept the tasks of {unknown} of {count(len(refs))} yet")
        return True

    def _await_objects(self, gets, end, timeout_s, waiting):
        left = None if end is None else end - time.monotonic()
        if gets.wait(_REQUEST_AFTER_S if left is None else max(0.0, min(_REQUEST_AFTER_S, left))):
            return
        for objectid in gets.missing():
            self.outbox.post(calls.Request(objectid))
        with self.outbox.pausing():
            while not gets.wait(waiting.left(end)):
                missing, asked = gets.missing(), len(gets.replies)
                if end is not None and time.monotonic() >= end:
                    gets.cancel()
                    text = late(missing, asked, f"within {timeout_s} s")
                    raise GetTimeoutError(f"{text}; next: `tripod ray tasks`")
                waiting.say(lambda: late(missing, asked, "yet"))

    def _store(self, objectid, packed, run, last):
        """Writes a value; it is readable only after the call `last`, if there is one, was answered. Answers
        whether an earlier attempt of the task had written it here."""
        stored, failures = threading.Event(), []

        def counted():
            if last is not None:
                self.outbox.finish(last)

        def answered(error):
            failures.append(error)
            stored.set()

        try:
            self.store.put(objectid, packed, run, answered, before_ready=counted)
        except StoreError as error:
            answered(error)
        self.store.await_event(stored)
        error = failures[0]
        if error is not None and error.code != wire.ALREADY_EXISTS:
            self.note(error)
            # What was never made would be waited for, and kept, for ever.
            counted()
            failed = layout.pack_error(TaskError("put", None, str(error)))
            self.store.put(objectid, failed, run, lambda _: self.outbox.drop(objectid))
            raise error
        return error is not None

    def _register(self, node_ip, store_address, slots, offers):
        request = wire.RegisterWorkerRequest(
            node_ip_address=node_ip, objstore_address=store_address, is_driver=self.driver
        )
        extra = (*offers, *(() if slots is None else ((wire.SLOTS, str(slots)),)))
        # A worker has time; whoever begins a program wants to know why it does not begin.
        patience_s = link.PATIENCE_S if self.driver else None
        lacks = "does not count yet what workers have" if offers else "has no schedulers yet"

        def register():
            if offers and not self._knows_tasks:
                self._ask_level()
            return self.outbox.register(request, extra)

        reply = level.awaited(register, patience_s, lacks)
        self.workerid, self.objstoreid = reply.workerid, reply.objstoreid
        self.address, self.store_address = reply.worker_address, reply.objstore_address

    def _connect_store(self):
        data = link.ask(self.store_address, wire.STORE_INFO, wire.ObjStoreInfoRequest().SerializeToString())
        info = wire.ObjStoreInfoReply.FromString(data)
        if not info.local_socket:
            raise StoreError(f"the object store at {self.store_address} serves no local socket")
        try:
            store = StoreConnection(info.local_socket, self.workerid, direct=self.driver)
        except OSError as error:
            raise StoreError(
                f"cannot connect to {info.local_socket}: {error}; is it on this machine?"
            ) from None
        if store.objstoreid != self.objstoreid:
            store.close()
            raise StoreError(f"{info.local_socket} is store {store.objstoreid}, not {self.objstoreid}")
        return store

    def _ended(self):
        self._stopped.set()
        self.store.close()
        if self.on_lost is not None:
            self.on_lost()

    def _store_lost(self, error):
        self.lose(StoreError(f"the object store of this machine is gone: {error}", gone=True))

    def _beat(self):
        kind = wire.HeartbeatRequest.KIND_DRIVER if self.driver else wire.HeartbeatRequest.KIND_WORKER
        while not self._stopped.wait(self.ttl_ms / 3000):
            self.store.flush()
            request = wire.HeartbeatRequest(kind=kind, id=self.workerid)
            for operationid, attempt in self.running():
                request.running.add(operationid=operationid, attempt=attempt)
            try:
                data = self.link.call(
                    wire.HEARTBEAT, request.SerializeToString(), patience_s=self.ttl_ms / 1000, attempt_s=2.0
                )
            except RefusedError as error:
                if error.reason == "expired" or error.code in (wire.FAILED_PRECONDITION, wire.NOT_FOUND):
                    return self.lose(ExpiredError(str(error)))
                continue
            except UnreachableError:
                continue
            reply = wire.HeartbeatResponse.FromString(data)
            self.last_answer_s = time.monotonic()
            self.ttl_ms = reply.ttl_ms or self.ttl_ms
            if reply.order == wire.HeartbeatResponse.ORDER_REREGISTER:
                return self.lose(
                    ExpiredError("the cluster gave this process up, since it was silent for too long")
                )
            if reply.order == wire.HeartbeatResponse.ORDER_DIE and self.on_order is not None:
                self.on_order()


def _decided(refs, places, wanted):
    """How many of the objects that are waited for can be had, or never will, and which cannot yet."""
    there = set(places)
    missing = [ref._id for place, ref in enumerate(refs) if place not in there]
    return f"{len(there)} of {count(len(refs))} can be had, and {wanted} are wanted; not yet: {names(missing)}"


def _own_ip(endpoint):
    """The address by which this machine reaches a node; nothing is sent."""
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host.strip("[]"), int(port)))
            return probe.getsockname()[0]
    except (OSError, ValueError) as error:
        raise TripodError(
            f"cannot tell this machine's address towards {endpoint}: {error}; give node_ip"
        ) from None


def _raise_descriptor_limit():
    """Each large object that is in use may keep a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
