"""The Python package's own tests, against the cluster that they bring along."""

import os
import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(__file__).parents[2] / "services" / "python"


def flat(tests):
    """Each test of a suite of suites."""
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


if __name__ == "__main__":
    sys.path[:0] = [str(PACKAGE / "src"), str(PACKAGE / "tests")]
    # The workers that tests start are processes of their own.
    os.environ["PYTHONPATH"] = str(PACKAGE / "src")
    found = unittest.defaultTestLoader.discover(str(PACKAGE / "tests"))
    if os.environ.get("TRIPOD_ENDPOINTS"):
        # Those of Mars bring their nodes and workers along, and have been run without a cluster.
        found = unittest.TestSuite(test for test in flat(found) if not type(test).__module__.startswith("mars."))
    sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
