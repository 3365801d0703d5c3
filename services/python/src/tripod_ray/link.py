"""Calls to the cluster: which node, and again when one does not answer."""

import random
import threading
import time

import grpc

from . import credentials as proofs, wire
from .errors import RefusedError, UnreachableError
from .batch_stream import BatchStream, BatchStreamEnded
from .relay import RelayedBatchStream, RelayEnded

# A node without a leader holds calls for 10 s before it says so; a frozen node says nothing.
ATTEMPT_S = 12.0
# Longer than any election, and than a restart of a node.
PATIENCE_S = 60.0
_PAUSE_MOST_S = 0.5
# Bytes of an answer as a node bounds them: another program at its address fills no memory.
ANSWER_BYTES_MAX = 256 << 20
# Until a node has greeted: one that is frozen costs this much, and one that is far away or busy takes some of it.
_CONNECT_S = 2.0


def _options(connect_s):
    """Of a channel, whose connections are given up when nobody has greeted after `connect_s`."""
    return [
        ("grpc.initial_reconnect_backoff_ms", 50),
        ("grpc.max_reconnect_backoff_ms", 500),
        # Against its name this is how long an attempt may take, at least; one that is refused is over at once.
        ("grpc.min_reconnect_backoff_ms", int(connect_s * 1000)),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 3_000),
        ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
        ("grpc.max_send_message_length", -1),
    ]


_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    # No node answers so: what it has begun to answer was cut off, as a stream is when its node ends.
    grpc.StatusCode.UNKNOWN,
)


