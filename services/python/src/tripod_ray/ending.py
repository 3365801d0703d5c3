"""What tells a worker to end, signals and the end of its standard input, and that it ends then."""

import contextlib
import os
import select
import signal
import sys
import threading
import time

_NUMBERS = (signal.SIGTERM, signal.SIGINT)
# What tasks left behind keeps a worker that has ended no longer.
_LEFT_S = 5.0


class Signals:
    """Has signals end a worker gently while it has something to finish; before and after that they end the process
    at once, and so does a second SIGINT. A signal that the process was started to ignore is left alone.

    Python runs handlers in the main thread alone, when that executes Python again. It may wait for as long as nothing
    comes: the system does not wake it if it gives the signal to another thread, as it does with one that came while
    the process was stopped. So a thread hears of signals too.
    """

    def __init__(self):
        """For the main thread, and once in a process."""
        self._numbers = [number for number in _NUMBERS if signal.getsignal(number) != signal.SIG_IGN]
        self._end = None
        self._masks = threading.local()
        come, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._handle(signal.SIG_DFL)
        threading.Thread(target=self._hear, args=(come,), name="tripod-signals", daemon=True).start()
        os.register_at_fork(
            before=self._hold, after_in_parent=self._let_go, after_in_child=self._leave_to_child
        )

    @contextlib.contextmanager
    def ending(self, end):
        """While it is entered, signals call `end()`, in any thread and perhaps more than once."""
        self._end = end
        self._handle(self._take)
        try:
            yield
        finally:
            # In this order: what comes in between ends the process.
            self._handle(signal.SIG_DFL)
            self._end = None

    def _handle(self, handler):
        for number in self._numbers:
            signal.signal(number, handler)

    def _take(self, number, _):
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        self._tell(number)

    def _hear(self, come):
        while numbers := os.read(come, 64):
            for number in numbers:
                # A task that handles one by itself has it for itself.
                if number in self._numbers and signal.getsignal(number) in (self._take, signal.SIG_DFL):
                    self._tell(number)

    def _tell(self, number):
        end = self._end
        if end is not None:
            end()
        else:
            # It came in the last moment.
            os.kill(os.getpid(), number)

    # A process that a task forks is ended by signals like any other. Those that come before it knows that wait: they
    # would be taken for signals of the worker, whose pipe it has.

    def _hold(self):
        self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, self._numbers)

    def _let_go(self):
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)

    def _leave_to_child(self):
        signal.set_wakeup_fd(-1)
        for number in self._numbers:
            if signal.getsignal(number) == self._take:
                plain = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
                signal.signal(number, plain)
        self._let_go()


def end_with_input():
    """Ends the process when its standard input ends, so that no worker outlives the program that began it, however
    that ends."""
    # A copy: tasks may close the standard input, and the number would be another file's. Without one there is nobody
    # to hear from.
    come = None if sys.stdin is None else os.dup(sys.stdin.fileno())
    threading.Thread(target=_end_with, args=(come,), name="tripod-input", daemon=True).start()


def _end_with(come):
    if come is not None:
        with contextlib.suppress(OSError):
            _read_to_end(come)
    os._exit(0)


def _read_to_end(come):
    awaited = select.poll()
    awaited.register(come, select.POLLIN)
    while True:
        awaited.poll()
        # Whoever else has the same input may have made it one that does not block.
        with contextlib.suppress(BlockingIOError):
            if not os.read(come, 4096):
                return


def limit_end(status):
    """Has the process, whose work is done, end soon: Python waits for threads and processes that tasks have left
    behind, and they may never end."""

    def end():
        time.sleep(_LEFT_S)
        os._exit(status)

    threading.Thread(target=end, name="tripod-end", daemon=True).start()
