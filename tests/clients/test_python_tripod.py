"""The tests of the Python package `tripod`, with the program that TRIPOD_BIN names."""

import os
import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(__file__).parents[2] / "services" / "python-tripod"

if __name__ == "__main__":
    sys.path[:0] = [str(PACKAGE / "src"), str(PACKAGE / "tests")]
    # Programs that tests start are processes of their own.
    os.environ["PYTHONPATH"] = str(PACKAGE / "src")
    if not os.environ.get("TRIPOD_BIN"):
        sys.exit("TRIPOD_BIN must name the program: without it nothing is tested")
    found = unittest.defaultTestLoader.discover(str(PACKAGE / "tests"))
    sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
