"""How this process proves to nodes who it is, and by what it believes them: a directory of certificates, and a file of a token.

The directory is as `tripod --tls-dir` has it: `ca.crt`, the roots of the nodes, and where the process has a certificate `tls.crt` and
`tls.key`. A token is shown over TLS only, to a node whose certificate holds and is one of the host that was dialled.
"""

import base64
import os
import re
import stat
import threading
import time
import zlib

import grpc

TLS_DIR = "TRIPOD_TLS_DIR"
TOKEN_FILE = "TRIPOD_TOKEN_FILE"
ROOTS, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"

# What others must not have of a key's file, and of a token's. A group may read a key, as mounted secrets are given to groups.
_KEY_OTHERS = 0o037
_TOKEN_OTHERS = 0o077
_FILE_BYTES_MAX = 1 << 20
# Kind, id, secret, and a sum by which one that was cut off is told from a whole one.
_FORM = re.compile(rb"trp_[a-z]{1,16}_[a-z2-7]{13}_[a-z2-7]{52}_[a-z2-7]{7}")
# A token lives for a day, and a worker for longer: so often it is looked whether there is another one in the file.
_READ_EVERY_S = 60.0

_lock = threading.Lock()
_default = None


class Credentials:
    """Those of a directory and a file; of neither: connections are in plain text, and nothing is shown."""

    def __init__(self, tls_dir=None, token_file=None):
        """Raises `ValueError` with the reason if a file cannot be used."""
        self._tls_dir, self._token_file = tls_dir or None, token_file or None
        self._metadata, self._read_at = (), 0.0
        if self._token_file and not self._tls_dir:
            raise ValueError(
                "T1534 token-plain: a token is shown to nodes over TLS only; give a directory of certificates, too "
                f"(tls_dir or {TLS_DIR}), or leave the token out"
            )
        if self._tls_dir:
            self._for_channels()
        if self._token_file:
            self._metadata, self._read_at = self._read_token(), time.monotonic()

    def channel(self, address, options):
        """A channel to a node."""
        if not self._tls_dir:
            return grpc.insecure_channel(address, options=options)
        return grpc.secure_channel(address, self._for_channels(), options=options)

    def metadata(self):
        """What every call to a node says."""
        if self._token_file and time.monotonic() - self._read_at >= _READ_EVERY_S:
            self._read_at = time.monotonic()
            try:
                self._metadata = self._read_token()
            except ValueError:
                # It is being written. The token before is shown on, as long as it holds.
                pass
        return self._metadata

    def is_replaced(self, shown):
        """Whether a call that showed this is to be made again, if nobody was believed to make it: there is another token by now."""
        # Whatever was read last has been refused, or was not shown yet.
        self._read_at = time.monotonic() - _READ_EVERY_S
        return self.metadata() != shown

    def _for_channels(self):
        at = lambda name: os.path.join(self._tls_dir, name)
        roots = _read(at(ROOTS), None, "T1511 tls-file")
        key = certificate = None
        if os.path.exists(at(CERTIFICATE)) or not self._token_file:
            certificate = _read(at(CERTIFICATE), None, "T1511 tls-file")
            key = _read(at(KEY), _KEY_OTHERS, "T1511 tls-file")
        return grpc.ssl_channel_credentials(roots, key, certificate)

    def _read_token(self):
        text = _read(self._token_file, _TOKEN_OTHERS, "T1531 token-file").rstrip(b"\r\n")
        summed, _, told = text.rpartition(b"_")
        wanted = base64.b32encode(zlib.crc32(summed).to_bytes(4, "big")).rstrip(b"=").lower()
        if not _FORM.fullmatch(text) or told != wanted:
            # The text is not repeated: it may be one with a slip.
            raise ValueError(f"T1531 token-file: {self._token_file} does not hold a token")
        return (("authorization", "Bearer " + text.decode()),)


def given(tls_dir=None, token_file=None):
    """Those, and for what is None the environment's TRIPOD_TLS_DIR and TRIPOD_TOKEN_FILE. Raises `ValueError`."""
    return Credentials(
        os.environ.get(TLS_DIR) if tls_dir is None else tls_dir,
        os.environ.get(TOKEN_FILE) if token_file is None else token_file,
    )


def default():
    """Those of this process, for whoever is given none. Raises `ValueError`."""
    global _default
    with _lock:
        if _default is None:
            _default = given()
        return _default


def use(credentials):
    """From now on they are those of this process; None: the environment's."""
    global _default
    with _lock:
        _default = credentials


def _read(path, others, code):
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"{code}: {path} is not a file")
            if others is not None and found.st_uid not in (os.geteuid(), 0):
                raise ValueError(f"{code}: {path} belongs to user {found.st_uid}, who could replace it")
            if others is not None and found.st_mode & others:
                mode = stat.S_IMODE(found.st_mode)
                raise ValueError(f"{code}: others may use {path} (mode {mode:o}); `chmod 600 {path}`")
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(f"{code}: {path} cannot be read: {error.strerror}") from None
    if len(data) > _FILE_BYTES_MAX:
        raise ValueError(f"{code}: {path} has more than {_FILE_BYTES_MAX} bytes")
    return data
