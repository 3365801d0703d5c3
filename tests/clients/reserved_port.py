"""A free port that no other test is given while it is held, as `ReservedPorts` of tripod-chaos does it."""

import random
import socket

# The same figures as there: a guard stands for the unit of ports that begins at its number.
_FIRST, _END, _UNIT = 12_000, 32_000, 64


class ReservedPort:
    """A port of 127.0.0.1 that may be bound at any later time, or never. Close it when it is done with."""

    def __init__(self):
        starts = list(range(_FIRST, _END - _UNIT + 1, _UNIT))
        random.shuffle(starts)
        for port in starts:
            # The kernel takes the guard back when this process ends, however it ends.
            self._guard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._guard.bind(f"\0tripod-reserved-ports-{port}")
                _must_be_free(port)
            except OSError:
                self._guard.close()
                continue
            self.number = port
            self.address = f"127.0.0.1:{port}"
            return
        raise RuntimeError(f"no free port between {_FIRST} and {_END} on 127.0.0.1; see `ss -ltn`")

    def close(self):
        """Give the port back."""
        self._guard.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _must_be_free(port):
    # Without SO_REUSEADDR: a port of which a connection ended within the last minute is refused to
    # whoever binds it without that option, and nobody knows who will bind this one.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        probe.listen()
