"""A whole JAX program of any release that is directed by a test: it trains, and waits in each kind of call
while nodes die. No call may fail, unless --repeat-cut allows to repeat what was cut together with its
connection, as a careful program would; every repeat is told.

The processes train step by step: keys, counters and barriers of the coordination service, and sums over
all processes, each checked. A test directs them by files in --control:

    wait-KIND   the next step is a wait of that kind
    go-KIND     process 0 ends the wait

The kinds: `idle`, nobody calls anything; `get` and `barrier`, the other processes wait for process 0 in
such a call; `leave`, they leave before process 0, and wait for it at shutdown if the job makes them. A
process says `waiting` when it has been inside the call for a while.

Every step tells its longest call, in milliseconds; a call that had to wait for process 0 is not counted.
"""

import argparse
import contextlib
import pathlib
import threading
import time

from steps import emit
from train import make_total
from train_start import has_sums, repeats_barriers, start

# Longest wait of a get or a barrier, in milliseconds: longer than any fault.
_WAIT_MS = 180_000
# A call that has not returned for so long waits in the cluster, in seconds.
_INSIDE = 0.5
# Pause before a call is repeated, in seconds: a client reconnects in the background.
_REPEAT_PAUSE = 0.1
# How often a process looks for a file, in seconds.
_LOOK = 0.05

# How often gRPC repeats a call at most.
_GRPC_REPEATS = 4

_WAITS = ("idle", "get", "barrier", "leave")
_GETS = ("blocking_key_value_get",)
# What --repeat-cut allows to repeat.
_REPEATED = {
    "none": (),
    "gets": _GETS,
    "calls": (
        *_GETS,
        "key_value_try_get",
        "key_value_set",
        "key_value_increment",
        "wait_at_barrier",
    ),
}


class Calls:
    """Calls to the coordination service, with the longest one since the last report."""

    def __init__(self, client, repeat_cut):
        self._client = client
        self._repeat_cut = repeat_cut
        self._longest = (0, "none")
        # How often the last call was cut before it came through, or failed for another reason.
        self.cut = 0

    def has(self, function):
        """Whether this release has that function."""
        return hasattr(self._client, function)

    def call(self, function, *arguments):
        """The result of the call. A failure ends the program, unless it may be repeated."""
        self.cut = 0
        while True:
            try:
                return self._timed(function, *arguments)
            except Exception as error:
                if not (self._may_repeat(function) and str(error).startswith("UNAVAILABLE")):
                    raise
                self.cut += 1
                emit(step="cut", call=function, text=str(error)[:300])
            time.sleep(_REPEAT_PAUSE)

    def report(self):
        """The longest call since the last report, which it forgets."""
        longest, self._longest = self._longest, (0, "none")
        return {"longest_ms": longest[0], "longest_call": longest[1]}

    def set(self, key, value):
        """Set a new key. After a cut call the key may already hold the value, and no other."""
        try:
            self.call("key_value_set", key, value)
        except Exception as error:
            if not (self.cut and str(error).startswith("ALREADY_EXISTS")):
                raise
            equal(self.get_present(key), value)

    def get(self, key):
        """Wait for the key."""
        return self.call("blocking_key_value_get", key, _WAIT_MS)

    def get_present(self, key):
        """The value of a key that is there."""
        if self.has("key_value_try_get"):
            return self.call("key_value_try_get", key)
        return self.get(key)

    def increment(self, key):
        """The counter after one increment. One that was cut may have counted."""
        return self.call("key_value_increment", key, 1)

    def barrier(self, name):
        """Wait for all processes. A release that calls no barrier twice by one name goes on alone when the
        call was cut: it has waited, so its arrival counts."""
        try:
            self.call("wait_at_barrier", name, _WAIT_MS)
        except Exception as error:
            if not (self.cut and "should not be called with the same id more than once" in str(error)):
                raise

    def _timed(self, function, *arguments):
        begin = time.monotonic()
        try:
            return getattr(self._client, function)(*arguments)
        finally:
            took_ms = round((time.monotonic() - begin) * 1000)
            self._longest = max(self._longest, (took_ms, function))

    def _may_repeat(self, function):
        return function in _REPEATED[self._repeat_cut]


def equal(found, wanted):
    """End the program if what was found is not what was wanted."""
    if found != wanted:
        raise AssertionError(f"found {found!r} instead of {wanted!r}")


