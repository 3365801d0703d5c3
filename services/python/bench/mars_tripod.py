"""The parts with this project: three nodes, an object store and two workers on this machine, from TRIPOD_BIN."""

import json
import os
import pathlib
import signal
import subprocess
import time

import mars_parts

import tripod_mars
import tripod_mars.tensor as mt
from tripod_mars import wire
from tripod_mars.graph import Sent, new_key
from tripod_ray.local import LocalCluster, find_program

WORKERS = 2
# Room for what has not been given up yet of the random numbers.
STORE_MIB = 2048
_END_LIMIT_S = 30
_STARTED_AGAIN = []


class Tripod:
    """Tensors of `tripod_mars`."""

    def __init__(self, session, cluster):
        self._session, self._cluster = session, cluster

    def product(self, rows, chunk_rows):
        a = mt.random.rand(rows, rows, chunk_size=chunk_rows).execute()
        took, result = mars_parts.seconds(lambda: ((a + 1) @ a.T).sum(axis=0).execute(fuse=True).fetch())
        return took, result, a.fetch()

    def moments(self, numbers, chunk_numbers):
        def work():
            x = mt.random.rand(numbers, chunk_size=chunk_numbers)
            return [float(one) for one in mt.fetch(*mt.execute(x.mean(), x.var(), fuse=True))]

        return mars_parts.seconds(work)

    def graphs(self, arrays):
        return mars_parts.seconds(lambda: [float((mt.tensor(one) + 1).sum().execute(fuse=True).fetch()) for one in arrays])

    def killed(self, arrays):
        times, sums = [], []
        begin = time.perf_counter()
        for number, one in enumerate(arrays):
            if number == len(arrays) // 2:
                kill_leader(self._cluster)
            took, result = mars_parts.seconds(lambda: (mt.tensor(one) + 1).sum().execute(fuse=True).fetch())
            times.append(took)
            sums.append(float(result))
        return time.perf_counter() - begin, sums, max(times)

    def subtasks(self, count):
        took, zeros = mars_parts.seconds(lambda: mt.zeros((count,), chunk_size=1).execute())
        return took, zeros[:10].fetch()

    def submit(self, count):
        context, session_id, key = self._session.context, self._session.session_id, new_key()

        def work():
            # Half of the chunks have an input.
            sent = Sent([(mt.zeros((count // 2,), chunk_size=1) + 1).node], session_id)
            context.submit_tileable_graph(session_id, sent.message, key, sent.target_keys)

        took, _ = mars_parts.seconds(work)
        context.stop_tileable_graph(session_id, key)
        context.wait_tileable_graph(session_id, key)
        return took


def kill_leader(cluster):
    """Kills the node that leads, and starts it again with the same command."""
    status = [find_program(), "status", "-o", "json", "--endpoints", cluster.endpoints]
    leader = json.loads(subprocess.run(status, check=True, stdout=subprocess.PIPE).stdout)["leader"]
    for pid in cluster.pids:
        place = pathlib.Path(f"/proc/{pid}")
        words = place.joinpath("cmdline").read_bytes().decode().split("\0")[:-1]
        if words[1:2] == ["server"] and f"--node={leader}" in words:
            folder = os.readlink(place / "cwd")
            os.kill(pid, signal.SIGKILL)
            # Its ports are taken until the last of its memory is given back, and whoever started it has seen its end.
            deadline = time.monotonic() + _END_LIMIT_S
            while place.exists():
                if time.monotonic() > deadline:
                    raise RuntimeError(f"node {leader} was killed and is still there after {_END_LIMIT_S} s")
                time.sleep(0.001)
            # It ends when this program's end of its input is closed.
            again = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            _STARTED_AGAIN.append(again)
            cluster.pids.append(again.pid)
            cluster.pids.remove(pid)
            return
    raise RuntimeError(f"no process is node {leader}")


def main():
    cluster = LocalCluster(workers=WORKERS, store_mib=STORE_MIB, host="127.0.0.1")
    try:
        with tripod_mars.new_session(cluster.endpoints) as session:
            # Both workers take part before anything is measured.
            while session.context.count_workers(["READY"]) < 1:
                pass
            mars_parts.run("tripod", Tripod(session, cluster))
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
