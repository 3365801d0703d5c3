"""An object store for tests: the local protocol over a unix socket, objects in this process's memory."""

import os
import queue
import socket
import struct
import threading

import grpc

from tripod_ray import wire

_LENGTH = struct.Struct("<I")
INLINE_BYTES_MAX = 64 * 1024


class FakeStore:
    """Holds objects as descriptors or bytes, and answers any number of connections."""

    def __init__(self, folder, objstoreid, ready, capacity_bytes=1 << 30, relays=True):
        """`ready(objectid, objstoreid)` is called, with nothing locked, when an object is complete."""
        self.relays = relays
        # Connections by which workers take orders, by their ids.
        self.followers = {}
        self.objstoreid = objstoreid
        self.path = os.path.join(folder, f"store{objstoreid}")
        self.capacity_bytes = capacity_bytes
        self.objects = {}
        self.aliases = {}
        self.released = 0
        self.pinned = 0
        self.aborted = 0
        # Objects that cannot come here, with the code that gets of them are answered.
        self.refused = {}
        # Objects of which gets are not answered yet, though they are here.
        self.withheld = set()
        # Cleared while nothing is read from connections that were greeted.
        self._reads = threading.Event()
        self._reads.set()
        self._ready = ready
        self._lock = threading.RLock()
        self._waiting = {}
        self._connections = set()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def freeze(self):
        """From now on nothing is read from connections that are greeted, until the event that is answered is set."""
        self._reads.clear()
        return self._reads

    def waits_for(self, objectid):
        """Whether a process waits for it."""
        with self._lock:
            return bool(self._waiting.get(objectid))

    def begin_anew(self):
        """Tells whoever waits that this store is another one now, before it closes any connection."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for answer in (answer for answers in waiting.values() for answer in answers):
            answer((wire.LocalReply(code=wire.CANCELLED, text="the store begins anew"), None))

    def insert(self, objectid, metadata_offset, data, told_by_maker=False):
        """A complete object, from a process or from another store."""
        with self._lock:
            self.objects[objectid] = (metadata_offset, data)
            waiting = self._waiting.pop(objectid, [])
        for answer in waiting:
            answer(self._object(objectid))
        if not told_by_maker:
            self._ready(objectid, self.objstoreid)

    def bytes_of(self, objectid):
        metadata_offset, data = self.objects[objectid]
        if isinstance(data, int):
            data = os.pread(data, os.fstat(data).st_size, 0)
        return metadata_offset, data

    def notify_alias(self, alias, canonical):
        with self._lock:
            self.aliases[alias] = canonical
            waiting = self._waiting.pop(alias, [])
        for answer in waiting:
            answer(self._object(alias))

    def deallocate(self, objectid):
        with self._lock:
            self.objects.pop(objectid, None)

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        writing, created, gets = threading.Lock(), {}, {}

        def send(reply, descriptor=None):
            data = reply.SerializeToString()
            frame = _LENGTH.pack(len(data)) + data
            try:
                with writing:
                    if descriptor is None:
                        connection.sendall(frame)
                    else:
                        socket.send_fds(connection, [frame], [descriptor])
            except OSError:
                pass

        stream = connection.makefile("rb")
        try:
            while head := stream.read(_LENGTH.size):
                length = _LENGTH.unpack(head)[0]
                data = stream.read(length)
                if len(data) < length:
                    return
                request = wire.LocalRequest.FromString(data)
                ask = request.WhichOneof("ask")
                if ask == "batches":
                    return _relay(request.batches, stream, send)
                if ask == "hello":
                    workerid = request.hello.workerid
                elif ask == "orders":
                    send(wire.LocalReply(tag=request.tag))
                    self.followers[workerid] = Follower(connection, stream)
                    # Whoever tells it something reads the answer.
                    connection, stream = None, None
                    return
                getattr(self, "_" + ask)(request, send, created, gets)
                self._reads.wait()
        except OSError:
            pass
        finally:
            if connection is not None:
                connection.close()

    def _hello(self, request, send, *_):
        reply = wire.LocalReply(tag=request.tag)
        reply.welcome.objstoreid = self.objstoreid
        reply.welcome.inline_bytes_max = INLINE_BYTES_MAX
        reply.welcome.capacity_bytes = self.capacity_bytes
        reply.welcome.relays = self.relays
        send(reply)

    def _put(self, request, send, *_):
        if request.put.objectid in self.objects:
            return send(wire.LocalReply(tag=request.tag, code=wire.ALREADY_EXISTS))
        if len(request.put.data) > INLINE_BYTES_MAX:
            return send(wire.LocalReply(tag=request.tag, code=wire.INVALID_ARGUMENT))
        self.insert(
            request.put.objectid, request.put.metadata_offset, request.put.data, request.put.told_by_maker
        )
        # Who is answered may tell the scheduler at once that it is here.
        send(wire.LocalReply(tag=request.tag))

    def _create(self, request, send, created, _):
        size = request.create.size_bytes
        if size > self.capacity_bytes:
            text = f"{size} bytes are more than the store's {self.capacity_bytes}"
            return send(wire.LocalReply(tag=request.tag, code=wire.RESOURCE_EXHAUSTED, text=text))
        descriptor = os.memfd_create("fake")
        os.ftruncate(descriptor, size)
        created[request.create.objectid] = descriptor
        reply = wire.LocalReply(tag=request.tag)
        reply.object.size_bytes = size
        reply.object.descriptor = True
        send(reply, descriptor)

    def _seal(self, request, send, created, _):
        descriptor = created.pop(request.seal.objectid)
        self.insert(
            request.seal.objectid, request.seal.metadata_offset, descriptor, request.seal.told_by_maker
        )
        send(wire.LocalReply(tag=request.tag))

    def _abort(self, request, send, created, _):
        descriptor = created.pop(request.abort.objectid, None)
        if descriptor is not None:
            os.close(descriptor)
            self.aborted += 1
        send(wire.LocalReply(tag=request.tag))
        send(wire.LocalReply(tag=request.tag))

    def _get(self, request, send, _, gets):
        tag, objectid = request.tag, request.get.objectid

        def answer(found):
            if gets.pop(tag, None) is None:
                return
            reply, descriptor = found
            reply.tag = tag
            if descriptor is not None:
                self.pinned += 1
            send(reply, descriptor)

        if objectid in self.refused:
            send(wire.LocalReply(tag=tag, code=self.refused[objectid], text=f"object {objectid} cannot come"))
            return
        with self._lock:
            gets[tag] = answer
            if objectid in self.withheld or self.aliases.get(objectid, objectid) not in self.objects:
                self._waiting.setdefault(objectid, []).append(answer)
                return
        answer(self._object(objectid))

    def _cancel(self, request, send, _, gets):
        if gets.pop(request.cancel.get_tag, None) is not None:
            send(wire.LocalReply(tag=request.cancel.get_tag, code=wire.CANCELLED))
        send(wire.LocalReply(tag=request.tag))

    def _release(self, request, send, *_):
        with self._lock:
            self.released += 1
        send(wire.LocalReply(tag=request.tag))

    def _object(self, objectid):
        metadata_offset, data = self.objects[self.aliases.get(objectid, objectid)]
        reply = wire.LocalReply()
        reply.object.metadata_offset = metadata_offset
        if isinstance(data, int):
            reply.object.size_bytes = os.fstat(data).st_size
            reply.object.descriptor = True
            return reply, data
        reply.object.size_bytes = len(data)
        reply.object.data = data
        return reply, None


class Follower:
    """A worker that takes orders by the store."""

    def __init__(self, connection, stream):
        self._connection, self._stream = connection, stream

    def tell(self, request):
        data = request.SerializeToString()
        self._connection.sendall(_LENGTH.pack(len(data)) + data)
        head = self._stream.read(_LENGTH.size)
        return wire.RayTellResponse.FromString(self._stream.read(_LENGTH.unpack(head)[0]))

    def close(self):
        self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def _relay(asked, stream, send):
    """Passes batches on to a node, until either side ends."""
    requests = queue.SimpleQueue()
    with grpc.insecure_channel(asked.endpoint) as channel:
        call = channel.stream_stream(wire.LINE)
        answers = call(iter(requests.get, None), metadata=tuple(asked.metadata.items()))
        try:
            while head := stream.read(_LENGTH.size):
                requests.put(stream.read(_LENGTH.unpack(head)[0]))
                send(wire.LocalRelayed(message=next(answers)))
        except StopIteration:
            send(wire.LocalRelayed(code=wire.UNAVAILABLE, text="the node ended the stream"))
        except grpc.RpcError as error:
            relayed = wire.LocalRelayed(code=error.code().value[0], text=error.details())
            relayed.metadata.update(error.trailing_metadata() or ())
            send(relayed)
        finally:
            requests.put(None)