class Program:
    """One process of the program."""

    def __init__(self, options, calls, total, barriers_repeat):
        self._unmarked = options.increments_unmarked
        self._tasks = options.n
        self._me = options.id
        self._pace = options.pace
        self._control = options.control
        self._calls = calls
        self._total = total
        self._barriers_repeat = barriers_repeat
        self._waited = set()
        self._own = 0
        self._cut_increments = 0

    def run(self):
        """All steps but the last one, which leaves."""
        step = 0
        trained = 0
        while True:
            kind = self._plan(step)
            if kind == "leave":
                break
            if kind == "train":
                self._keys(step)
                self._counters()
                self._sum(step)
                trained += 1
            else:
                self._wait(kind, step)
            emit(step="trained", number=step, kind=kind, **self._calls.report())
            step += 1
            time.sleep(self._pace)
        self._check_common_counter(trained)
        return trained

    def await_go(self, kind):
        """Process 0 waits until the test lets it go on."""
        emit(step="waiting", kind=kind)
        while not (self._control / f"go-{kind}").exists():
            time.sleep(_LOOK)

    @contextlib.contextmanager
    def inside(self, kind):
        """Tells that the process waits in the call, once it has not returned for a while."""
        timer = threading.Timer(_INSIDE, emit, kwargs={"step": "waiting", "kind": kind})
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _plan(self, step):
        """Process 0's decision, the same for all."""
        key = f"plan/{step}"
        if self._me == 0:
            wanted = (kind for kind in _WAITS if (self._control / f"wait-{kind}").exists())
            kind = next((kind for kind in wanted if kind not in self._waited), "train")
            self._waited.add(kind)
            self._calls.set(key, kind)
        return self._calls.get(key)

    def _wait(self, kind, step):
        name = f"wait/{step}"
        if self._me == 0 or kind == "idle":
            self.await_go(kind)
        else:
            waits = {"get": self._calls.get, "barrier": self._calls.barrier}
            with self.inside(kind):
                waits[kind](name)
            self._calls.report()
        if self._me == 0:
            ends = {"get": lambda: self._calls.set(name, "go"), "barrier": lambda: self._calls.barrier(name)}
            ends.get(kind, lambda: None)()

    def _keys(self, step):
        """What others set before a barrier can be seen after it, and old keys stay."""
        others = [(self._me + distance) % self._tasks for distance in (1, 2)]
        value = f"{step}:{self._me}"
        self._calls.set(f"step/{step}/{self._me}", value)
        equal(self._calls.get(f"step/{step}/{others[0]}"), f"{step}:{others[0]}")
        self._meet(f"step/{step}")
        equal(self._calls.get_present(f"step/{step}/{others[1]}"), f"{step}:{others[1]}")
        equal(self._calls.get_present(f"step/{step}/{self._me}"), value)

    def _meet(self, name):
        """Wait for all processes. Where nobody knows whether a call that was cut has arrived, and it cannot
        be repeated, by keys."""
        if self._barriers_repeat:
            # Barriers of old releases are of use only once, so each has a name of its own.
            self._calls.barrier(name)
            return
        self._calls.set(f"met/{name}/{self._me}", "")
        for task in range(self._tasks):
            self._calls.get(f"met/{name}/{task}")

    def _counters(self):
        """One more each time, of a counter of its own and of one that all share."""
        if self._calls.has("key_value_increment"):
            own = self._calls.increment(f"count/{self._me}")
            if not self._own < own <= self._own + 1 + self._calls.cut + self._repeated():
                raise AssertionError(f"counter went from {self._own} to {own}, cut {self._calls.cut} times")
            if own > self._own + 1 + self._calls.cut:
                emit(step="counted again", key=f"count/{self._me}", sum=own, expected=self._own + 1)
            self._own = own
            self._calls.increment("count/all")
            self._cut_increments += self._calls.cut

    def _repeated(self):
        """How often gRPC itself may have repeated an increment so that nobody could know it again."""
        return _GRPC_REPEATS if self._unmarked else 0

    def _check_common_counter(self, trained):
        """No increment of anybody was lost, or done twice unless it was cut."""
        if self._calls.has("key_value_increment"):
            self._calls.set(f"cut/{self._me}", str(self._cut_increments))
            self._meet("counted")
            cut = sum(int(self._calls.get_present(f"cut/{task}")) for task in range(self._tasks))
            count, wanted = int(self._calls.get_present("count/all")), trained * self._tasks
            if not wanted <= count <= wanted + cut + wanted * self._repeated():
                raise AssertionError(f"{count} instead of {wanted} increments, of which {cut} were cut")

    def _sum(self, step):
        """The sum over all processes of their number and the step."""
        if self._total is not None:
            wanted = sum(range(self._tasks)) + self._tasks * step
            equal(self._total(self._me + step), float(wanted))


def main():
    """Initialise, train, shut down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="of the agent, or a target of the nodes")
    parser.add_argument("-n", type=int, required=True, help="number of processes")
    parser.add_argument("--id", type=int, required=True, help="this process")
    parser.add_argument("--pace", type=float, default=0.1, help="seconds between steps")
    parser.add_argument("--control", type=pathlib.Path, required=True, help="directory of the test's files")
    parser.add_argument("--heartbeat-timeout", type=int, required=True, help="seconds")
    parser.add_argument("--repeat-cut", choices=list(_REPEATED), default="none")
    parser.add_argument("--increments-unmarked", action="store_true", help="gRPC may repeat increments unseen")
    parser.add_argument("--legacy", action="store_true", help="speak the oldest protocol")
    options = parser.parse_args()

    jax, client = start(options.address, options.n, options.id, options.heartbeat_timeout, options.legacy)
    emit(step="initialized", devices=jax.device_count(), release=jax.__version__)
    calls = Calls(client, options.repeat_cut)
    total = make_total(jax) if has_sums(jax) else None
    program = Program(options, calls, total, options.repeat_cut != "calls" or repeats_barriers(jax))
    trained = program.run()
    if options.id == 0:
        program.await_go("leave")
    with program.inside("leave"):
        jax.distributed.shutdown()
    emit(step="end", steps=trained)


main()
