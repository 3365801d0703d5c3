"""The Python package as `pip install ./services/python` installs it: built from the checkout, in an
environment that has nothing of the checkout, and without a package index."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv
import zipfile

PACKAGE = pathlib.Path(__file__).parents[2] / "services" / "python"
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
        # Building leaves files beside the sources.
        source = cls.folder / "source"
        shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        build = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(cls.folder)]
        run(sys.executable, "-m", "pip", *build, str(source))
        (cls.wheel,) = cls.folder.glob("*.whl")

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
        place = self.folder / "environment"
        venv.create(place, with_pip=True)
        python = place / "bin" / "python"
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", str(self.wheel))
        # What the package needs comes from here, and not from an index.
        (packages,) = place.glob("lib/python*/site-packages")
        (packages / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.assertIn(str(place), run(python, "-c", USE))
        self.assertIn("--slots", run(place / "bin" / "tripod-ray-worker", "--help"))


def run(*command):
    """Its output; if it fails, the error has that."""
    done = subprocess.run(
        [str(word) for word in command], cwd="/", env={}, capture_output=True, text=True, timeout=240
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    unittest.main()
