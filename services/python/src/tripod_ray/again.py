"""Puts of a task that runs again.

The n-th put of every attempt is one object, and the first attempt that writes it decides its value: others
may have read it. An attempt that would put another value goes on with handles of the first one, so whoever
wrote the task must be told that it is not the same every time.
"""

import hashlib
import logging
import threading

from . import calls
from .errors import TripodError
from .store import Gets

# What this machine's store has is there at once. Else it is asked for, and not looked at if it does not come:
# its store may have died, too.
_HERE_S = 0.003
_COME_S = 30.0

_log = logging.getLogger("tripod_ray")


def compare(process, task, ref, packed):
    """Warns if the object that is there has other bytes than this attempt would have put. Returns at once:
    the object may have to come from another store."""
    # The memory of the value is the task's, which may change it.
    wanted = _Wanted(packed)
    threading.Thread(
        target=_compare, args=(process, task, ref, wanted), name="tripod-again", daemon=True
    ).start()


class _Wanted:
    """What an attempt would have put, without its memory."""

    def __init__(self, packed):
        self._head = (packed.size_bytes, packed.metadata_offset)
        self._spans = [(place, len(piece)) for place, piece in packed.pieces]
        self._digest = _digest(piece for _, piece in packed.pieces)

    def is_like(self, memory, metadata_offset):
        memory = memoryview(memory)
        if (len(memory), metadata_offset) != self._head:
            return False
        return _digest(memory[place : place + size] for place, size in self._spans) == self._digest


def _digest(pieces):
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _compare(process, task, ref, wanted):
    objectid = ref.id
    gets = Gets(process.store, [objectid])
    try:
        if not gets.wait(_HERE_S):
            process.outbox.post(calls.Request(objectid))
            if not gets.wait(_COME_S):
                gets.cancel()
                return
        if not wanted.is_like(*gets.take(0, ref)):
            _log.warning(
                "object %d: attempt %d of task %d (%s) puts another value than an earlier attempt did, whose "
                "value stays; what is not the same every time should be an argument or a result of the task",
                objectid,
                task.run[1],
                task.run[0],
                task.name,
            )
    except TripodError as error:
        _log.debug("object %d, which an earlier attempt put, cannot be looked at: %s", objectid, error)
    finally:
        gets.close()
