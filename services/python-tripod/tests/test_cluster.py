"""A cluster of one node, with jobs, keys and programs; and one of three whose leader is killed. With TRIPOD_BIN, or `tripod`
in PATH."""

import os
import signal
import subprocess
import sys
import unittest

import tripod
from tripod._nodes import until

try:
    FOUND = tripod.binary()
except tripod.BinaryMissingError:
    FOUND = None

TASK = "import os; print(os.environ['JAX_PROCESS_ID'], os.environ['JAX_NUM_PROCESSES'], os.environ.get('MORE'))"
HOLDER = """
import os, sys, tripod
cluster = tripod.Cluster(nodes=1).start()
print(*cluster.pids.values(), flush=True)
sys.stdin.read()
"""
# Nobody waits so long in a test that passes.
DEADLINE_S = 60.0


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipUnless(FOUND, "TRIPOD_BIN names no program, and PATH has none")
class OneNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = tripod.Cluster(nodes=1).start()
        cls.addClassCleanup(cls.cluster.stop)
        cls.at = {"endpoints": cls.cluster.endpoints}

    def test_jobs_are_created_listed_and_deleted(self):
        made = tripod.create_job("train", tasks=3, heartbeat_timeout_s=20, **self.at)
        self.assertEqual((made.name, made.tasks, made.endpoints), ("train", 3, self.cluster.endpoints))
        self.assertTrue(made.target.startswith("ipv4:127.0.0.1:"), made)
        self.assertEqual(tripod.find_job("train", **self.at), made)
        self.assertEqual({job.name for job in tripod.jobs(**self.at)} & {"default", "train"}, {"default", "train"})
        with self.assertRaises(tripod.ExistsError) as caught:
            tripod.create_job("train", tasks=3, **self.at)
        error = caught.exception
        self.assertEqual((error.code, error.slug, error.exit_code), ("T6102", "job-exists", 1))
        self.assertTrue(str(error).startswith("T6102 job-exists: "), error)
        tripod.delete_job(made)
        with self.assertRaises(tripod.UnknownError) as caught:
            tripod.delete_job("train", **self.at)
        self.assertEqual(caught.exception.code, "T6101")

    def test_keys_keep_bytes_and_versions(self):
        job = tripod.create_job("keys", tasks=1, **self.at)
        whole = bytes(range(256))
        self.assertEqual(tripod.put("a/bytes", whole, job=job), 1)
        self.assertEqual(tripod.get("a/bytes", job=job), whole)
        self.assertEqual(tripod.put("a/text", "zwei Wörter\n", job=job), 1)
        self.assertEqual(tripod.get("a/text", job=job).decode(), "zwei Wörter\n")
        self.assertEqual(tripod.put("a/text", b"", job=job, expected_version=1), 2)
        self.assertEqual(tripod.read("a/text", job=job).value, b"")
        self.assertEqual([(one.key, one.value, one.version) for one in tripod.list("a/", job=job)],
                         [("a/bytes", whole, 1), ("a/text", b"", 2)])
        (only,) = tripod.list("a/", job=job, limit=1, keys_only=True)
        self.assertEqual((only.key, only.value), ("a/bytes", None))
        self.assertEqual(tripod.delete("a", job=job), 2, "the key and everything under it")
        self.assertEqual(tripod.list(job=job), [])

    def test_refused_writes_and_missing_keys_have_their_codes(self):
        tripod.put("there", b"1", **self.at)
        for code, kind, call in [
            ("T6201", tripod.UnknownError, lambda: tripod.get("not-there", **self.at)),
            ("T6202", tripod.ExistsError, lambda: tripod.put("there", b"2", create_only=True, **self.at)),
            ("T6203", tripod.VersionError, lambda: tripod.put("there", b"2", expected_version=9, **self.at)),
            ("T6101", tripod.UnknownError, lambda: tripod.put("there", b"2", job="nobody", **self.at)),
        ]:
            with self.subTest(code), self.assertRaises(kind) as caught:
                call()
            self.assertEqual(caught.exception.code, code)

    def test_names_that_look_like_flags_are_names(self):
        self.assertEqual(tripod.put("--json", b"-", **self.at), 1)
        self.assertEqual(tripod.get("--json", **self.at), b"-")
        self.assertEqual([one.key for one in tripod.list("--", **self.at)], ["--json"])
        self.assertEqual(tripod.delete("--json", **self.at), 1)

    def test_a_program_is_every_task_of_a_job(self):
        before = {job.name for job in tripod.jobs(**self.at)}
        ended = tripod.run([sys.executable, "-c", TASK], tasks=2, capture=True, env={"MORE": "yes"}, **self.at)
        self.assertEqual([(one.task, one.status, one.output) for one in ended], [(0, 0, "0 2 yes\n"), (1, 0, "1 2 yes\n")])
        self.assertEqual({job.name for job in tripod.jobs(**self.at)}, before, "its own job was deleted")

    def test_a_task_that_fails_is_named(self):
        with self.assertRaises(tripod.ProgramError) as caught:
            tripod.run([sys.executable, "-c", "import sys; sys.exit(3)"], job="fails", capture=True, **self.at)
        self.assertEqual(caught.exception.statuses, (3,))
        self.assertIn("job `fails`: task 0 ended with status 3; next: `tripod job show fails`", str(caught.exception))
        (ended,) = tripod.run(["false"], job="fails-too", capture=True, check=False, **self.at)
        self.assertEqual(ended.status, 1)

    def test_tasks_that_take_too_long_are_ended(self):
        with self.assertRaisesRegex(tripod.ProgramError, "tasks 0 of job `long` did not end within 0.2 s"):
            tripod.run(["sleep", "600"], job="long", capture=True, timeout_s=0.2, **self.at)

    def test_the_cluster_is_described(self):
        self.assertEqual(self.cluster.leader(), 1)
        self.assertEqual(self.cluster.status()["quorum"]["voters"], 1)
        self.assertEqual(list(self.cluster.pids), [1])
        with self.assertRaisesRegex(tripod.ClusterError, "node 2 does not run; nodes of this cluster: 1"):
            self.cluster.kill(2)


