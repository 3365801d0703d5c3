"""The key scenarios of `worker.py`: what one client sees of every operation."""

import time

from steps import attempt

_DIRECTORY = ("d/1", "d/2", "d/e/3", "d", "dx/1")
_INT64_MAX = 9223372036854775807
_BIG = 8 << 20
_LONG_KEY = "k" * 4000
# Longest wait for what must come, in milliseconds: only a fault makes it that long, or a starved machine.
_LONG_MS = 60_000


def play(job):
    """Every operation, alone."""
    client = job.client
    _plain(client)
    _normalised(client)
    _directories(client)
    _counters(client)
    _large(client)
    _after_shutdown(client)


def _plain(client):
    attempt("set", client.key_value_set, "a/b", "1")
    attempt("get", client.blocking_key_value_get, "a/b", _LONG_MS)
    attempt("get_bytes", client.blocking_key_value_get_bytes, "a/b", _LONG_MS)
    attempt("set_again_same_value", client.key_value_set, "a/b", "1")
    attempt("set_again_other_value", client.key_value_set, "a/b", "2")
    attempt("set_overwrite", client.key_value_set, "a/b", "2", allow_overwrite=True)
    attempt("get_after_overwrite", client.blocking_key_value_get, "a/b", _LONG_MS)
    attempt("overwrite_new_key", client.key_value_set, "fresh", "f", allow_overwrite=True)
    attempt("try_get", client.key_value_try_get, "a/b")
    attempt("try_get_missing", client.key_value_try_get, "missing")
    attempt("try_get_missing_slashes", client.key_value_try_get, "//missing//x/")
    attempt("get_missing_300ms", client.blocking_key_value_get, "missing2", 300)


def _normalised(client):
    attempt("norm_set", client.key_value_set, "//n///k/", "nv")
    attempt("norm_get_plain", client.key_value_try_get, "n/k")
    attempt("norm_get_slashes", client.key_value_try_get, "/n//k")
    attempt("norm_set_clash", client.key_value_set, "n/k", "other")
    attempt("empty_key_set", client.key_value_set, "", "e")
    attempt("empty_key_get", client.key_value_try_get, "")
    attempt("slash_key_get", client.key_value_try_get, "/")
    attempt("empty_value_set", client.key_value_set, "ev", "")
    attempt("empty_value_get", client.key_value_try_get, "ev")
    attempt("bytes_set", client.key_value_set_bytes, "bin", b"\x00\xff\x00z")
    attempt("bytes_get", client.key_value_try_get_bytes, "bin")


def _directories(client):
    for key in _DIRECTORY:
        attempt("dir_set_" + key, client.key_value_set, key, "v" + key)
    attempt("dir_get", client.key_value_dir_get, "d")
    attempt("dir_get_slash", client.key_value_dir_get, "/d/")
    attempt("dir_get_root", client.key_value_dir_get, "")
    attempt("dir_get_missing", client.key_value_dir_get, "nodir")
    attempt("dir_get_leaf", client.key_value_dir_get, "d/1")
    attempt("dir_get_bytes", client.key_value_dir_get_bytes, "d/e")
    attempt("delete_leaf", client.key_value_delete, "d/1")
    attempt("dir_after_delete_leaf", client.key_value_dir_get, "d")
    attempt("delete_dir", client.key_value_delete, "d")
    attempt("dir_after_delete_dir", client.key_value_dir_get, "d")
    attempt("key_d_after_delete_dir", client.key_value_try_get, "d")
    attempt("neighbour_survives", client.key_value_try_get, "dx/1")
    attempt("delete_missing", client.key_value_delete, "never")


def _counters(client):
    attempt("inc_new", client.key_value_increment, "ctr", 5)
    attempt("inc_again", client.key_value_increment, "ctr", 2)
    attempt("inc_negative", client.key_value_increment, "ctr", -10)
    attempt("inc_zero", client.key_value_increment, "ctr", 0)
    attempt("inc_as_text", client.key_value_try_get, "ctr")
    attempt("inc_over_int32", client.key_value_increment, "ctr", 3000000000)
    attempt("inc_after_int32", client.key_value_increment, "ctr", 1)
    attempt("inc_max", client.key_value_increment, "ctr2", _INT64_MAX)
    attempt("inc_text", client.key_value_increment, "a/b", 1)
    attempt("inc_not_a_number", client.key_value_increment, "fresh", 1)


def _large(client):
    attempt("big_value_set_8MiB", lambda: client.key_value_set_bytes("big", b"x" * _BIG))
    attempt("big_value_len", lambda: len(client.blocking_key_value_get_bytes("big", _LONG_MS)))
    attempt("set_after_delete", client.key_value_set, "d/1", "again")
    attempt("long_key", lambda: client.key_value_set(_LONG_KEY, "v"))
    attempt("dup_long_key_error", lambda: client.key_value_set(_LONG_KEY, "v"))


def _after_shutdown(client):
    attempt("shutdown", client.shutdown)
    attempt("after_shutdown_get", client.key_value_try_get, "a/b")
    attempt("after_shutdown_set", client.key_value_set, "late", "1")
    attempt("after_shutdown_barrier", client.wait_at_barrier, "x", 1000)
    attempt("shutdown_twice", client.shutdown)


def play_blocking(job):
    """Task 0 waits; task 1 sets, then increments."""
    client = job.client
    if job.task == 0:
        attempt("wait_for_key", client.blocking_key_value_get, "later", _LONG_MS)
        attempt("wait_for_incremented", client.blocking_key_value_get, "later_ctr", _LONG_MS)
        attempt("wait_again", client.blocking_key_value_get, "later", _LONG_MS)
    else:
        time.sleep(1)
        client.key_value_set("later", "here")
        time.sleep(0.5)
        client.key_value_increment("later_ctr", 3)
    attempt("shutdown", client.shutdown)
