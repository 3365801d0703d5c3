"""Calls to the cluster: which node, and again when one does not answer."""

import random
import threading
import time

import grpc

from . import wire
from .errors import RefusedError, UnreachableError

# A node without a leader holds calls for 10 s before it says so; a frozen node says nothing.
ATTEMPT_S = 12.0
# Longer than any election, and than a restart of a node.
PATIENCE_S = 60.0
_PAUSE_MOST_S = 0.5
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
]
_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class Link:
    """Channels to the nodes of one cluster. Every node takes every call and passes it on to the leader; the
    one that is said to lead is used if its address is known, else one until it fails."""

    def __init__(self, endpoints, job=None):
        """`endpoints` is a comma-separated text or a list of `host:port`."""
        if isinstance(endpoints, str):
            endpoints = endpoints.split(",")
        self.endpoints = [endpoint.strip() for endpoint in endpoints if endpoint.strip()]
        if not self.endpoints:
            raise ValueError("no endpoint of the cluster is given")
        self._job = ((wire.JOB, job),) if job else ()
        self._lock = threading.Lock()
        self._at = 0
        self._channels = {}
        self._calls = {}
        self._closed = False

    def call(self, path, request, metadata=(), patience_s=PATIENCE_S, attempt_s=ATTEMPT_S, trailers=None):
        """Sends encoded bytes, and answers with encoded bytes.

        The same request with the same metadata goes to the next node when one is away, so a call that changes
        something needs the metadata of a session. A dict that is given as `trailers` is filled with the
        answer's. Raises `RefusedError`, or `UnreachableError` after `patience_s`.
        """
        end = time.monotonic() + patience_s
        failures = 0
        while True:
            at = self._at
            left = end - time.monotonic()
            try:
                if self._closed:
                    raise UnreachableError("the connection to the cluster was closed")
                call = self._call(at, path)
                answer, sent = call.with_call(
                    request, timeout=max(0.05, min(attempt_s, left)), metadata=(*self._job, *metadata)
                )
                self._follow(at, sent.initial_metadata())
                if trailers is not None:
                    trailers.update(sent.initial_metadata() or ())
                    trailers.update(sent.trailing_metadata() or ())
                return answer
            except ValueError as error:
                # A channel that another thread closed.
                raise UnreachableError(f"the connection to the cluster was closed: {error}") from None
            except grpc.RpcError as error:
                self._judge(error, path, end)
            failures += 1
            self._turn_from(at)
            if failures >= len(self.endpoints):
                time.sleep(random.uniform(0.3, 1.0) * min(_PAUSE_MOST_S, 0.02 * 2 ** min(failures, 6)))

    def close(self):
        with self._lock:
            self._closed = True
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()

    def _judge(self, error, path, end):
        """Raises unless the call can be sent again."""
        trailers = dict(error.trailing_metadata() or ())
        code = error.code()
        # A reason without an outage is the scheduler's word, also if its code says "unavailable": there is no
        # store.
        its_word = wire.REASON in trailers or code not in _AGAIN
        if its_word and wire.OUTAGE not in trailers:
            raise RefusedError(code.value[0], error.details(), trailers.get(wire.REASON, "")) from None
        if time.monotonic() >= end or self._closed:
            raise UnreachableError(
                f"{path}: no node of {', '.join(self.endpoints)} answered: {error.details()}"
            ) from None

    def _follow(self, at, metadata):
        for key, value in metadata or ():
            if key == wire.LEADER:
                if value != self.endpoints[at] and value in self.endpoints:
                    with self._lock:
                        self._at = self.endpoints.index(value)
                return

    def _turn_from(self, at):
        with self._lock:
            if self._at == at:
                self._at = (at + 1) % len(self.endpoints)

    def _call(self, at, path):
        call = self._calls.get((at, path))
        if call is None:
            with self._lock:
                channel = self._channels.get(at)
                if channel is None:
                    channel = grpc.insecure_channel(self.endpoints[at], options=_OPTIONS)
                    self._channels[at] = channel
                call = channel.unary_unary(path)
                self._calls[(at, path)] = call
        return call


def ask(address, path, request, timeout_s=10.0):
    """One call to a process that is not a node, such as an object store. Raises `UnreachableError`."""
    with grpc.insecure_channel(address, options=_OPTIONS) as channel:
        try:
            return channel.unary_unary(path)(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise UnreachableError(f"{path}: {address} did not answer: {error.details()}") from None
