"""Calls of the service Worker, each at the address of one worker. Data never passes the scheduler."""

import threading

import grpc

from tripod_ray.link import ANSWER_BYTES_MAX

from . import wire

# Connections that are kept; beyond, the one that was used longest ago is closed.
CHANNELS_MAX = 256
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    # A worker that is frozen or cut off is noticed while it says nothing.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
    ("grpc.max_send_message_length", -1),
]


class WorkerError(Exception):
    """A worker did not do what it was asked. `code` is a number of gRPC."""

    def __init__(self, address, code, text):
        super().__init__(f"{address}: {text}")
        self.address = address
        self.code = code
        self.text = text


class Workers:
    """Channels to workers."""

    def __init__(self):
        self._lock = threading.Lock()
        self._channels = {}
        self._retired = []

    def stream(self, address, name, request, timeout_s):
        """The answers to one request, one after the other. Raises `WorkerError`."""
        path, _, answer = wire.WORKER[name]
        call = self._channel(address).unary_stream(
            path, request_serializer=_bytes_of, response_deserializer=answer.FromString
        )
        try:
            yield from call(request, timeout=timeout_s)
        except (grpc.RpcError, ValueError) as error:
            raise _worker_error(address, error) from None

    def put(self, address, name, requests, timeout_s):
        """The answer to a stream of requests. Raises `WorkerError`."""
        path, _, answer = wire.WORKER[name]
        call = self._channel(address).stream_unary(
            path, request_serializer=_bytes_of, response_deserializer=answer.FromString
        )
        try:
            return call(iter(requests), timeout=timeout_s)
        except (grpc.RpcError, ValueError) as error:
            raise _worker_error(address, error) from None

    def ask(self, address, name, request, timeout_s):
        """The answer to one request. Raises `WorkerError`."""
        path, _, answer = wire.WORKER[name]
        call = self._channel(address).unary_unary(
            path, request_serializer=_bytes_of, response_deserializer=answer.FromString
        )
        try:
            return call(request, timeout=timeout_s)
        except (grpc.RpcError, ValueError) as error:
            raise _worker_error(address, error) from None

    def close(self):
        with self._lock:
            channels, self._channels = list(self._channels.values()) + self._retired, {}
            self._retired = []
        for channel in channels:
            channel.close()

    def _channel(self, address):
        with self._lock:
            channel = self._channels.pop(address, None)
            if channel is None:
                channel = grpc.insecure_channel(address, options=_OPTIONS)
            # The last one is the one that was used last.
            self._channels[address] = channel
            if len(self._channels) > CHANNELS_MAX:
                # Others may be reading from it; it is closed with the rest, or when a second one has retired.
                self._retired.append(self._channels.pop(next(iter(self._channels))))
                if len(self._retired) > CHANNELS_MAX:
                    self._retired.pop(0).close()
            return channel


def _bytes_of(message):
    return message.SerializeToString()


def _worker_error(address, error):
    if isinstance(error, grpc.RpcError):
        return WorkerError(address, error.code().value[0], error.details() or error.code().name)
    # A channel that was closed meanwhile.
    return WorkerError(address, grpc.StatusCode.UNAVAILABLE.value[0], str(error))
