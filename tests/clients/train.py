"""A whole JAX program: distributed initialisation, sums over all processes, and between them keys,
counters and barriers of the coordination service, each checked.

A call that is cut together with its connection (UNAVAILABLE) ends the program, unless
--repeat-cut-calls allows to repeat it, as a careful program would; every repeat is reported.

The program does at least --steps steps and then goes on until the file --until exists, so that a
test that waits for its last fault keeps all processes going. Process 0 decides and tells the others
by a key.
"""

import argparse
import os
import pathlib
import threading
import time

import numpy as np

from steps import emit

# Longest time that one call is repeated, in seconds.
_REPEAT_LIMIT = 30
# Pause before a call is repeated, in seconds: a client reconnects in the background.
_REPEAT_PAUSE = 0.1
# Longest wait of a get or a barrier, in milliseconds: covers the slowest process after a fault.
_WAIT_MS = 120_000


class Calls:
    """Calls to the coordination service."""

    def __init__(self, client, repeat):
        self.client = client
        self.repeats = 0
        self._repeat = repeat

    def call(self, name, function, *arguments):
        """The result of the call and how often it was cut before it came through."""
        cut = 0
        deadline = time.monotonic() + _REPEAT_LIMIT
        while True:
            try:
                return function(*arguments), cut
            except Exception as error:
                unavailable = str(error).startswith("UNAVAILABLE")
                emit(step="cut" if unavailable else "error", call=name, text=str(error)[:300])
                if not (unavailable and self._repeat) or time.monotonic() > deadline:
                    if cut and str(error).startswith("ALREADY_EXISTS"):
                        return error, cut
                    raise
                cut += 1
                self.repeats += 1
                time.sleep(_REPEAT_PAUSE)

    def set(self, key, value):
        """Set a new key. After a cut call the key may already hold the value, and no other."""
        outcome, _ = self.call("set", self.client.key_value_set, key, value)
        if isinstance(outcome, Exception):
            found = self.try_get(key)
            if found != value:
                raise AssertionError(f"{key} holds {found!r} after a set of {value!r} that was cut")

    def get(self, key):
        """Wait for the key."""
        return self.call("get", self.client.blocking_key_value_get, key, _WAIT_MS)[0]

    def try_get(self, key):
        """The key's value now."""
        return self.call("try_get", self.client.key_value_try_get, key)[0]

    def increment(self, key):
        """The counter after one increment, and how many increments may have been repeated."""
        return self.call("increment", self.client.key_value_increment, key, 1)

    def barrier(self, name):
        """Wait for all processes."""
        self.call("barrier", self.client.wait_at_barrier, name, _WAIT_MS)


class Holder(threading.Thread):
    """Waits for one key after the other, so that a call waits whatever happens to the cluster; somebody
    else sets the keys. Each wait is reported before it begins and after it has ended well."""

    def __init__(self, calls, count):
        super().__init__(daemon=True)
        self._calls = calls
        self._count = count
        self._error = None

    def run(self):
        """All waits."""
        try:
            for place in range(self._count):
                emit(step="holding", place=place)
                self._calls.get(f"held/{place}")
                emit(step="held", place=place)
        except Exception as error:  # noqa: BLE001 - raised again where the program ends
            self._error = error

    def finish(self):
        """Wait for the last one; raise what went wrong."""
        self.join()
        if self._error is not None:
            raise self._error


class Program:
    """One process of the program."""

    def __init__(self, options, calls, total):
        self._options = options
        self._calls = calls
        self._total = total
        self._me = options.id
        self._count = 0

    def run(self):
        """All steps; the number of steps done."""
        step = 0
        while self._goes_on(step):
            self._keys(step)
            self._counter()
            self._sum(step)
            emit(step="trained", number=step)
            step += 1
            time.sleep(self._options.pace)
        return step

    def _goes_on(self, step):
        """Process 0's decision, the same for all."""
        key = f"plan/{step}"
        if self._me == 0:
            until = self._options.until
            go = step < self._options.steps or (until is not None and not until.exists())
            self._calls.set(key, "go" if go else "end")
        return self._calls.get(key) == "go"

    def _keys(self, step):
        """What others set before a barrier can be seen after it, and old keys stay."""
        others = [(self._me + distance) % self._options.n for distance in (1, 2)]
        self._calls.set(f"step/{step}/{self._me}", f"{step}:{self._me}")
        self._equal(self._calls.get(f"step/{step}/{others[0]}"), f"{step}:{others[0]}")
        self._calls.barrier("step")
        self._equal(self._calls.try_get(f"step/{step}/{others[1]}"), f"{step}:{others[1]}")
        self._equal(self._calls.try_get(f"step/{step // 2}/{others[0]}"), f"{step // 2}:{others[0]}")

    def _counter(self):
        """One more each time; a cut increment may have counted."""
        count, cut = self._calls.increment(f"count/{self._me}")
        if not self._count + 1 <= count <= self._count + 1 + cut:
            raise AssertionError(f"counter went from {self._count} to {count} with {cut} repeats")
        self._count = count

    def _sum(self, step):
        """The sum over all processes of their number and the step."""
        tasks = self._options.n
        wanted = sum(range(tasks)) + tasks * step
        self._equal(self._total(self._me + step), float(wanted))

    @staticmethod
    def _equal(found, wanted):
        if found != wanted:
            raise AssertionError(f"found {found!r} instead of {wanted!r}")


def make_total(jax):
    """A function that sums one number of each process over all of them."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("process",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("process"))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    add = jax.jit(lambda numbers: numbers.sum(), out_shardings=everywhere)

    def total(number):
        mine = np.array([number], dtype=np.float32)
        return float(add(jax.make_array_from_process_local_data(spread, mine)))

    return total


def main():
    """Initialise, train, shut down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="target of the coordination service")
    parser.add_argument("-n", type=int, required=True, help="number of processes")
    parser.add_argument("--id", type=int, required=True, help="this process")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pace", type=float, default=0.25, help="seconds between steps")
    parser.add_argument("--until", type=pathlib.Path, help="go on until this file exists")
    parser.add_argument("--heartbeat-timeout", type=int, default=20, help="seconds")
    parser.add_argument("--repeat-cut-calls", action="store_true")
    parser.add_argument("--held-gets", type=int, default=0, help="keys to wait for beside the training")
    options = parser.parse_args()

    # Process 0 starts an idle service of its own; here it is out of everybody's way.
    os.environ["JAX_COORDINATOR_BIND_ADDRESS"] = "127.0.0.1:0"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
    import jax
    from jax._src import distributed

    jax.distributed.initialize(
        options.address,
        options.n,
        options.id,
        heartbeat_timeout_seconds=options.heartbeat_timeout,
    )
    emit(step="initialized", devices=jax.device_count())
    calls = Calls(distributed.global_state.client, options.repeat_cut_calls)
    holder = Holder(calls, options.held_gets)
    holder.start()
    steps = Program(options, calls, make_total(jax)).run()
    holder.finish()
    jax.distributed.shutdown()
    emit(step="end", steps=steps, repeats=calls.repeats)


if __name__ == "__main__":
    main()
