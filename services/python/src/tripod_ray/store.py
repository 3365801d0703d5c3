"""The object store of this machine, over its unix socket."""

import contextlib
import itertools
import mmap
import os
import queue
import select
import socket
import struct
import sys
import threading
import time
from collections import deque

from . import private, wire
from .context import wait_for
from .errors import StoreError, TaskCancelledError
from .interrupts import Held

_LENGTH = struct.Struct("<I")
_RECEIVE_BYTES = 256 * 1024
_FRAME_MOST = 64 * 1024 * 1024
# A reply passes one descriptor at most; a few replies may come together.
_DESCRIPTOR = struct.Struct("@i")
_PASSED_BYTES = socket.CMSG_LEN(64 * _DESCRIPTOR.size)
# So long after a thread has read by itself the reader leaves the next replies to such threads: each request that one
# waits for is followed by its reading, and what it leaves behind it tells the reader of.
_NEAR_S = 0.05
# How long a writer waits for room in a store that is full for now.
_ROOM_S = 5.0
# What a store answers that ends, or begins anew, before it closes the connection.
_GONE = (wire.CANCELLED, wire.UNAVAILABLE)


class StoreConnection:
    """One connection. Calls can be made from any thread; one thread reads the answers.

    A reply is handed to its asker's function in the reader's thread, which must not block there.
    """

    def __init__(self, path, workerid, direct=False):
        """With `direct` threads that wait for objects read by themselves, which saves them a change of threads."""
        self.direct = direct
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            private.connect(self._socket, path)
        except BaseException:
            self._socket.close()
            raise
        self._writing = threading.Lock()
        self._tags = itertools.count(1)
        self._asked = {}
        # What is to be written: frames, and ids of objects that were let go of.
        self._outgoing = deque()
        self._wake = queue.SimpleQueue()
        self._woken = False
        self._writer = None
        self.lost = None
        self.on_lost = None
        # Whoever holds it reads: the reader, or a thread that waits for a reply.
        self._reading = threading.Lock()
        self._data, self._descriptors = bytearray(), []
        # Of a thread that waits for a reply, and of the reader: two threads cannot use one.
        self._readable, self._any_readable = select.poll(), select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._any_readable.register(self._socket, select.POLLIN)
        self._held = Held()
        # When a thread read by itself last, and what wakes the reader after that.
        self._direct_s = 0.0
        self._look = threading.Event()
        self._reader = threading.Thread(target=self._read, name="tripod-store", daemon=True)
        self._reader.start()
        hello = wire.LocalRequest()
        hello.hello.version = 1
        hello.hello.workerid = workerid
        reply, _ = self.ask(hello)
        self.objstoreid = reply.welcome.objstoreid
        self.inline_bytes_max = reply.welcome.inline_bytes_max
        self.capacity_bytes = reply.welcome.capacity_bytes
        # Where it passes on what this process and the cluster say to each other, if it does.
        self.relay_path = path if reply.welcome.relays else None

    def send(self, requests, answered):
        """Sends requests at once. `answered(place, reply, descriptor)` is called for each; `reply` is None if
        the connection breaks before. Answers with the tags."""
        tags = self._append(requests, answered)
        self.flush()
        return tags

    def _append(self, requests, answered):
        frames, tags = [], []
        for place, request in enumerate(requests):
            request.tag = tag = next(self._tags)
            tags.append(tag)
            self._asked[tag] = (answered, place)
            data = request.SerializeToString()
            frames.append(_LENGTH.pack(len(data)))
            frames.append(data)
        self._outgoing.append(b"".join(frames))
        return tags

    def flush(self):
        """Writes what waits, also the ids of objects that were released: a process may send nothing else for
        long."""
        self._woken = False
        try:
            with self._writing:
                if self.lost is not None:
                    raise OSError(str(self.lost))
                frames = []
                while self._outgoing:
                    waiting = self._outgoing.popleft()
                    frames.append(waiting if type(waiting) is bytes else self._release_frame(waiting))
                if frames:
                    self._socket.sendall(b"".join(frames))
        except OSError as error:
            self._lose(error)
            self._tell_all()

    def _flush_soon(self):
        """Has another thread write, when this one is not in the way: while a worker has the next task at
        hand, results of several are written together, and none waits for a task that takes long."""
        if self._woken:
            return
        self._woken = True
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="tripod-writer", daemon=True)
            self._writer.start()
        self._wake.put(True)

    def _write(self):
        while self._wake.get():
            self.flush()

    def ask(self, request):
        """Sends one request, and waits for the reply and the descriptor that came with it. Raises
        `StoreError`."""
        arrived = threading.Event()
        answers = []

        def answered(_, reply, descriptor):
            answers.append((reply, descriptor))
            arrived.set()

        self.send([request], answered)
        self.await_event(arrived)
        reply, descriptor = answers[0]
        if reply is None:
            raise StoreError(f"the object store of this machine is gone: {self.lost}", gone=True)
        if reply.code != wire.OK:
            if descriptor is not None:
                os.close(descriptor)
            raise _failure(reply)
        return reply, descriptor

    def put(self, objectid, packed, run, answered, before_ready=None, soon=False, told_by_maker=False):
        """Stores an object. `answered(error)` is called with None when it can be read here, perhaps in the
        reader's thread. A large one is written by the calling thread, which waits for room. `before_ready` is
        called after that and before the object becomes readable. With `soon` others may be written with it, a
        few milliseconds later at most. With `told_by_maker` the caller tells the scheduler that it is there."""
        try:
            request = self.prepare(objectid, packed, run, told_by_maker)
        except StoreError as error:
            answered(error)
            return
        if before_ready is not None:
            before_ready()
        self.finish(request, answered, soon)

    def prepare(self, objectid, packed, run, told_by_maker=False):
        """The request that makes an object readable, for `finish` or `abandon`. A large one is written first. Raises
        `StoreError`, and what writing raises."""
        if packed.size_bytes > self.inline_bytes_max:
            return self._write_large(objectid, packed, run, told_by_maker)
        request = wire.LocalRequest()
        request.put.objectid = objectid
        request.put.data = packed.whole()
        request.put.metadata_offset = packed.metadata_offset
        _set_maker(request.put, run, told_by_maker)
        return request

    def finish(self, request, answered, soon=False):
        """Sends it. `answered` and `soon` are those of `put`."""
        self._append([request], lambda _, reply, __: answered(_failure(reply)))
        if soon:
            self._flush_soon()
        else:
            self.flush()

    def abandon(self, request):
        """Does not make the object readable after all."""
        if request.HasField("seal"):
            self._abort(request.seal.objectid)

    def _abort(self, objectid):
        abort = wire.LocalRequest()
        abort.abort.objectid = objectid
        self.send([abort], lambda *_: None)

    def _write_large(self, objectid, packed, run, told_by_maker):
        """Writes a large object, and answers with the request that makes it readable. Raises `StoreError`."""
        descriptor = self._create(objectid, packed.size_bytes)
        try:
            packed.write_to(descriptor)
        except BaseException:
            self._abort(objectid)
            raise
        finally:
            os.close(descriptor)
        seal = wire.LocalRequest()
        seal.seal.objectid = objectid
        seal.seal.metadata_offset = packed.metadata_offset
        _set_maker(seal.seal, run, told_by_maker)
        return seal

    def _create(self, objectid, size_bytes):
        """Memory for an object. While others have to let go of theirs first, it is asked for again."""
        end = time.monotonic() + _ROOM_S
        while True:
            create = wire.LocalRequest()
            create.create.objectid = objectid
            create.create.size_bytes = size_bytes
            try:
                _, descriptor = self.ask(create)
                break
            except StoreError as error:
                full = error.code == wire.RESOURCE_EXHAUSTED and size_bytes <= self.capacity_bytes
                if not full or time.monotonic() >= end:
                    raise
            time.sleep(0.05)
        if descriptor is None:
            raise StoreError("the object store passed no descriptor")
        return descriptor

    def release(self, objectid):
        """Lets go of an object that was got by descriptor. Safe in `__del__`; the store is told with what is
        sent next."""
        self._outgoing.append(objectid)

    def close(self):
        self._wake.put(False)
        self._lose(ConnectionError("closed by this process"))

    def _release_frame(self, objectid):
        request = wire.LocalRequest(tag=next(self._tags))
        request.release.objectid = objectid
        data = request.SerializeToString()
        return _LENGTH.pack(len(data)) + data

    def await_event(self, event):
        """Waits for an event that a reply sets."""
        if self.direct:
            self.read_until(event.is_set, None)
        event.wait()

    def read_until(self, done, end):
        """Reads in the calling thread, unless another one does, until `done`, or until `end` if it is given."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            with self._held:
                while not done() and self.lost is None:
                    left = None if end is None else end - time.monotonic()
                    if left is not None and left <= 0:
                        break
                    with self._held.allowed():
                        self._readable.poll(None if left is None else left * 1000 + 0.5)
                    self._receive(socket.MSG_DONTWAIT)
        finally:
            self._direct_s = time.monotonic()
            self._reading.release()
            if self._asked:
                # Another thread waits, and nobody reads.
                self._look.set()

    def _read(self):
        while self.lost is None:
            if not self.direct:
                self._receive()
                continue
            while self._reading.locked() or time.monotonic() - self._direct_s < _NEAR_S:
                if self._look.wait(_NEAR_S):
                    break
            self._look.clear()
            self._any_readable.poll()
            with self._reading:
                self._receive(socket.MSG_DONTWAIT)
        with self._reading:
            # Not before: another file could get the number that is waited for.
            self._socket.close()

    # What follows runs in the thread that reads.

    def _receive(self, flags=0):
        """Takes what has come, if something has."""
        try:
            # `socket.recv_fds` takes flags, and ignores them.
            piece, passed, _, _ = self._socket.recvmsg(_RECEIVE_BYTES, _PASSED_BYTES, flags)
            for level, kind, data in passed:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    whole = len(data) - len(data) % _DESCRIPTOR.size
                    self._descriptors.extend(number for (number,) in _DESCRIPTOR.iter_unpack(data[:whole]))
            if not piece:
                raise ConnectionError("the store closed the connection")
            self._take(piece)
        except BlockingIOError:
            pass
        except Exception as error:  # Also a reply that cannot be decoded, or a descriptor that did not come.
            self._lose(error)
            descriptors, self._descriptors = self._descriptors, []
            for descriptor in descriptors:
                os.close(descriptor)

    def _take(self, piece):
        data, at = self._data, 0
        data += piece
        while len(data) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            if length > _FRAME_MOST:
                raise ConnectionError(f"a frame of {length} bytes")
            if len(data) - at - _LENGTH.size < length:
                break
            start = at + _LENGTH.size
            reply = wire.LocalReply.FromString(bytes(data[start : start + length]))
            at = start + length
            passes = reply.HasField("object") and reply.object.descriptor
            self._tell(reply.tag, reply, self._descriptors.pop(0) if passes else None)
        del data[:at]

    def _tell(self, tag, reply, descriptor):
        asked = self._asked.pop(tag, None)
        if asked is not None:
            asked[0](asked[1], reply, descriptor)
        elif descriptor is not None:
            os.close(descriptor)

    def _lose(self, error):
        # First of all: whoever writes to a store that reads nothing lets go of the lock only then.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._writing:
            first, self.lost = self.lost is None, self.lost or error
        if not first:
            return
        # The process before others: what those who wait make of it must not be taken for faults of their own.
        if self.on_lost is not None:
            self.on_lost(error)
        self._tell_all()

    def _tell_all(self):
        while self._asked:
            try:
                tag = next(iter(self._asked))
            except (RuntimeError, StopIteration):
                continue
            self._tell(tag, None, None)


class Gets:
    """Objects that are asked of the store together."""

    def __init__(self, store, objectids):
        self._store = store
        self._objectids = objectids
        self._changed = threading.Condition()
        self.replies = [None] * len(objectids)
        self._left = len(objectids)
        self._lost = False
        self._over = False
        requests = []
        for objectid in objectids:
            request = wire.LocalRequest()
            request.get.objectid = objectid
            requests.append(request)
        self._tags = store.send(requests, self._answered)

    def wait(self, timeout_s):
        """Whether all of them came within a time (seconds, None: for ever). Raises `StoreError` if the store
        went, and `TaskCancelledError` in a task that is cancelled."""
        if self._left and self._store.direct:
            end = None if timeout_s is None else time.monotonic() + timeout_s
            self._store.read_until(lambda: not self._left or self._lost, end)
            timeout_s = None if end is None else max(0.0, end - time.monotonic())
        if self._left:
            try:
                with self._changed:
                    wait_for(self._changed, lambda: not self._left or self._lost, timeout_s)
            except TaskCancelledError:
                self.cancel()
                raise
        if self._lost:
            raise StoreError(f"the object store of this machine is gone: {self._store.lost}", gone=True)
        return not self._left

    def codes(self):
        """How the store answered those that came."""
        return [reply[0].code for reply in self.replies if reply is not None]

    def missing(self):
        """The ids of those that did not come yet."""
        return [objectid for objectid, reply in zip(self._objectids, self.replies) if reply is None]

    def cancel(self):
        """Gives up what did not come; what comes nevertheless is let go of."""
        with self._changed:
            self._over = True
            waiting = [tag for tag, reply in zip(self._tags, self.replies) if reply is None]
        requests = []
        for tag in waiting:
            request = wire.LocalRequest()
            request.cancel.get_tag = tag
            requests.append(request)
        self._store.send(requests, lambda *_: None)
        self.close()

    def close(self):
        """Lets go of every object whose mapping was not taken."""
        with self._changed:
            replies, self.replies = self.replies, [None] * len(self.replies)
        for place, reply in enumerate(replies):
            if reply is not None and reply[1] is not None:
                os.close(reply[1])
                self._store.release(self._objectids[place])

    def take(self, place, keep):
        """The memory of an object and its metadata offset. `keep` lives as long as a mapping of it does.
        Raises
        `StoreError` if the store answered with an error."""
        reply, descriptor = self.replies[place]
        error = _failure(reply)
        if error is not None:
            raise error
        if descriptor is None:
            return reply.object.data, reply.object.metadata_offset
        self.replies[place] = (reply, None)
        mapping = Mapping.of(descriptor, reply.object.size_bytes)
        mapping.store, mapping.objectid, mapping.keep = self._store, self._objectids[place], keep
        return memoryview(mapping), reply.object.metadata_offset

    def _answered(self, place, reply, descriptor):
        with self._changed:
            if reply is None:
                self._lost = True
                self._changed.notify_all()
                return
            if not self._over:
                self.replies[place] = (reply, descriptor)
                self._left -= 1
                if not self._left:
                    self._changed.notify_all()
                return
        if descriptor is not None:
            os.close(descriptor)
            self._store.release(self._objectids[place])


class Mapping(mmap.mmap):
    """An object's memory, read-only. Values made of it keep it alive; when the last of them is collected, the
    store is told, and the handle that it keeps ends."""

    store = None
    objectid = None
    keep = None

    @classmethod
    def of(cls, descriptor, size_bytes):
        """Takes the descriptor over."""
        try:
            # A mapping needs no descriptor; older Pythons keep one for each.
            more = {"trackfd": False} if sys.version_info >= (3, 13) else {}
            return cls(descriptor, size_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, **more)
        finally:
            os.close(descriptor)

    def __del__(self):
        if self.store is not None:
            self.store.release(self.objectid)


def _failure(reply):
    if reply is None:
        return StoreError("the object store of this machine is gone", gone=True)
    if reply.code != wire.OK:
        text = reply.text or f"the object store refused with code {reply.code}"
        return StoreError(text, reply.code, gone=reply.code in _GONE)
    return None


def _set_maker(message, run, told_by_maker):
    if run is not None:
        message.run.operationid, message.run.attempt = run
    if told_by_maker:
        message.told_by_maker = True
