"""Signals that may end what the main thread does."""

import contextlib
import signal
import threading

# Those whose handlers raise in practice: Ctrl-C, and what time limits of test runners use.
_SIGNALS = (signal.SIGINT, signal.SIGALRM, signal.SIGTERM)


class Held:
    """While it is entered, handlers of signals run only inside `allowed`, and the others at the end: so that an
    exception of theirs does not fall between two lines that belong together. Only the main thread runs
    handlers; in others this does nothing. One thread at a time may have entered it."""

    def __init__(self):
        self._handlers = {}
        self._came = []
        self._allowed = False

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    # Noted first: from the next line on a signal comes here.
                    self._handlers[number] = handler
                    signal.signal(number, self._take)
        return self

    def __exit__(self, *_):
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        while self._came:
            number, frame = self._came.pop(0)
            handlers[number](number, frame)

    @contextlib.contextmanager
    def allowed(self):
        """For a wait that may be broken off."""
        self._allowed = True
        try:
            while self._came:
                number, frame = self._came.pop(0)
                self._handlers[number](number, frame)
            yield
        finally:
            self._allowed = False

    def _take(self, number, frame):
        if self._allowed:
            self._handlers[number](number, frame)
        else:
            self._came.append((number, frame))
