"""Clusters that have no schedulers yet, since they are at an earlier feature level."""

import logging
import time

from . import wire
from .errors import RefusedError

# Below it tasks cannot be cancelled, need nothing of their workers, and have no priority.
TASKS = 10

_PAUSE_S = 0.25

_NEXT = (
    "its level rises by itself when the build of every node supports the next one, and, where it is pinned, "
    "after `tripod level unpin`"
)

_log = logging.getLogger("tripod_ray")


def awaited(register, patience_s, lacks="has no schedulers yet"):
    """What `register()` answers once the cluster has schedulers: one that was just started or upgraded raises
    its level by itself. Says what it waits for; `lacks` is what the cluster does not have or do. Raises
    `RefusedError` after `patience_s` (None: never)."""
    end = None if patience_s is None else time.monotonic() + patience_s
    told = None
    while True:
        try:
            return register()
        except RefusedError as error:
            if error.reason != wire.LEVEL_LOW:
                raise
            if end is not None and time.monotonic() >= end:
                text = f"the cluster had no schedulers for {patience_s:.0f} s: {error}; {_NEXT}"
                raise RefusedError(error.code, text, error.reason) from None
            if str(error) != told:
                told = str(error)
                _log.warning("waiting for the cluster, which %s: %s; %s", lacks, told, _NEXT)
        time.sleep(_PAUSE_S)


def told(error):
    """What a cluster refused to who asked whether its level is that of `TASKS`: if it was for that, with `wire.LEVEL_LOW`
    as the reason."""
    if error.code != wire.INVALID_ARGUMENT:
        return error
    # What a node answers that does not know the call at all.
    text = f"feature level {TASKS} is needed, and the node that answered is of an earlier build, which holds the cluster's"
    text = f"{text} down ({error}); see `tripod level show`"
    return RefusedError(wire.FAILED_PRECONDITION, text, wire.LEVEL_LOW)


def too_low(what, error):
    """The same, of something that was to be done, and with what to do instead."""
    return RefusedError(error.code, f"{what}: {error}; {_NEXT}", error.reason)
