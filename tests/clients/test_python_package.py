"""The Python package's own tests, against the cluster that they bring along."""

import os
import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(__file__).parents[2] / "services" / "python"

if __name__ == "__main__":
    sys.path[:0] = [str(PACKAGE / "src"), str(PACKAGE / "tests")]
    # The workers that tests start are processes of their own.
    os.environ["PYTHONPATH"] = str(PACKAGE / "src")
    found = unittest.defaultTestLoader.discover(str(PACKAGE / "tests"))
    sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
