"""A JAX program in which every process may die and come back, process 0 included.

On each host, with another I and the same everything else:

    tripod run --job ft --tasks 3 --task-id I --recoverable --heartbeat-timeout 10 --restarts 20 -- \\
        python jax_fault_tolerant.py --steps 100

Each step is made by all processes that live. When one dies the others fail that step once, and make it again without it; when it
has come back the next step is made with it. The number of the step is kept in the job, so whoever comes back goes on where the
others are. Needs jax 0.7 or later.
"""

import argparse
import json
import os
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
    asked = arguments.parse_args()

    jax.config.update("jax_enable_recoverability", True)
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        heartbeat_timeout_seconds=asked.heartbeat_timeout,
    )
    me, store = jax.process_index(), distributed.global_state.client
    say(event="begun", process=me, pid=os.getpid())
    while True:
        try:
            with multihost_utils.live_devices(jax.devices()) as live:
                processes = sorted({device.process_index for device in live})
                step = made(store)
                if step < asked.steps:
                    work(step, asked.pause)
        except Exception as error:  # noqa: BLE001: whatever a process that died has left behind
            say(event="failed", process=me, error=f"{type(error).__name__}: {error}"[:200])
            continue
        # Here every process of the list knows that all of them have done the step.
        say(event="step", process=me, step=step, live=processes)
        if step >= asked.steps:
            break
        # The others look when all have come together again.
        if me == processes[0]:
            store.key_value_set(STEP, str(step + 1), allow_overwrite=True)
    jax.distributed.shutdown()
    say(event="ended", process=me)


def made(store):
    """How many steps have been made; kept where no process has to live for it."""
    try:
        return int(store.key_value_try_get(STEP))
    except jax.errors.JaxRuntimeError:
        return 0


def work(step, pause):
    """What the process does in a step, on devices of its own."""
    total = jax.jit(lambda x: (x * x).sum())(np.arange(step + 1.0))
    total.block_until_ready()
    time.sleep(pause)


def say(**what):
    """A line of JSON."""
    print(json.dumps({"time": round(time.time(), 3), **what}), flush=True)


if __name__ == "__main__":
    main()
