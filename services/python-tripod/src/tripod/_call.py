"""One call of the program `tripod`, which answers in JSON."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Optional, Union

from ._binary import binary
from ._errors import BinaryMissingError, TripodError, UnreachableError, of_code

# One node with its port, several with commas between, or a sequence of them.
Endpoints = Union[str, Sequence[str]]

TIMEOUT_S = 10.0
# The program ends by itself within its timeout. One that does not, on a machine that stands still, is ended.
_MARGIN_S = 10.0


def call(
    arguments: Sequence[str],
    endpoints: Optional[Endpoints] = None,
    timeout_s: float = TIMEOUT_S,
    given: bytes = b"",
) -> Any:
    """What `tripod ARGUMENTS` has printed, or None if that is nothing. `given` is its standard input. Without endpoints it is
    asked where the environment's TRIPOD_ENDPOINTS says. Raises `TripodError`."""
    command = [*program(endpoints), "--timeout", _seconds(timeout_s), *arguments]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=timeout_s + _MARGIN_S)
    except OSError as error:
        raise BinaryMissingError(f"cannot run {command[0]}: {error}") from None
    except subprocess.TimeoutExpired:
        what = " ".join(arguments[:2])
        raise UnreachableError(f"`tripod {what}` did not end within {timeout_s + _MARGIN_S:g} s") from None
    if done.returncode:
        raise _error(done.stderr, done.returncode)
    return json.loads(done.stdout) if done.stdout.strip() else None


def program(endpoints: Optional[Endpoints]) -> "list[str]":
    """The program, told where the cluster is and to answer in JSON."""
    command = [binary(), "--json"]
    if endpoints is not None:
        command += ["--endpoints", joined(endpoints)]
    return command


def joined(endpoints: Endpoints) -> str:
    """As the program takes them. Raises `ValueError` if there is none."""
    text = endpoints if isinstance(endpoints, str) else ",".join(endpoints)
    if not text.strip():
        raise ValueError('endpoints are "HOST:PORT,...", and there is none in them')
    return text


def _seconds(timeout_s: float) -> str:
    if not timeout_s > 0:
        raise ValueError(f"timeout_s is {timeout_s}; it is above 0")
    return f"{timeout_s:.3f}"


def _error(said: bytes, exit_code: int) -> TripodError:
    text = said.decode("utf-8", "replace").strip()
    # What it logs, if TRIPOD_LOG says so, comes before the error.
    last = text.rpartition("\n")[2]
    try:
        told = json.loads(last)
        return of_code(told["error"], told.get("code"), told.get("slug"), exit_code)
    except (ValueError, TypeError, KeyError):
        return TripodError(text or f"tripod ended with status {exit_code}", exit_code=exit_code)
