"""How long to wait for what must come: longer where the machine is slower."""

import os

# By how much, as the driver has measured it.
_SCALE = float(os.environ.get("TRIPOD_TIME_SCALE", "1"))


def scaled(seconds):
    """A limit that is meant for a machine of usual speed, on this one."""
    return seconds * max(_SCALE, 1.0)
