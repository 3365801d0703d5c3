"""A node of a parameter server's cluster as MindSpore 2.0.0 has it: the node classes of its own library, which register,
beat, listen and finish as they do there. No program of its Python package makes one any more (its workers and servers build
a dynamic cluster), so that this makes one itself, in memory, and calls the methods that the library exports.

What the object looks like when its constructor is done holds for that release on x86_64 Linux alone: nearly all is zero, but
for empty texts, and containers that point to themselves.

MS_SCHED_HOST, MS_SCHED_PORT, MS_WORKER_NUM, MS_SERVER_NUM and MS_NODE_ID are read by the library itself; MS_ROLE is MS_WORKER or
MS_PSERVER. What the library tells its program of scaling and of events is a step, and what a program must do when its cluster
scales is done. The node goes on until the file --until exists, and then says that it has finished; one that has been told to
leave does so at once.
"""

import argparse
import ctypes
import os
import pathlib
import queue
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from steps import emit, end_with_parent  # noqa: E402

RELEASE = "2.0.0"
LIBRARY = "libmindspore_backend.so"
NODE = "_ZN9mindspore2ps4core12PSWorkerNode"
ABSTRACT = "_ZN9mindspore2ps4core12AbstractNode"
VTABLE = "_ZTVN9mindspore2ps4core12PSWorkerNodeE"
EMPTY_TEXT = "_ZNSs4_Rep20_S_empty_rep_storageE"
CLIENT = "ERKSt10shared_ptrINS1_9TcpClientEE"

# Bytes from the begin of the object. It has less than half as many as are taken for it.
OBJECT_BYTES = 0x1000
TEXTS = (0x08, 0x18, 0x6D0)
ROLE = 0x20
RANK = 0x24
IS_STOPPED = 0x32
HASH_TABLES = (0x118, 0x1E0, 0x240, 0x278, 0x308, 0x488, 0x4C0, 0x530, 0x568, 0x5A0, 0x6E0, 0x738)
ORDERED_MAPS = (0x2B8, 0x378, 0x3A8, 0x3D8, 0x430, 0x668, 0x698)
SCHEDULER_CLIENT = 0x350
# Within them.
BUCKETS, ONE_BUCKET, LOAD = 0x08, 0x30, 0x20
LEFT, RIGHT = 0x10, 0x18

# What a std::function holds: two words of its own, then the functions that copy and that call it.
COPY, CALL = 2 * 8, 3 * 8
COPIER = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
CALLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FUNCTION = "RKSt8functionIFvvEE"

# What the library tells its program, by its own numbers.
NODE_TIMEOUT, READY_FOR_SCALE_OUT, READY_FOR_SCALE_IN, SCALE_OUT_DONE, SCALE_IN_DONE = 1, 3, 4, 5, 6
# Which of the program's own events are steps. Number 2 is none of them: it says that a node is lost.
EVENTS = (1, 3, 4, 5)

SERVER, SCHEDULER = 0, 2
NO_RANK = 0xFFFFFFFF
# In seconds.
LEFT_LIMIT = 5
FULL_LOAD = 1.0


