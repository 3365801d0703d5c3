"""MindSpore's own scheduler of the dynamic cluster, alone in a process, until standard input ends.

What it is told stands in the variables that MindSpore reads itself: MS_ROLE, MS_SCHED_HOST, MS_SCHED_PORT, MS_WORKER_NUM.
"""

import os
import sys
import threading


def _end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=_end_with_parent, daemon=True).start()

import mindspore  # noqa: E402
from mindspore.communication import init  # noqa: E402

# Releases before 2.5 do not know set_device.
if hasattr(mindspore, "set_device"):
    mindspore.set_device("CPU")
else:
    mindspore.set_context(device_target="CPU")
print("serving", mindspore.__version__, flush=True)
init()
