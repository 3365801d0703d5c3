"""A JAX program in which every process may die and come back, process 0 included.

On each host, with another I and the same everything else:

    tripod run --job ft --tasks 3 --task-id I --recoverable --heartbeat-timeout 10 --restarts 20 -- \\
        python jax_fault_tolerant.py --steps 100

Each step is made by all processes that live. When one dies the others fail that step once, and make it again without it; when it
has come back a later step is made with it. The number of the step is kept in the job, so whoever comes back goes on where the
others are. SIGTERM ends a process when its step is made. Needs jax 0.8.1 or later.
"""

import argparse
import json
import os
import signal
import sys
import time

import jax
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils

STEP = "example/step"


def main():
    """Make steps until all are made."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=100)
    arguments.add_argument("--pause", type=float, default=0.2, metavar="SECONDS", help="work of one step")
    arguments.add_argument("--heartbeat-timeout", type=int, default=10, metavar="SECONDS", help="as the job's")
    arguments.add_argument("--initialization-timeout", type=int, default=300, metavar="SECONDS", help="until the job takes it")
    wanted = arguments.parse_args()

    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=wanted.initialization_timeout,
        heartbeat_timeout_seconds=wanted.heartbeat_timeout,
    )
    # After JAX, which has a handler of its own.
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    me, store = jax.process_index(), distributed.global_state.client
    say(event="begun", process=me, pid=os.getpid())
    # The step to be made, if it is known, and those with whom that was agreed.
    step, agreed = None, []
    asked = began = time.time()
    while not stopping and (step is None or step < wanted.steps):
        try:
            # JAX asks who lives when a block ends, and the next one has the answer: all of the list begin it together.
            with multihost_utils.live_devices(jax.devices()) as live:
                processes = sorted({device.process_index for device in live})
                together = processes == agreed
                # With a new list nothing is made: who knows the number tells it those who have come, before the block ends.
                if step is not None and (me == processes[0] or not together):
                    store.key_value_set(STEP, str(step), allow_overwrite=True)
                if together:
                    if step is None:
                        step = told(store)
                    work(step, wanted.pause)
                asked, began = time.time(), asked
        except Exception as error:  # noqa: BLE001: whatever a process that died has left behind
            # So it was for everybody in the list: each of them begins with a new one.
            say(event="failed", process=me, error=f"{type(error).__name__}: {error}"[:200])
            agreed = []
            continue
        agreed = processes
        if together:
            # Here every process of the list knows that all of them have done the step.
            say(event="step", process=me, step=step, live=processes, asked=began)
            step += 1
    jax.distributed.shutdown()
    say(event="ended", process=me)


def told(store):
    """The step to be made; kept where no process has to live for it."""
    try:
        return int(store.key_value_try_get(STEP))
    except jax.errors.JaxRuntimeError as error:
        if "NOT_FOUND" in str(error):
            return 0
        raise


def work(step, pause):
    """What the process does in a step, on devices of its own."""
    total = jax.jit(lambda x: (x * x).sum())(np.arange(step + 1.0))
    total.block_until_ready()
    time.sleep(pause)


def say(**what):
    """A line of JSON, in one piece: others may write there too."""
    sys.stdout.write(json.dumps({"time": time.time(), **what}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
