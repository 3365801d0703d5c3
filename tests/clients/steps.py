"""Steps: what a client process did and how it ended, one JSON object a line on standard output."""

import json
import os
import sys
import threading
import time

# Two threads of one client may report at the same time.
_OUTPUT = threading.Lock()


def emit(**fields):
    """Write one step at once, so that whoever started this process can wait for it."""
    with _OUTPUT:
        sys.stdout.write(json.dumps(fields, sort_keys=True) + "\n")
        sys.stdout.flush()


def end_with_parent():
    """From now on this process ends when its standard input does: when whoever started it, or started what
    started it, has ended or given it up."""

    def watch():
        # Not by sys.stdin, whose lock a thread must not hold when the interpreter ends.
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _plain(value):
    """The value as JSON can hold it; bytes as hexadecimal text."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {str(key): str(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_row(item) for item in value]
    return value


def _plain_row(row):
    if isinstance(row, (list, tuple)):
        return [item.hex() if isinstance(item, bytes) else item for item in row]
    return row


def attempt(step, function, *arguments, **options):
    """Call `function` and emit what came of it: a value, or the exception's type and text.

    Returns the value, or the exception itself.
    """
    begin = time.monotonic()
    try:
        value = function(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        secs = round(time.monotonic() - begin, 3)
        emit(step=step, ok=False, exc=type(error).__name__, text=str(error), secs=secs)
        return error
    emit(step=step, ok=True, value=_plain(value), secs=round(time.monotonic() - begin, 3))
    return value
