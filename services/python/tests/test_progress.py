"""What calls say that wait for long, and how little of this package errors show."""

import contextlib
import io
import os
import traceback
import unittest
from unittest import mock

import tripod_ray as ray
from tripod_ray import edge, progress
from tripod_ray.progress import Waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


class LongWaits(unittest.TestCase):
    def wait_until(self, waiting, seconds, stream):
        """What is said when so much time has gone by since the call began."""
        with mock.patch("time.monotonic", return_value=waiting._begun + seconds):
            with contextlib.redirect_stderr(stream):
                waiting.say(lambda: "2 of 3 objects did not come yet: ObjectRef(4), ObjectRef(5)")

    def test_it_is_said_on_a_terminal_ever_more_rarely(self):
        waiting, terminal = Waiting("get"), Terminal()
        for second in range(200):
            self.wait_until(waiting, second, terminal)
        said = terminal.getvalue().splitlines()
        self.assertEqual(
            said[0],
            "tripod_ray: get waits since 10 s: 2 of 3 objects did not come yet: ObjectRef(4), ObjectRef(5); next: "
            "`tripod ray tasks`",
        )
        self.assertEqual([line.split()[4] for line in said], ["10", "30", "70", "130", "190"])

    def test_a_log_gets_it_instead_and_no_other_stream_does(self):
        waiting, terminal, pipe = Waiting("wait"), Terminal(), io.StringIO()
        with self.assertLogs("tripod_ray", "INFO") as logs:
            self.wait_until(waiting, 11, terminal)
        self.assertRegex(logs.output[0], "wait waits since 11 s: 2 of 3")
        self.wait_until(Waiting("get"), 11, pipe)
        self.assertEqual((terminal.getvalue(), pipe.getvalue()), ("", ""))

    def test_a_wait_ends_at_its_end_or_when_there_is_something_to_say(self):
        waiting = Waiting("get")
        with mock.patch("time.monotonic", return_value=waiting._begun + 4):
            self.assertEqual(waiting.left(None), progress.FIRST_S - 4)
            self.assertEqual(waiting.left(waiting._begun + 5), 1)
            self.assertEqual(waiting.left(waiting._begun + 3), 0)

    def test_objects_are_named_and_counted(self):
        self.assertEqual(progress.late([7], 1, "yet"), "ObjectRef(7) did not come yet")
        self.assertEqual(progress.late([7], 2, "yet"), "1 of 2 objects did not come yet: ObjectRef(7)")
        self.assertIn("ObjectRef(4) and 5 more", progress.late(list(range(10)), 12, "yet"))
        self.assertEqual((progress.count(1), progress.count(2)), ("1 object", "2 objects"))


def fails():
    try:
        raise KeyError("what it came from")
    except KeyError as error:
        raise ray.StoreError("one line") from error


class Errors(unittest.TestCase):
    """The number is that of the walk-through of a new operator."""

    def shown(self, call):
        try:
            edge.interface(call)()
        except Exception as error:
            return "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.fail("it raises")

    def test_n40_of_this_package_there_is_one_frame(self):
        with mock.patch.dict(os.environ, {edge.VARIABLE: ""}):
            text = self.shown(fails)
        self.assertTrue(text.endswith("tripod_ray.errors.StoreError: one line\n"), text)
        # The caller's own, and the interface's.
        self.assertEqual(text.count("  File "), 2, text)
        self.assertNotIn("KeyError", text)

    def test_n40_the_environment_has_all_of_it_shown_and_debug_has_it_logged(self):
        with mock.patch.dict(os.environ, {edge.VARIABLE: "1"}):
            text = self.shown(fails)
        self.assertIn("KeyError", text)
        self.assertIn("in fails", text)
        with mock.patch.dict(os.environ, {edge.VARIABLE: ""}), self.assertLogs("tripod_ray", "DEBUG") as logs:
            self.shown(fails)
        self.assertIn("what it came from", logs.output[0])

    def test_other_errors_are_left_as_they_are(self):
        def mistake():
            return {}["not there"]

        self.assertIn("in mistake", self.shown(mistake))


class Interface(unittest.TestCase):
    def test_n39_what_is_no_handle_is_named_with_its_type(self):
        for call in (ray.get, ray.wait):
            with self.subTest(call), self.assertRaisesRegex(TypeError, f"^{call.__name__} takes .*int is not an ObjectRef$"):
                call(123)

    def test_n40_a_call_before_init_is_one_line(self):
        try:
            ray.put(1)
        except ray.NotConnectedError as error:
            self.assertEqual(str(error), "not connected: call tripod_ray.init() first")
            frames = traceback.extract_tb(error.__traceback__)
        self.assertEqual([frame.name for frame in frames if "tripod_ray" in frame.filename], ["put"])


if __name__ == "__main__":
    unittest.main()
