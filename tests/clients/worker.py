"""One real jaxlib client that plays one scenario against --address, one JSON line per step.

The names of the steps are the keys of the goldens. A scenario's behaviour may depend on the task's
number, so that one name describes the whole job.
"""

import argparse
import os
import sys
import threading
import time

import worker_keys
from binding import make_client
from steps import attempt, emit


# Longest wait for what must come, in milliseconds: only a fault makes it that long, or a starved machine.
_LONG_MS = 60_000
# A wait that ends without what is waited for, in milliseconds: long enough for all that take part.
_SHORT_MS = 5_000
# How long a task waits that is going to be killed, or ended by the others' error, in seconds.
_FOR_EVER = 100


def connect(job):
    """Register; a client that cannot has nothing more to do. Whoever started this process can read when it
    begins."""
    print("connecting", file=sys.stderr, flush=True)
    if isinstance(attempt("connect", job.client.connect), Exception):
        sys.exit(3)


def barriers(job):
    """Barriers of all, of some, failed ones, and their ids used again."""
    connect(job)
    me, wait = job.task, job.client.wait_at_barrier
    attempt("all", wait, "b1", _LONG_MS)
    attempt("all_again_same_id", wait, "b1", _LONG_MS)
    attempt("all_third_time", wait, "b1", _LONG_MS)
    if me < 2:
        attempt("subset_01", wait, "sub", _LONG_MS, [0, 1])
    else:
        attempt("subset_not_included", wait, "sub_x", _LONG_MS, [0, 1])
    attempt("rejoin1", wait, "r1", _LONG_MS)
    if me < 2:
        attempt("timeout_without_2", wait, "late", _SHORT_MS)
        job.tell(f"without 2/{me}")
    else:
        for other in range(2):
            job.await_word(f"without 2/{other}")
        attempt("late_joiner_after_timeout", wait, "late", _SHORT_MS)
    attempt("rejoin2", wait, "r2", _LONG_MS)
    attempt("reuse_id_after_timeout", wait, "late", _LONG_MS)
    attempt("rejoin3", wait, "r3", _LONG_MS)
    if me == 0:
        job.tell("conflict")
        attempt("conflict_a", wait, "conf", _LONG_MS, [0, 1])
    elif me == 1:
        job.await_word("conflict")
        time.sleep(1)  # What follows the word is one call.
        attempt("conflict_b", wait, "conf", _LONG_MS, [1, 2])
    attempt("rejoin4", wait, "r4", _LONG_MS)
    if me == 0:
        attempt("unknown_task", wait, "unk", _LONG_MS, [0, 99])
    attempt("rejoin5", wait, "r5", _LONG_MS)
    if me == 0:
        _twice_at_once(wait)
    attempt("rejoin6", wait, "r6", _LONG_MS)
    if me == 0:
        attempt("zero_timeout", wait, "zero", 0)
    attempt("rejoin7", wait, "r7", _LONG_MS)
    if me == 0:
        attempt("duplicate_ids_in_list", wait, "dup", _LONG_MS, [0, 0])
    attempt("empty_list", wait, "emptylist", _LONG_MS, [])
    attempt("single", wait, f"one{me}", _LONG_MS, [me])
    attempt("shutdown", job.client.shutdown)


def _twice_at_once(wait):
    begins = threading.Event()

    def call():
        begins.set()
        attempt("concurrent_first", wait, "conc", _SHORT_MS)

    first = threading.Thread(target=call)
    first.start()
    begins.wait()
    time.sleep(0.5)  # What follows is one call, of this very process.
    attempt("concurrent_second_same_process", wait, "conc", _SHORT_MS)
    first.join()


def live(job):
    """Who is alive, while the last task is killed."""
    connect(job)
    emit(step="ready")
    me, alive = job.task, job.client.get_live_nodes
    everybody = list(range(job.tasks))
    attempt("live_all", alive, everybody)
    attempt("live_01" if me < 2 else "live_not_member", alive, [0, 1])
    if me == 0:
        attempt("live_unknown", alive, [0, 77])
    if me == 2:
        time.sleep(_FOR_EVER)  # The test kills this task, when the others wait here:
    attempt("live_while_2_is_dead", alive, everybody)
    # Where the loss is fatal, the poll's error is on its way and ends this process. Without the pause
    # the next call is a race against it: 2 of 6 survivors once got through it on a busy machine.
    time.sleep(5)
    attempt("barrier_of_survivors", job.client.wait_at_barrier, "surv", _LONG_MS, [0, 1])
    emit(step="survived")
    attempt("shutdown", job.client.shutdown)


def shutdown_sync(job):
    """A shutdown waits for the last task."""
    connect(job)
    if job.task == 1:
        time.sleep(3)
    attempt("shutdown", job.client.shutdown)