@unittest.skipUnless(FOUND, "TRIPOD_BIN names no program, and PATH has none")
class ThreeNodes(unittest.TestCase):
    def test_a_killed_leader_is_replaced_and_nothing_is_lost(self):
        with tripod.Cluster() as cluster:
            pids = cluster.pids
            tripod.put("key", "before", endpoints=cluster.endpoints)
            killed = cluster.kill_leader()
            self.assertFalse(is_running(pids[killed]))
            self.assertEqual(tripod.get("key", endpoints=cluster.endpoints, timeout_s=DEADLINE_S), b"before")
            self.assertNotEqual(cluster.leader(DEADLINE_S), killed)
            others = [pid for node, pid in pids.items() if node != killed]
            self.assertTrue(all(map(is_running, others)))
        self.assertFalse(any(map(is_running, pids.values())))
        with self.assertRaisesRegex(tripod.ClusterError, "does not run"):
            cluster.endpoints


@unittest.skipUnless(FOUND, "TRIPOD_BIN names no program, and PATH has none")
class ItsEnd(unittest.TestCase):
    def test_a_cluster_ends_with_a_program_that_was_killed(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.stdin.close)
        pids = [int(pid) for pid in holder.stdout.readline().split()]
        self.assertTrue(pids and all(map(is_running, pids)), pids)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        self.assertTrue(until(DEADLINE_S, lambda: not any(map(is_running, pids))), "its nodes end")

    def test_why_it_did_not_begin_is_said(self):
        with self.assertRaisesRegex(tripod.ClusterError, "(?s)`tripod dev` ended: .*unexpected argument '--no-such-flag'"):
            tripod.Cluster(nodes=1, flags=["--no-such-flag"]).start()


if __name__ == "__main__":
    unittest.main()
