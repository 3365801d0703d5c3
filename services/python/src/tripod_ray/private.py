"""Whose a socket is. What an object store says is unpickled, so it is believed only if it is this user's or root's."""

import os
import socket
import stat
import struct

from .errors import StoreError

_ROOT = 0
# Process, user, group.
_PEER = struct.Struct("@iII")


def check_socket(path):
    """Before a socket is connected to: it and every directory above it are this user's or root's, and nobody else can
    replace them. Raises `StoreError`."""
    trusted = {os.geteuid(), _ROOT, os.stat("/").st_uid}
    directory = os.path.realpath(os.path.dirname(path) or ".")
    at = os.path.join(directory, os.path.basename(path))
    found = os.lstat(at)
    if not stat.S_ISSOCK(found.st_mode):
        raise StoreError(f"T1402 not-private: {at} is no socket")
    _check_owner(at, found, trusted)
    while True:
        found = os.lstat(directory)
        _check_owner(directory, found, trusted)
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            raise StoreError(
                f"T1402 not-private: {directory} may be written to by others (mode {stat.S_IMODE(found.st_mode):o}), who "
                "could replace what is in it; next: start the store with another --directory"
            )
        if directory == "/":
            return
        directory = os.path.dirname(directory)


def check_listener(connection):
    """After it: the process that listens is of this user or root, also if the path was replaced meanwhile. Raises
    `StoreError`."""
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user not in (os.geteuid(), _ROOT):
        raise StoreError(
            f"T1402 not-private: user {user} listens at the store's socket, and this process is of user {os.geteuid()}; "
            "next: start a store as this user"
        )


def connect(connection, path):
    """Connects to a socket of this user or of root. Raises `OSError`, `StoreError`."""
    check_socket(path)
    connection.connect(path)
    check_listener(connection)


def _check_owner(path, found, trusted):
    if found.st_uid not in trusted:
        raise StoreError(
            f"T1402 not-private: {path} belongs to user {found.st_uid}, who could replace what is there, and this process "
            f"to user {os.geteuid()}; next: start a store as this user"
        )
