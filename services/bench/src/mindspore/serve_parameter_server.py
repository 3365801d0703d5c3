"""MindSpore's own scheduler of the parameter server, alone in a process, until standard input ends. The library of 2.0.0
exports it, and no program of its Python package begins it any more.

What it is told stands in the variables that MindSpore reads itself: MS_ROLE, MS_SCHED_HOST, MS_SCHED_PORT, MS_WORKER_NUM,
MS_SERVER_NUM.
"""

import ctypes
import os
import pathlib
import sys
import threading


def _end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=_end_with_parent, daemon=True).start()

import mindspore  # noqa: E402

# Reads what the environment says of the cluster.
mindspore.set_ps_context(enable_ps=True)
library = ctypes.CDLL(str(pathlib.Path(mindspore.__file__).parent / "lib" / "libmindspore_backend.so"))
# ps::Scheduler::GetInstance and Run.
instance = library._ZN9mindspore2ps9Scheduler11GetInstanceEv
instance.restype = ctypes.c_void_p
scheduler = ctypes.c_void_p(instance())
print("serving", mindspore.__version__, flush=True)
library._ZN9mindspore2ps9Scheduler3RunEv(scheduler)
