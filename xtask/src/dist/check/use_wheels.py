"""Both wheels as a program uses them that was told nothing but their names: TRIPOD_BIN is not set, PATH does not have the
environment, and the program is the one that pip has installed."""

import os
import pathlib
import signal
import sys
import time

import tripod
import tripod_ray as ray
from tripod_ray import api, local

HERE = pathlib.Path(sys.prefix)


@ray.remote
def square(x):
    return x * x


def a_cluster_goes_on():
    """Seconds from the death of the leader to an answer."""
    with tripod.Cluster() as cluster:
        job = tripod.create_job("train", tasks=3, endpoints=cluster.endpoints)
        tripod.put("config/rate", "0.1", job=job)
        cluster.kill_leader()
        killed = time.monotonic()
        assert tripod.get("config/rate", job=job, timeout_s=60) == b"0.1"
        took = time.monotonic() - killed
        assert tripod.put("config/rate", "0.2", job=job, timeout_s=60) == 2
    return took


def tasks_go_on():
    """Five lines, and a node killed between two tasks."""
    ray.init(num_workers=2)
    assert ray.get([square.remote(i) for i in range(4)]) == [0, 1, 4, 9]
    nodes = [pid for pid in api._local.pids if is_node(pid)]
    assert nodes, api._local.pids
    os.kill(nodes[0], signal.SIGKILL)
    assert ray.get([square.remote(i) for i in range(4, 8)]) == [16, 25, 36, 49]
    ray.shutdown()


def is_node(pid):
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"server" in words


def main():
    program = HERE / "bin" / "tripod"
    assert "TRIPOD_BIN" not in os.environ
    for module in (tripod, ray):
        assert HERE in pathlib.Path(module.__file__).parents, module.__file__
    assert tripod.binary() == str(program), tripod.binary()
    assert local.find_program() == str(program), local.find_program()
    took = a_cluster_goes_on()
    tasks_go_on()
    print(f"key read {took:.1f} s after the leader was killed; tasks ran before and after")


if __name__ == "__main__":
    main()
