"""What the package does by itself: where the program is, what is refused before a call, and what errors become. A script
stands in for the program."""

import os
import pathlib
import pickle
import sys
import tempfile
import unittest
from unittest import mock

import tripod
from tripod import _call, _nodes

ECHO = """#!{python}
import json, sys
print(json.dumps({{"arguments": sys.argv[1:], "given": sys.stdin.read()}}))
"""
FAILS = """#!{python}
import sys
print({text!r}, file=sys.stderr)
sys.exit({status})
"""


class StandIn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "tripod"

    def use(self, script, **fields):
        self.path.write_text(script.format(python=sys.executable, **fields))
        self.path.chmod(0o755)
        patched = mock.patch.dict(os.environ, {"TRIPOD_BIN": str(self.path)})
        patched.start()
        self.addCleanup(patched.stop)


class Binary(StandIn):
    def test_what_the_environment_names_comes_first(self):
        self.use(ECHO)
        self.assertEqual(tripod.binary(), str(self.path))

    def test_that_of_the_wheel_comes_before_the_one_in_the_path(self):
        self.use(ECHO)
        with mock.patch("sysconfig.get_path", return_value=str(self.folder)):
            with mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
                del os.environ["TRIPOD_BIN"]
                self.assertEqual(tripod.binary(), str(self.path))

    def test_a_name_that_is_no_program_is_refused(self):
        with mock.patch.dict(os.environ, {"TRIPOD_BIN": "/nowhere/tripod"}):
            with self.assertRaisesRegex(tripod.BinaryMissingError, "TRIPOD_BIN=/nowhere/tripod is no program"):
                tripod.binary()

    def test_where_there_is_none_it_says_what_to_do(self):
        with mock.patch.dict(os.environ, {"PATH": "/nowhere", "TRIPOD_BIN": ""}):
            with mock.patch("tripod._binary._scripts", return_value=iter(["/nowhere"])):
                with self.assertRaisesRegex(tripod.BinaryMissingError, "install the wheel .*TRIPOD_BIN"):
                    tripod.binary()


class Calls(StandIn):
    def test_the_program_is_told_where_and_how_long(self):
        self.use(ECHO)
        told = _call.call(["kv", "put"], ["a:1", "b:2"], 2.5, b"bytes")
        self.assertEqual(told["arguments"], ["--json", "--endpoints", "a:1,b:2", "--timeout", "2.500", "kv", "put"])
        self.assertEqual(told["given"], "bytes")
        self.assertNotIn("--endpoints", _call.call(["status"])["arguments"])

    def test_an_error_has_its_code_also_behind_lines_of_a_log(self):
        told = '{"error":"nobody leads","code":"T2104","slug":"no-leader","exit_code":3}'
        self.use(FAILS, text=f"a line of a log\n{told}", status=3)
        with self.assertRaises(tripod.UnreachableError) as caught:
            tripod.get("x")
        error = caught.exception
        self.assertEqual((error.code, error.slug, error.exit_code), ("T2104", "no-leader", 3))
        self.assertEqual(str(error), "T2104 no-leader: nobody leads")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), again.code, str(again)), (type(error), error.code, str(error)))

    def test_an_error_of_another_form_is_told_as_it_is(self):
        for text in ("not JSON", "[1]", '{"code": "T1"}'):
            with self.subTest(text):
                self.use(FAILS, text=text, status=7)
                with self.assertRaises(tripod.TripodError) as caught:
                    tripod.jobs()
                self.assertEqual((str(caught.exception), caught.exception.code, caught.exception.exit_code), (text, None, 7))

    def test_a_program_that_does_not_end_is_ended(self):
        self.use("#!{python}\nimport time\ntime.sleep(600)\n")
        with mock.patch.object(_call, "_MARGIN_S", 0.1):
            with self.assertRaisesRegex(tripod.UnreachableError, "`tripod job list` did not end within 0.2 s"):
                tripod.jobs(timeout_s=0.1)

    def test_what_cannot_be_is_refused_before_any_call(self):
        for kind, call in [
            (TypeError, lambda: tripod.put("x", 5)),
            (TypeError, lambda: tripod.get("x", job=5)),
            (ValueError, lambda: tripod.get("x", endpoints=[])),
            (ValueError, lambda: tripod.get("x", timeout_s=0)),
            (TypeError, lambda: tripod.run("python train.py")),
            (ValueError, lambda: tripod.run(["true"], tasks=0)),
            (ValueError, lambda: tripod.run(["true"], tasks=100_000)),
            (ValueError, lambda: tripod.Cluster(nodes=0)),
        ]:
            with self.subTest(kind), mock.patch("subprocess.Popen", side_effect=AssertionError("a call was made")):
                self.use(ECHO)
                self.assertRaises(kind, call)


class Ports(unittest.TestCase):
    def test_ports_of_a_cluster_are_free(self):
        port = _nodes.free_port(3)
        self.assertTrue(all(_nodes._is_free(port + offset) for offset in (0, 1, 2, 100, 202, 300, 500)))

    def test_where_all_are_taken_it_says_so(self):
        with mock.patch.object(_nodes, "_is_free", return_value=False):
            with self.assertRaisesRegex(tripod.ClusterError, "no free ports for 3 nodes"):
                _nodes.free_port(3)


if __name__ == "__main__":
    unittest.main()