class Node:
    """One node."""

    def __init__(self):
        import mindspore

        if mindspore.__version__ != RELEASE:
            raise SystemExit(f"this is MindSpore {mindspore.__version__}; the node is known of {RELEASE} only")
        # Reads what the environment says of the cluster.
        mindspore.set_ps_context(enable_ps=True)
        self._library = ctypes.CDLL(str(pathlib.Path(mindspore.__file__).parent / "lib" / LIBRARY))
        self._memory = ctypes.create_string_buffer(OBJECT_BYTES)
        self._at = ctypes.addressof(self._memory)
        # The library calls them for as long as it is there.
        self._functions = []
        self._construct()

    @property
    def rank(self):
        return ctypes.c_uint32.from_address(self._at + RANK).value

    def start(self, role, limit):
        """Registers, and waits so many seconds until the node knows of all others. `False`: not in time."""
        seconds = ctypes.byref(ctypes.c_uint32(limit))
        if role == "MS_WORKER":
            return self._call(f"{NODE}5StartERKj", seconds)
        # The same steps with another role, and heartbeats that do not say where the node is: as those of servers.
        self._call(f"{NODE}10InitializeEv")
        ctypes.c_uint32.from_address(self._at + ROLE).value = SERVER
        scheduler = ctypes.c_void_p(self._at + SCHEDULER_CLIENT)
        self._call(f"{NODE}8Register{CLIENT}", scheduler)
        self._call(f"{ABSTRACT}19StartHeartbeatTimer{CLIENT}", scheduler)
        return self._call("_ZN9mindspore2ps4core4Node12WaitForStartERKj", seconds)

    def when_told(self, event, function):
        """Has a thread of the library call it."""
        self._register(f"{ABSTRACT}21RegisterEventCallbackERKNS1_12ClusterEventE{FUNCTION}", event, function)

    def when_happens(self, event, function):
        """The same for an event of the program's own."""
        self._register(f"{ABSTRACT}27RegisterCustomEventCallbackERKj{FUNCTION}", event, function)

    def is_ready_for_scaling(self, out):
        """The program has come to a place where the cluster may have another size: the node registers again."""
        self._call(f"{ABSTRACT}{'23set_ready_for_scale_out' if out else '22set_ready_for_scale_in'}Ev")

    def has_scaled(self, out):
        """The program goes on with the cluster as it is now."""
        self._call(f"{ABSTRACT}{'18set_scale_out_done' if out else '17set_scale_in_done'}Ev")

    def finish(self, limit):
        """Says that it has nothing left to do, and waits so many seconds until all have. `False`: not in time."""
        return self._call(f"{NODE}6FinishERKj", ctypes.byref(ctypes.c_uint32(limit)))

    def _call(self, name, *arguments):
        function = getattr(self._library, name)
        function.restype = ctypes.c_bool
        function.argtypes = None
        return function(ctypes.c_void_p(self._at), *arguments)

    def _register(self, name, event, function):
        copier, caller = COPIER(lambda to, what, how: False), CALLER(lambda what: function())
        held = (ctypes.c_uint64 * 4)()
        for offset, called in ((COPY, copier), (CALL, caller)):
            held[offset // 8] = ctypes.cast(called, ctypes.c_void_p).value
        self._functions.append((copier, caller, held))
        self._call(name, ctypes.byref(ctypes.c_uint32(event)), held)

    def _construct(self):
        def address(name):
            return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))

        def put(offset, value):
            ctypes.c_uint64.from_address(self._at + offset).value = value

        # Two words stand before the functions of a class, three before the characters of a text.
        put(0, address(VTABLE) + 2 * 8)
        for text in TEXTS:
            put(text, address(EMPTY_TEXT) + 3 * 8)
        for table in HASH_TABLES:
            put(table, self._at + table + ONE_BUCKET)
            put(table + BUCKETS, 1)
            ctypes.c_float.from_address(self._at + table + LOAD).value = FULL_LOAD
        for ordered in ORDERED_MAPS:
            put(ordered + LEFT, self._at + ordered)
            put(ordered + RIGHT, self._at + ordered)
        ctypes.c_uint32.from_address(self._at + ROLE).value = SCHEDULER
        ctypes.c_uint32.from_address(self._at + RANK).value = NO_RANK
        ctypes.c_bool.from_address(self._at + IS_STOPPED).value = True


def main():
    """One node from its registration until it has finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int, default=120, help="seconds in which the cluster must be complete")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    if options.exit_with_parent:
        end_with_parent()
    name = os.environ.get("MS_NODE_ID")
    emit(step="begin", node=name)
    node, told = Node(), queue.SimpleQueue()
    for event in (NODE_TIMEOUT, READY_FOR_SCALE_OUT, READY_FOR_SCALE_IN, SCALE_OUT_DONE, SCALE_IN_DONE):
        node.when_told(event, lambda event=event: told.put(event))
    for event in EVENTS:
        node.when_happens(event, lambda event=event: emit(step="event", event=event))
    began = time.monotonic()
    if not node.start(os.environ["MS_ROLE"], options.limit):
        raise SystemExit("the cluster is not complete in time")
    emit(step="ready", rank=node.rank, secs=round(time.monotonic() - began, 1))
    while not options.until.exists():
        try:
            event = told.get(timeout=0.1)
        except queue.Empty:
            continue
        if event == NODE_TIMEOUT:
            raise SystemExit("the scheduler says that a node is lost")
        out = event in (READY_FOR_SCALE_OUT, SCALE_OUT_DONE)
        if event in (READY_FOR_SCALE_OUT, READY_FOR_SCALE_IN):
            node.is_ready_for_scaling(out)
            continue
        node.has_scaled(out)
        emit(step="scaled", out=out, rank=node.rank)
        if node.rank == NO_RANK:
            break
    # Nobody tells a node that has left that all have finished, and it waits for that.
    emit(step="end", finished=node.finish(LEFT_LIMIT if node.rank == NO_RANK else options.limit))
    # What the library's threads still say, such as that it was told, they say meanwhile. They are there until the end, and
    # what they do when Python takes itself apart says nothing of the node.
    time.sleep(1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
