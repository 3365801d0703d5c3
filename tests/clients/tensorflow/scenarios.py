"""What each of two workers does. A scenario is a function of its worker."""

import os
import signal
import time

from outcomes import attempt, emit

# Long enough for everything that should come, in milliseconds.
_LONG_MS = 20_000
# Two heartbeat timeouts of a job, in seconds.
_IDLE = 9
# How long a worker may take to learn of another's error, in seconds.
_NEWS_LIMIT = 30


def kv(worker):
    """Keys: set, get before and after, normalised, deleted, empty, long, not ASCII."""
    calls, me, other = worker.calls, worker.me, worker.other
    attempt("devices", worker.devices)
    attempt("set own", calls.set_config_key_value, f"dir/k{me}", f"v{me}")
    attempt("get other", worker.get, f"dir/k{other}", _LONG_MS)
    attempt("get other, odd slashes", worker.get, f"//dir///k{other}/", _LONG_MS)
    if me == 0:
        attempt("set again", calls.set_config_key_value, "dir/k0", "again")
        if worker.get_has_limit:
            attempt("get absent, 500 ms", worker.get, "nothing/here", 500)
    else:
        # The other one waits for it in the meantime.
        time.sleep(1)
        attempt("set late", calls.set_config_key_value, "late", "finally")
    attempt("get late", worker.get, "late", _LONG_MS)
    attempt("barrier a", calls.wait_at_barrier, "kv-a", _LONG_MS)
    if me == 1:
        attempt("delete dir", calls.delete_config_key_value, "dir")
    attempt("barrier b", calls.wait_at_barrier, "kv-b", _LONG_MS)
    if worker.get_has_limit:
        attempt("get deleted, 500 ms", worker.get, "dir/k0", 500)
    attempt("get sibling", worker.get, "late", _LONG_MS)
    attempt("set empty value", calls.set_config_key_value, f"empty{me}", "")
    attempt("get empty value", worker.get, f"empty{me}", _LONG_MS)
    attempt("set utf8", calls.set_config_key_value, f"u{me}", "h\u00e9llo \u4e16\u754c")
    attempt("get utf8", worker.get, f"u{me}", _LONG_MS)
    attempt("set 1 MiB", calls.set_config_key_value, f"big{me}", "x" * (1 << 20))
    attempt("get 1 MiB length", lambda: len(worker.get(f"big{other}", _LONG_MS)))
    attempt("barrier end", calls.wait_at_barrier, "kv-end", _LONG_MS)


def barrier(worker):
    """Barriers: repeated, uneven, timed out, late, and used again."""
    wait = worker.calls.wait_at_barrier
    attempt("barrier 1", wait, "b", _LONG_MS)
    attempt("barrier same id again", wait, "b", _LONG_MS)
    if worker.me == 1:
        time.sleep(1)
    attempt("barrier uneven", wait, "uneven", _LONG_MS)
    if worker.me == 0:
        attempt("barrier alone, 1500 ms", wait, "alone", 1500)
        worker.calls.set_config_key_value("alone is over", "yes")
    else:
        worker.get("alone is over", _LONG_MS)
        attempt("barrier late to failed", wait, "alone", 1500)
    attempt("barrier after failure", wait, "after", _LONG_MS)
    attempt("barrier retry failed id", wait, "alone", _LONG_MS)


def states(worker):
    """What the service says of healthy workers."""
    attempt("barrier", worker.calls.wait_at_barrier, "s", _LONG_MS)
    attempt("states", worker.states)
    attempt("barrier 2", worker.calls.wait_at_barrier, "s2", _LONG_MS)


def report(worker):
    """A worker says that it is broken."""
    attempt("barrier", worker.calls.wait_at_barrier, "r", _LONG_MS)
    if worker.me == 1:
        attempt("report", worker.calls.report_error_to_cluster, 8, "disk is full")
        attempt("report again", worker.calls.report_error_to_cluster, 8, "again")
    _after_the_error(worker)