class Link:
    """Channels to the nodes of one cluster. Every node takes every call and passes it on to the leader; the
    one that is said to lead is used if its address is known, else one until it fails."""

    def __init__(self, endpoints, job=None, credentials=None):
        """`endpoints` is a comma-separated text or a list of `host:port`. `credentials`: by which nodes know who calls;
        None: those of this process."""
        if isinstance(endpoints, str):
            endpoints = endpoints.split(",")
        self.endpoints = [endpoint.strip() for endpoint in endpoints if endpoint.strip()]
        if not self.endpoints:
            raise ValueError("no endpoint of the cluster is given")
        self._job = ((wire.JOB, job),) if job else ()
        self._credentials = credentials or proofs.default()
        self._lock = threading.Lock()
        self._at = 0
        self._channels = {}
        self._calls = {}
        # The stream of batches, to which node it goes, and what it has said; and nodes that serve none.
        self._stream, self._stream_at, self._stream_said = None, None, None
        self._without_lines = set()
        # The socket of an object store that passes batches on, and who this process is to it; None: there is
        # none.
        self.relay = None
        self._closed = False

    def call(self, path, request, metadata=(), patience_s=PATIENCE_S, attempt_s=ATTEMPT_S, trailers=None):
        """Sends encoded bytes, and answers with encoded bytes.

        The same request with the same metadata goes to the next node when one is away, so a call that changes
        something needs the metadata of a session. A dict that is given as `trailers` is filled with the
        answer's. Raises `RefusedError`, or `UnreachableError` after `patience_s`.
        """
        def once(at, left_s):
            call = self._call(at, path)
            answer, sent = call.with_call(
                request, timeout=max(0.05, min(attempt_s, left_s)), metadata=(*self._said(), *metadata)
            )
            self._follow(at, sent.initial_metadata())
            if trailers is not None:
                trailers.update(sent.initial_metadata() or ())
                trailers.update(sent.trailing_metadata() or ())
            return answer

        return self._try(path, once, patience_s)

    def batch(self, message, session):
        """Sends a `RayLineRequest` of a session, and answers with its `RayBatchResponse`. Raises as `call` does.
        Only one thread may be here at a time."""
        encoded = message.SerializeToString()

        def once(at, left_s):
            if at not in self._without_lines:
                try:
                    return self._ask_stream(at, encoded, session)
                except grpc.RpcError as error:
                    if error.code() != grpc.StatusCode.UNIMPLEMENTED:
                        raise
                    # A node of an earlier version.
                    self._without_lines.add(at)
            metadata = (
                *self._said(),
                (wire.SESSION, session),
                (wire.SEQ, str(message.seq)),
                (wire.ACKED, str(message.acked)),
                (wire.WORKER, str(message.batch.workerid)),
            )
            call = self._call(at, wire.BATCH)
            data, sent = call.with_call(
                message.batch.SerializeToString(),
                timeout=max(0.05, min(ATTEMPT_S, left_s)),
                metadata=metadata,
            )
            self._follow(at, sent.initial_metadata())
            return wire.RayBatchResponse.FromString(data)

        return self._try(wire.BATCH, once, PATIENCE_S)

    def _try(self, path, once, patience_s):
        """What `once(node, seconds left)` answers, for one node after the other."""
        end = time.monotonic() + patience_s
        failures = 0
        while True:
            at = self._at
            shown = self._credentials.metadata()
            try:
                if self._closed:
                    raise UnreachableError("the connection to the cluster was closed")
                return once(at, end - time.monotonic())
            except ValueError as error:
                # A channel that another thread closed.
                raise UnreachableError(f"the connection to the cluster was closed: {error}") from None
            except (BatchStreamEnded, RelayEnded) as error:
                self._check_patience(path, end, error)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAUTHENTICATED and self._credentials.is_replaced(shown):
                    # By a token that has run out.
                    self._check_patience(path, end, error.details())
                else:
                    self._judge(error, path, end)
            failures += 1
            self._turn_from(at)
            if failures >= len(self.endpoints):
                time.sleep(random.uniform(0.3, 1.0) * min(_PAUSE_MOST_S, 0.02 * 2 ** min(failures, 6)))

    def _said(self):
        """What each call says: about which job it is, and who makes it."""
        return (*self._job, *self._credentials.metadata())

    def close(self):
        with self._lock:
            self._closed = True
            channels, self._channels = list(self._channels.values()), {}
        self._drop_stream()
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
        self._check_patience(path, end, error.details())

    def _check_patience(self, path, end, why):
        if time.monotonic() >= end or self._closed:
            raise UnreachableError(
                f"{path}: no node of {', '.join(self.endpoints)} answered: {why}"
            ) from None

    def _ask_stream(self, at, encoded, session):
        """Over the stream to that node, which is opened if there is none."""
        stream, said = self._stream, self._said()
        # A token that is shown by a stream ends it when it runs out.
        if stream is None or self._stream_at != at or self._stream_said != said:
            self._drop_stream()
            stream = self._open_stream(at, (*said, (wire.SESSION, session)))
            self._stream, self._stream_at, self._stream_said = stream, at, said
        try:
            answer = stream.ask(encoded)
        except BaseException as error:
            if isinstance(error, RelayEnded):
                self.relay = None
            # What comes on it now is the answer to something else.
            self._drop_stream()
            raise
        if answer.leader:
            self._go_to(at, answer.leader)
        return answer.batch

    def _open_stream(self, at, metadata):
        relay = self.relay
        if relay is not None:
            try:
                return RelayedBatchStream(*relay, self.endpoints[at], metadata)
            except RelayEnded:
                # Whether the store is gone is for its other connection to tell.
                self.relay = None
        return BatchStream(self._channel(at).stream_stream(wire.LINE), metadata)

    def _drop_stream(self):
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _follow(self, at, metadata):
        for key, value in metadata or ():
            if key == wire.LEADER:
                return self._go_to(at, value)

    def _go_to(self, at, leader):
        if leader != self.endpoints[at] and leader in self.endpoints:
            with self._lock:
                self._at = self.endpoints.index(leader)

    def _turn_from(self, at):
        with self._lock:
            if self._at == at:
                self._at = (at + 1) % len(self.endpoints)

    def _call(self, at, path):
        call = self._calls.get((at, path))
        if call is None:
            call = self._calls[(at, path)] = self._channel(at).unary_unary(path)
        return call

    def _channel(self, at):
        with self._lock:
            channel = self._channels.get(at)
            if channel is None:
                channel = self._channels[at] = self._credentials.channel(
                    self.endpoints[at], _options(_CONNECT_S)
                )
            return channel


def ask(address, path, request, timeout_s=10.0):
    """One call to a process that is not a node, such as an object store. Raises `UnreachableError`."""
    with grpc.insecure_channel(address, options=_options(timeout_s)) as channel:
        try:
            return channel.unary_unary(path)(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise UnreachableError(f"{path}: {address} did not answer: {error.details()}") from None
