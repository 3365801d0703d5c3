"""How far a graph is: on a terminal by tqdm if that is installed, or by a line now and then; and in the log."""

import logging
import sys
import time

# Nobody wonders earlier; afterwards a line is written at most so often, and ever more rarely.
FIRST_S = 10.0
_PAUSE_MOST_S = 60.0

_log = logging.getLogger("tripod_mars")


def bar(wanted, name):
    """Something to tell progress to, or None. `wanted` None: where there is a terminal."""
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    if not wanted:
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return Lines(name)
    shown = "{l_bar}{bar}| {n:.0f}/{total:.0f} [{elapsed}<{remaining}]"
    return tqdm(total=100, desc=name, unit="%", bar_format=shown, leave=False)


def update(shown, info):
    """Shows a `GraphInfo`."""
    if shown is not None:
        shown.n = round(100 * info.progress, 1)
        shown.refresh()


class Pauses:
    """When something that takes long is said again."""

    def __init__(self):
        self.begun = time.monotonic()
        self._pause_s = FIRST_S
        self._next = self.begun + FIRST_S

    def due(self):
        """Seconds since the begin if it is time, or None."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._pause_s = min(2 * self._pause_s, _PAUSE_MOST_S)
        self._next = now + self._pause_s
        return now - self.begun


class Lines:
    """What is written where there is no tqdm."""

    def __init__(self, name):
        self._name = name
        self._pauses = Pauses()
        self.n = 0.0

    def refresh(self):
        seconds = self._pauses.due()
        if seconds is not None:
            text = f"tripod_mars: {self._name} runs since {seconds:.0f} s: {self.n:.0f} %"
            print(text, file=sys.stderr, flush=True)

    def close(self):
        """Nothing stays open."""


class Logged:
    """What is said to the log at INFO, wherever it goes."""

    def __init__(self, name):
        self._name = name
        self._pauses = Pauses()

    def update(self, info):
        """Says how far a `GraphInfo` is, if it is time for that."""
        if _log.isEnabledFor(logging.INFO):
            seconds = self._pauses.due()
            if seconds is not None:
                _log.info("%s runs since %.0f s: %.0f %%", self._name, seconds, 100 * info.progress)
