"""The Python package as `pip install ./services/python` installs it: built from the checkout, in an
environment that has nothing of the checkout, and without a package index."""

import pathlib
import tempfile
import unittest
import zipfile

from installed import PACKAGES, environment_of, run, wheel_of

PACKAGE = PACKAGES[0]
# Modules, what they say of their types, and messages.
KINDS = (".py", ".pyi", ".typed", ".bin")
USE = """
import pathlib, sys
import tripod_ray
from tripod_ray import local, wire, worker

place = pathlib.Path(tripod_ray.__file__)
assert pathlib.Path(sys.prefix) in place.parents, place
assert wire.RayTellRequest().orders.add().execute.task.name == b""
assert local._KEEPER.is_file()
print(place)
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tripod-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.wheel = wheel_of(PACKAGE, cls.folder)

    def test_the_wheel_has_all_modules_and_the_messages(self):
        held = set(zipfile.ZipFile(self.wheel).namelist())
        sources = (PACKAGE / "src" / "tripod_ray").iterdir()
        expected = {f"tripod_ray/{path.name}" for path in sources if path.suffix in KINDS}
        self.assertTrue({"tripod_ray/py.typed", "tripod_ray/api.pyi"} <= expected)
        self.assertIn("tripod_ray/descriptors.bin", expected)
        self.assertEqual({name for name in held if name.startswith("tripod_ray/")}, expected)
        mars = (PACKAGE / "src" / "tripod_mars").rglob("*")
        expected = {str(path.relative_to(PACKAGE / "src")) for path in mars if path.suffix in KINDS}
        self.assertIn("tripod_mars/descriptors.bin", expected)
        self.assertEqual({name for name in held if name.startswith("tripod_mars/")}, expected)

    def test_it_works_where_nothing_else_of_the_checkout_is(self):
        python = environment_of([self.wheel], self.folder)
        place = python.parents[1]
        self.assertIn(str(place), run(python, "-c", USE))
        self.assertIn("--slots", run(place / "bin" / "tripod-ray-worker", "--help"))


if __name__ == "__main__":
    unittest.main()
