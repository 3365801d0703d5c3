"""Operators for tests of others: what passes through takes time, fails or needs memory. Nodes tile them only where they
are turned on."""

import time

# Within the longest that a task runs.
SLEEP_MS_MOST = 24 * 3_600_000
_PAGE_BYTES = 4096


def sleep(node, inputs):
    ms = node.operator["ms"]
    if ms > SLEEP_MS_MOST:
        raise ValueError(f"a sleep of {ms} ms; {SLEEP_MS_MOST} is the most")
    time.sleep(ms / 1000)
    return inputs[0]


def fail(node, inputs):
    """Fails in the first so many attempts. Outside of a task it is the first one."""
    if _attempt() <= node.operator["attempts"]:
        raise RuntimeError(node.operator["message"])
    return inputs[0]


def _attempt():
    # Not needed for anything else, and it begins much that chunks do without.
    from tripod_ray import context

    task = context.current()
    return 1 if task is None or task.run is None else task.run[1]


def alloc(node, inputs):
    """Every page is written to, so that the memory is there and not promised."""
    memory = bytearray(node.operator["bytes"])
    for at in range(0, len(memory), _PAGE_BYTES):
        memory[at] = 1
    return inputs[0]


OPERATORS = {"sleep": sleep, "fail": fail, "alloc": alloc}
