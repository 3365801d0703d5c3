"""What a call of a TensorFlow process came to, as one JSON object a line on standard output."""

import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from steps import emit


def _text(key):
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def attempt(step, function, *arguments):
    """Call `function` and emit what came of it: a value, or the error's class, payload keys and text.

    Returns the value, or the error itself.
    """
    begin = time.monotonic()
    try:
        value = function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
        payloads = getattr(error, "experimental_payloads", None) or {}
        outcome = {"ok": False, "exc": type(error).__name__, "text": str(error)}
        outcome["payloads"] = sorted(_text(key) for key in payloads)
        result = error
    else:
        outcome = {"ok": True, "value": value}
        result = value
    emit(step=step, secs=round(time.monotonic() - begin, 3), **outcome)
    return result
