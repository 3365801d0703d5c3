"""The smallest gang: processes that meet at a barrier of the coordination service after each step.

On each host, or three times on one, with another I and the same everything else:

    tripod run --job demo --tasks 3 --task-id I -- python jax_gang.py

A node that dies, the leader included, makes one step a little longer. Needs jax 0.4.13 or later.
"""

import os
import sys
import time

import jax
from jax._src import distributed


def main():
    """Make as many steps as the command line says."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )
    print(f"process {jax.process_index()} of {jax.process_count()}, pid {os.getpid()}", flush=True)
    client = distributed.global_state.client
    for step in range(1, steps + 1):
        began = time.monotonic()
        time.sleep(0.5)  # The work of a step.
        client.wait_at_barrier(f"step-{step}", 60_000)
        print(f"step {step} took {time.monotonic() - began:.2f} s", flush=True)
    jax.distributed.shutdown()
    print("done", flush=True)


if __name__ == "__main__":
    main()
