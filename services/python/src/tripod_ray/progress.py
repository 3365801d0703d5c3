"""What a call that waits for long is waiting for."""

import logging
import sys
import time

from .context import current

# Nobody wonders earlier; afterwards it is said at most so often, and ever more rarely.
FIRST_S = 10.0
_PAUSE_MOST_S = 60.0
# Objects that a text names.
_NAMED_MOST = 5

_log = logging.getLogger("tripod_ray")


class Waiting:
    """One call that waits. It is said to the log at INFO; of a driver that nobody has given a log it is said on the terminal,
    if there is one."""

    def __init__(self, call):
        self._call = call
        self._begun = time.monotonic()
        self._pause_s = FIRST_S
        self._next = self._begun + FIRST_S

    def left(self, end):
        """Seconds until there is something to say, or until `end` (None: there is none)."""
        until = self._next if end is None else min(self._next, end)
        return max(0.0, until - time.monotonic())

    def say(self, describe):
        """Says what `describe()` answers, if it is time for that."""
        now = time.monotonic()
        if now < self._next:
            return
        self._pause_s = min(2 * self._pause_s, _PAUSE_MOST_S)
        self._next = now + self._pause_s
        text = f"{self._call} waits since {now - self._begun:.0f} s: {describe()}; next: `tripod ray tasks`"
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", text)
        elif current() is None and sys.stderr is not None and sys.stderr.isatty():
            print(f"tripod_ray: {text}", file=sys.stderr, flush=True)


def names(missing):
    """Objects as a text names them."""
    named = ", ".join(f"ObjectRef({objectid})" for objectid in missing[:_NAMED_MOST])
    return named if len(missing) <= _NAMED_MOST else f"{named} and {len(missing) - _NAMED_MOST} more"


def late(missing, asked, when):
    """Objects that did not come, of as many as were asked for; `when` is "yet" or the like."""
    if asked == 1:
        return f"{names(missing)} did not come {when}"
    return f"{len(missing)} of {count(asked)} did not come {when}: {names(missing)}"


def count(objects):
    """How many objects, as it is said."""
    return "1 object" if objects == 1 else f"{objects} objects"
