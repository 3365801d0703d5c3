"""The process's one connection to a cluster."""

import secrets

from .errors import NotConnectedError

# Sets apart what only this process means.
PROCESS_KEY = secrets.token_bytes(16)

_process = None


def process():
    """The connection. Raises `NotConnectedError`."""
    if _process is None:
        raise NotConnectedError("not connected: call tripod_ray.init() first")
    return _process


def connected():
    """The connection, or None."""
    return _process


def connect(process):
    global _process
    _process = process
