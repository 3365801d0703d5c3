"""Connections to the object store of this machine that it relays: to a node, or from one."""

import socket
import struct
import threading

import grpc

from . import private, wire
from .errors import StoreError, TripodError

_LENGTH = struct.Struct("<I")
_RECEIVE_BYTES = 64 * 1024
# A node without a leader holds calls for 10 s before it says so.
_ANSWER_S = 15.0
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class RelayEnded(TripodError):
    """The store ended a connection, or cannot be reached."""


class RelayedError(grpc.RpcError):
    """The status of a call that the store made for this process."""

    def __init__(self, relayed):
        super().__init__(relayed.text)
        self._relayed = relayed

    def code(self):
        return _CODES.get(self._relayed.code, grpc.StatusCode.UNKNOWN)

    def details(self):
        return self._relayed.text

    def trailing_metadata(self):
        return tuple(self._relayed.metadata.items())


class Relay:
    """One connection, greeted. What it raises is `RelayEnded`."""

    def __init__(self, path, workerid):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._data = bytearray()
        try:
            private.connect(self._socket, path)
            hello = wire.LocalRequest(tag=1)
            hello.hello.version = 1
            hello.hello.workerid = workerid
            self.send(hello.SerializeToString())
            self._check(self.receive())
        except BaseException as error:
            self._socket.close()
            if isinstance(error, (OSError, StoreError)):
                raise RelayEnded(f"{path}: {error}") from None
            raise

    def request(self, request):
        """Says what the connection is to be."""
        request.tag = 2
        self.send(request.SerializeToString())

    def limit_waits(self, seconds):
        """How long `receive` waits. The system does it, which costs nothing each time."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), 0))

    def await_reply(self):
        self._check(self.receive())

    def send(self, message):
        try:
            self._socket.sendall(_LENGTH.pack(len(message)) + message)
        except OSError as error:
            raise RelayEnded(f"the object store of this machine: {error}") from None

    def receive(self):
        """The next message."""
        data = self._data
        while True:
            if len(data) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
                if len(data) >= end:
                    message = bytes(data[_LENGTH.size : end])
                    del data[:end]
                    return message
            try:
                piece = self._socket.recv(_RECEIVE_BYTES)
            except OSError as error:
                raise RelayEnded(f"the object store of this machine: {error}") from None
            if not piece:
                raise RelayEnded("the object store of this machine closed the connection")
            data += piece

    def close(self):
        """Also wakes a thread that waits here."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    @staticmethod
    def _check(message):
        reply = wire.LocalReply.FromString(message)
        if reply.code != wire.OK:
            raise RelayEnded(f"the object store of this machine refused: {reply.text}")


class RelayedBatchStream:
    """As `batch_stream.BatchStream`, over the store's connection to the node. Sending and waiting happen in the calling
    thread, so a batch costs no change of threads in this process."""

    def __init__(self, path, workerid, endpoint, metadata):
        self._relay = Relay(path, workerid)
        request = wire.LocalRequest()
        request.batches.endpoint = endpoint
        request.batches.metadata.update(metadata)
        try:
            self._relay.request(request)
            # A store that is frozen relays nothing, and says nothing.
            self._relay.limit_waits(_ANSWER_S)
        except BaseException:
            self._relay.close()
            raise

    def ask(self, data):
        """As `BatchStream.ask`. Raises `RelayedError`, or `RelayEnded`."""
        self._relay.send(data)
        relayed = wire.LocalRelayed.FromString(self._relay.receive())
        if relayed.code != wire.OK:
            raise RelayedError(relayed)
        return wire.RayLineResponse.FromString(relayed.message)

    def close(self):
        self._relay.close()


class RelayedOrders:
    """Takes the orders of a worker from the store, in a thread of its own, until it is closed or the store
    ends."""

    def __init__(self, path, workerid, told):
        """`told(request)` answers a `RayTellRequest`. Raises `RelayEnded`."""
        self._relay = Relay(path, workerid)
        self._told = told
        try:
            request = wire.LocalRequest()
            request.orders.SetInParent()
            self._relay.request(request)
            self._relay.await_reply()
        except BaseException:
            self._relay.close()
            raise
        self.open = True
        threading.Thread(target=self._take, name="tripod-orders", daemon=True).start()

    def close(self):
        self._relay.close()

    def _take(self):
        try:
            while True:
                request = wire.RayTellRequest.FromString(self._relay.receive())
                self._relay.send(self._told(request).SerializeToString())
        except RelayEnded:
            pass
        finally:
            self.open = False
            self._relay.close()
