"""Batches to one node over one stream, which costs a fraction of a call for each."""

import queue

from . import wire
from .errors import TripodError


class BatchStream:
    """One stream. What it raises, other than `grpc.RpcError`, leaves it unusable too."""

    def __init__(self, open_stream, metadata):
        """`open_stream` is what a channel makes of the path."""
        self._requests = queue.SimpleQueue()
        self._answers = open_stream(iter(self._requests.get, None), metadata=metadata)

    def ask(self, data):
        """Sends an encoded `RayLineRequest`, and answers with its `RayLineResponse`. Raises `grpc.RpcError`, or
        `BatchStreamEnded`."""
        self._requests.put(data)
        try:
            return wire.RayLineResponse.FromString(next(self._answers))
        except StopIteration:
            raise BatchStreamEnded("the node ended the stream") from None

    def close(self):
        self._answers.cancel()
        self._requests.put(None)


class BatchStreamEnded(TripodError):
    """A node ended a stream, and did not say why."""