def killed(worker):
    """A worker is gone without a word."""
    attempt("barrier", worker.calls.wait_at_barrier, "k", _LONG_MS)
    if worker.me == 1:
        emit(step="dies")
        os.kill(os.getpid(), signal.SIGKILL)
    attempt("barrier with dead", worker.calls.wait_at_barrier, "k2", 60_000)
    _after_the_error(worker)


def _after_the_error(worker):
    """What is left of the service for a worker that has learnt of another's error."""
    wait = worker.calls.wait_at_barrier
    deadline = time.monotonic() + _NEWS_LIMIT
    for number in range(1_000_000):
        try:
            wait(f"news {number}", 1)
        except Exception as error:  # noqa: BLE001 - another one than this is an outcome, too
            # The service fails barriers of workers in error; a worker that is told fails them itself.
            if type(error).__name__ == "FailedPreconditionError" or time.monotonic() > deadline:
                break
        time.sleep(0.1)
    attempt("states", worker.states)
    attempt("barrier after", wait, "a", 5000)
    attempt("set after", worker.calls.set_config_key_value, f"after{worker.me}", "1")
    attempt("get after", worker.get, f"after{worker.me}", _LONG_MS)


def collective(worker):
    """Sums over the devices that the service made known, and one that an error interrupts."""
    attempt("devices", worker.devices)
    attempt("all reduce", _sum, worker, 9)
    if worker.me == 1:
        # The sum may be done here while the other one still waits for its last part, which an error ends.
        worker.get("the other one has its sum", 60_000)
        attempt("report", worker.calls.report_error_to_cluster, 14, "leaving")
        # It must not be its end that the other one notices.
        worker.get("the other one knows", 60_000)
    else:
        worker.calls.set_config_key_value("the other one has its sum", "yes")
        attempt("all reduce with absent peer", _sum, worker, 10)
        worker.calls.set_config_key_value("the other one knows", "yes")


def _sum(worker, instance):
    from tensorflow.python.ops import collective_ops

    with worker.tensorflow.device(f"/job:worker/replica:0/task:{worker.me}/device:CPU:0"):
        total = collective_ops.all_reduce_v2(
            worker.tensorflow.constant([1.0 + worker.me, 10.0]),
            group_size=2,
            group_key=7,
            instance_key=instance,
            communication_hint="ring",
            merge_op="Add",
            final_op="Id",
            timeout=60,
        )
    return [float(number) for number in total.numpy()]


def preempt(worker):
    """A worker is asked to end, and all are told."""
    attempt("barrier", worker.calls.wait_at_barrier, "p", _LONG_MS)
    if worker.me == 1:
        emit(step="is asked to end")
        os.kill(os.getpid(), signal.SIGTERM)
    # Releases whose gets have no limit do not write the key either: there the worker just ends.
    if worker.get_has_limit:
        attempt("preemption notice", worker.get, "TF_DEFAULT_PREEMPTION_NOTICE_KEY", _LONG_MS)
    attempt("barrier end", worker.calls.wait_at_barrier, "p2", _LONG_MS)


def shutdown(worker):
    """One worker leaves before the other, which is no error."""
    attempt("barrier", worker.calls.wait_at_barrier, "sd", _LONG_MS)
    if worker.me == 1:
        time.sleep(2)


def idle(worker):
    """Nothing but heartbeats for more than two heartbeat timeouts."""
    attempt("barrier", worker.calls.wait_at_barrier, "i0", _LONG_MS)
    time.sleep(_IDLE)
    attempt("barrier later", worker.calls.wait_at_barrier, "i1", _LONG_MS)
    attempt("set later", worker.calls.set_config_key_value, f"later{worker.me}", "1")


ALL = {
    play.__name__: play
    for play in (kv, barrier, states, report, killed, collective, preempt, shutdown, idle)
}
