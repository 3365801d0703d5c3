"""Where the program `tripod` is."""

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterator

from ._errors import BinaryMissingError

VARIABLE = "TRIPOD_BIN"
_NAME = "tripod"


def binary() -> str:
    """The path of the program `tripod`: what the environment's TRIPOD_BIN names, else that of the wheel of this package,
    else the one in PATH. Raises `BinaryMissingError`, whose text says what to do."""
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise BinaryMissingError(f"{VARIABLE}={named} is no program; name one, or unset {VARIABLE}")
        return found
    for folder in _scripts():
        path = os.path.join(folder, _NAME)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(_NAME)
    if found is None:
        raise BinaryMissingError(
            f"there is no program `{_NAME}`, neither beside this Python nor in PATH: install the wheel of tripod that has "
            f"it, or name it by the environment's {VARIABLE}"
        )
    return found


def _scripts() -> Iterator[str]:
    """Where an installer puts a wheel's programs."""
    yield sysconfig.get_path("scripts")
    # `pip install --user`.
    base = site.getuserbase()
    if base:
        yield os.path.join(base, "bin")
    # `pip install --target FOLDER`, whose packages are beside its programs.
    package = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(os.path.dirname(package), "bin")
    yield os.path.dirname(sys.executable)
