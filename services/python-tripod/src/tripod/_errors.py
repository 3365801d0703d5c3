"""What can go wrong, by who can do something about it."""

from collections.abc import Sequence
from typing import Optional


class TripodError(Exception):
    """A call failed. `code` is Tripod's code of it, such as `T6101`, `slug` its word, such as `job-unknown`, and `exit_code`
    the status with which `tripod` ended. All are None for what this package has found by itself."""

    def __init__(
        self, text: str, code: Optional[str] = None, slug: Optional[str] = None, exit_code: Optional[int] = None
    ) -> None:
        super().__init__(f"{code} {slug}: {text}" if code else text)
        self.text = text
        self.code = code
        self.slug = slug
        self.exit_code = exit_code

    def __reduce__(self) -> "tuple[object, ...]":
        return type(self), (self.text, self.code, self.slug, self.exit_code)


class BinaryMissingError(TripodError):
    """The program `tripod` is not on this machine, or cannot be run; the text says where it was looked for."""


class ClusterError(TripodError):
    """A cluster could not be started on this machine, or does not serve any more; the text has what it said."""


class UnreachableError(TripodError):
    """No node could be reached, none answered in time, or none leads (T2101 to T2104)."""


class UnknownError(TripodError):
    """There is no such job (T6101), or no such key (T6201)."""


class ExistsError(TripodError):
    """There is a job of that name already (T6102), or a key (T6202)."""


class VersionError(TripodError):
    """The key has another version than was expected (T6203)."""


class ProgramError(TripodError):
    """Tasks of `run` failed. `statuses` has the exit status of each task, in their order; below 0 it is the number of the
    signal that ended it."""

    def __init__(self, text: str, statuses: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.statuses = tuple(statuses)

    def __reduce__(self) -> "tuple[object, ...]":
        return type(self), (self.text, self.statuses)


_KINDS = {
    "T2101": UnreachableError,
    "T2102": UnreachableError,
    "T2103": UnreachableError,
    "T2104": UnreachableError,
    "T6101": UnknownError,
    "T6102": ExistsError,
    "T6201": UnknownError,
    "T6202": ExistsError,
    "T6203": VersionError,
}


def of_code(text: str, code: Optional[str], slug: Optional[str], exit_code: int) -> TripodError:
    """The error of a call by its code."""
    kind = _KINDS.get(code or "", TripodError)
    return kind(text, code, slug, exit_code)
