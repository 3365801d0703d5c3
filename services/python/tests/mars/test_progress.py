"""How far long graphs are, and how little of the package their errors show."""

import contextlib
import io
import os
import sys
import traceback
import types
import unittest
from unittest import mock

import tripod_mars as mars
from tripod_mars import progress


class Lines(unittest.TestCase):
    def said_by(self, shown, at_s):
        """Seconds at which something is said."""
        said = []
        for second in at_s:
            with mock.patch("time.monotonic", return_value=shown._pauses.begun + second):
                if shown._pauses.due() is not None:
                    said.append(second)
        return said

    def test_lines_come_ever_more_rarely(self):
        self.assertEqual(self.said_by(progress.Lines("graph"), range(200)), [10, 30, 70, 130, 190])

    def test_without_tqdm_a_line_is_written(self):
        with mock.patch.dict(sys.modules, {"tqdm": None}):
            shown = progress.bar(True, "graph")
        self.assertIsInstance(shown, progress.Lines)
        with mock.patch("time.monotonic", return_value=shown._pauses.begun + 12):
            with contextlib.redirect_stderr(io.StringIO()) as written:
                progress.update(shown, types.SimpleNamespace(progress=0.25))
        self.assertEqual(written.getvalue(), "tripod_mars: graph runs since 12 s: 25 %\n")

    def test_a_log_is_told_where_there_is_no_terminal(self):
        logged = progress.Logged("graph x")
        with self.assertLogs("tripod_mars", "INFO") as logs:
            with mock.patch("time.monotonic", return_value=logged._pauses.begun + 12):
                logged.update(types.SimpleNamespace(progress=0.5))
        self.assertEqual(logs.records[0].getMessage(), "graph x runs since 12 s: 50 %")


class Errors(unittest.TestCase):
    """The number is that of the walk-through of a new operator."""

    def test_n40_without_a_session_there_is_one_frame_of_the_package(self):
        with mock.patch.dict(os.environ, {"TRIPOD_ENDPOINTS": "", "TRIPOD_TRACEBACK": ""}):
            try:
                mars.get_default_session()
            except mars.SessionError as error:
                frames = traceback.extract_tb(error.__traceback__)
        self.assertEqual([frame.name for frame in frames], [self._testMethodName, "get_default_session"])


if __name__ == "__main__":
    unittest.main()
