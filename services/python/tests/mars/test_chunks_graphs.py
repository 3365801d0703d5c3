"""Random graphs, cut by services/tile and computed here, are what numpy and pandas make of them: a few of those that
tests/clients/tile_numpy.py and tile_pandas.py compare."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
# The example `chunks` of services/tile.
PROGRAM = pathlib.Path(os.environ.get("TRIPOD_TILE_CHUNKS") or ROOT / "target/debug/examples/chunks")


@unittest.skipUnless(PROGRAM.is_file(), "`cargo build -p tripod-tile --example chunks` makes what cuts graphs")
class Graphs(unittest.TestCase):
    def compare(self, script, *arguments):
        command = [sys.executable, "-W", "ignore", ROOT / "tests/clients" / script, PROGRAM, *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(0, result.returncode, result.stderr)

    def test_random_tensors(self):
        self.compare("tile_numpy.py", "--graphs", "100", "--seed", "2")

    def test_chains_that_are_fused_are_the_same_bit_for_bit(self):
        self.compare("tile_numpy.py", "--graphs", "100", "--seed", "3", "--fused")

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not here")
    def test_random_frames(self):
        self.compare("tile_pandas.py", "--frames", "30", "--seed", "2")


if __name__ == "__main__":
    unittest.main()