def shutdown_straggler(job):
    """A task that comes to the shutdown too late."""
    connect(job)
    if job.task == 1:
        time.sleep(_FOR_EVER)  # The error of the one that waits ends this task.
    attempt("shutdown", job.client.shutdown)
    emit(step="alive_after")
    time.sleep(2)
    emit(step="end")


def idle(job):
    """Heartbeats only."""
    connect(job)
    emit(step="ready")
    deadline = time.monotonic() + job.secs
    while time.monotonic() < deadline:
        time.sleep(0.1)
    emit(step="survived")
    attempt("set", job.client.key_value_set, f"idle/{job.task}", "1")
    attempt("shutdown", job.client.shutdown)


def in_barrier(job):
    """Waiting at a barrier for a task that is killed."""
    connect(job)
    emit(step="ready")
    if job.task == job.tasks - 1:
        time.sleep(_FOR_EVER)
    attempt("barrier", job.client.wait_at_barrier, "never", _LONG_MS)
    emit(step="survived_barrier")
    time.sleep(_FOR_EVER)
    emit(step="end")


def in_get(job):
    """Waiting for a key that nobody sets, while a task is killed."""
    connect(job)
    emit(step="ready")
    if job.task == job.tasks - 1:
        time.sleep(_FOR_EVER)
    attempt("get", job.client.blocking_key_value_get, "never", _LONG_MS)
    emit(step="survived_get")
    time.sleep(_FOR_EVER)
    emit(step="end")


def recover(job):
    """Task 1 is killed and started again."""
    connect(job)
    emit(step="ready")
    if job.task == 1:
        if job.life == 0:
            time.sleep(_FOR_EVER)
        job.tell("back")
    # Where the loss is fatal, its error ends task 0 here.
    job.await_word("back")
    attempt("live", job.client.get_live_nodes, list(range(job.tasks)))
    attempt("barrier", job.client.wait_at_barrier, "after_recovery", _LONG_MS)
    attempt("barrier_again", job.client.wait_at_barrier, "after_recovery", _LONG_MS)
    attempt("shutdown", job.client.shutdown)


def soft_idle(job):
    """Heartbeats only, with a callback for errors."""
    connect(job)
    emit(step="ready")
    time.sleep(job.secs)
    emit(step="survived")
    attempt("set_while_in_error", job.client.key_value_set, f"soft/{job.task}", "1")
    attempt("barrier_while_in_error", job.client.wait_at_barrier, "soft", 1000, [job.task])
    attempt("shutdown_while_in_error", job.client.shutdown)


def connect_only(job):
    """Register and leave."""
    connect(job)
    attempt("shutdown", job.client.shutdown)


def keys(job):
    """Every operation on keys."""
    connect(job)
    worker_keys.play(job)


def keys_blocking(job):
    """Task 0 waits for keys that task 1 sets later."""
    connect(job)
    worker_keys.play_blocking(job)


SCENARIOS = {
    "barriers": barriers,
    "connect_only": connect_only,
    "idle": idle,
    "in_barrier": in_barrier,
    "in_get": in_get,
    "kv": keys,
    "kv_blocking": keys_blocking,
    "live": live,
    "recover": recover,
    "shutdown_straggler": shutdown_straggler,
    "shutdown_sync": shutdown_sync,
    "soft_idle": soft_idle,
}


class Job:
    """This process's place in the job, and its client."""

    def __init__(self, options):
        self.task = options.id
        self.tasks = options.n
        self.secs = options.secs
        self.life = options.life
        self.client = make_client(
            options.address,
            options.id,
            init_timeout=options.init_timeout,
            shutdown_timeout=options.shutdown_timeout,
            heartbeat_timeout=options.heartbeat_timeout,
            use_compression=True,
            missed_heartbeat_callback=_report_missed if options.soft else None,
        )

    def tell(self, word):
        """Tell the other tasks that something has happened. No step of the scenario."""
        self.client.key_value_set(f"word/{word}", "")

    def await_word(self, word):
        """Wait until another task has told it."""
        self.client.blocking_key_value_get(f"word/{word}", _LONG_MS)


def _report_missed(*arguments):
    emit(step="missed_heartbeat_callback", args=[str(argument) for argument in arguments])


def main():
    """Play the scenario and leave without destructors, which would shut down a second time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--address", required=True)
    parser.add_argument("-n", type=int, required=True, help="number of tasks")
    parser.add_argument("--id", type=int, required=True, help="this task")
    parser.add_argument("--heartbeat-timeout", type=int, default=30, help="seconds")
    parser.add_argument("--init-timeout", type=int, default=120, help="seconds")
    parser.add_argument("--shutdown-timeout", type=int, default=60, help="seconds")
    parser.add_argument("--life", type=int, default=0, help="how often this task was started before")
    parser.add_argument("--secs", type=float, default=10, help="how long to idle")
    parser.add_argument("--soft", action="store_true", help="give the client a callback for errors")
    options = parser.parse_args()
    SCENARIOS[options.scenario](Job(options))
    emit(step="exit_normally")
    os._exit(0)


main()
