"""The Python packages as `pip install` installs them: built from the checkout, in an environment that has nothing of the
checkout, and without a package index.

    python installed.py FOLDER

Makes FOLDER/environment with both packages, and prints a step with its interpreter. What they need comes from the
interpreter that runs this.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

from steps import emit

SERVICES = pathlib.Path(__file__).parents[2] / "services"
# Folders of the distributions `tripod-ray`, which has `tripod_mars` too, and `tripod`.
PACKAGES = (SERVICES / "python", SERVICES / "python-tripod")


def run(*command):
    """Its output; if it fails, the error has that."""
    done = subprocess.run(
        [str(word) for word in command], cwd="/", env={}, capture_output=True, text=True, timeout=240
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def wheel_of(package, folder):
    """Builds a package in a folder, and answers with its wheel."""
    # Building leaves files beside the sources.
    place = folder / package.name
    source = place / "source"
    shutil.copytree(package, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    build = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", place]
    run(sys.executable, "-m", "pip", *build, source)
    (wheel,) = place.glob("*.whl")
    return wheel


def environment_of(wheels, folder):
    """Makes an environment with these, and answers with its interpreter. What they need comes from here, and not from an
    index."""
    place = folder / "environment"
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", *wheels)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def main(folder):
    folder = pathlib.Path(folder)
    wheels = [wheel_of(package, folder) for package in PACKAGES]
    emit(step="installed", python=str(environment_of(wheels, folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
