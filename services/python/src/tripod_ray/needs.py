"""What a task needs of its worker, and what a worker has: in thousandths, as the cluster counts."""

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

from . import wire

# More of anything is a mistake, and a thousandth of the largest number would not be exact.
_AMOUNT_MAX = 1_000_000
_MEMORY_BYTES_MAX = 1 << 50
# Of a task or a worker: each is looked at whenever a task is given to somebody.
_RESOURCES_MAX = 32
_PRIORITY_MAX = 2**31 - 1
# As they are written in metadata.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class Needs(NamedTuple):
    """Of a task. What is 0 or empty is what every worker has."""

    priority: int = 0
    cpus_milli: int = 0
    memory_bytes: int = 0
    # Pairs of a name and thousandths, in the order of the names.
    resources_milli: tuple = ()

    def write(self, options):
        """Writes what is not the default into a `RayTaskOptions`."""
        if self.priority:
            options.priority = self.priority
        if self.cpus_milli:
            options.cpus_milli = self.cpus_milli
        if self.memory_bytes:
            options.memory_bytes = self.memory_bytes
        for name, milli in self.resources_milli:
            options.resources_milli[name] = milli

    def named(self):
        """The options that are not the default, for people."""
        return ", ".join(name for name, (field, _) in _OPTIONS.items() if getattr(self, field))


NONE = Needs()


def changed(needs, options):
    """The needs with other values of the options that are given, by their names; None is the default. Raises
    `ValueError` or `TypeError`, which name the option."""
    fields = {}
    for name, value in options.items():
        field, read = _OPTIONS[name]
        fields[field] = getattr(NONE, field) if value is None else read(name, value)
    return needs._replace(**fields)


def offers(num_cpus=None, memory=None, resources=None):
    """The metadata by which a worker says what it has. What is None is not said: one processor, memory that nobody knows,
    and no resources. `resources` may be a text, `gpu=1,licence=0.5`. Raises as `changed`."""
    metadata = []
    if num_cpus is not None:
        cpus_milli = _thousandths("num_cpus", _number("num_cpus", num_cpus))
        if not cpus_milli:
            raise ValueError("num_cpus of a worker is above 0")
        metadata.append((wire.CPUS_MILLI, str(cpus_milli)))
    if memory is not None:
        metadata.append((wire.MEMORY_BYTES, str(_memory("memory", memory))))
    if resources is not None:
        pairs = _resources("resources", _read_resources(resources) if isinstance(resources, str) else resources)
        metadata.append((wire.RESOURCES_MILLI, ",".join(f"{name}={milli}" for name, milli in pairs)))
    return tuple(metadata)


def _priority(option, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option} is an integer, and not {value!r}")
    if not -_PRIORITY_MAX <= value <= _PRIORITY_MAX:
        raise ValueError(f"{option} is {value}, and has 32 bits")
    return value


def _thousandths(option, value):
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{option} is a number, and not {value!r}")
    if not math.isfinite(value) or not 0 <= value <= _AMOUNT_MAX:
        raise ValueError(f"{option} is {value}; it is at least 0 and at most {_AMOUNT_MAX}")
    milli = round(value * 1000)
    if abs(value * 1000 - milli) > 1e-6 * max(1, milli):
        raise ValueError(f"{option} is {value}, and is counted in thousandths")
    return milli


def _memory(option, value):
    """Bytes: an integer, or a text such as `4GiB`."""
    amount, unit = value, 1
    if isinstance(value, str):
        match = _MEMORY.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{option} is {value!r}; write bytes, or a text such as 512MiB or 4GiB")
        amount, unit = float(match[1]) if "." in match[1] else int(match[1]), _UNITS[match[2]]
    if isinstance(amount, bool) or not isinstance(amount, Real):
        raise TypeError(f"{option} is a number of bytes or a text such as 4GiB, and not {value!r}")
    if not math.isfinite(amount) or not 0 <= amount * unit <= _MEMORY_BYTES_MAX:
        raise ValueError(f"{option} is {value}; it is at least 0 and at most {_MEMORY_BYTES_MAX} bytes")
    size_bytes = int(amount * unit)
    if size_bytes != amount * unit:
        raise ValueError(f"{option} is {value}, which is no whole number of bytes")
    return size_bytes


def _resources(option, value):
    if not isinstance(value, Mapping):
        raise TypeError(f"{option} is a dict of names and numbers, and not {value!r}")
    if len(value) > _RESOURCES_MAX:
        raise ValueError(f"{option} has {len(value)} names, and the limit is {_RESOURCES_MAX}")
    pairs = []
    for name, amount in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{option} has the name {name!r}; names have 1 to 64 letters, digits, or any of . _ -"
            )
        milli = _thousandths(f"{option}[{name!r}]", amount)
        if milli:
            pairs.append((name, milli))
    return tuple(sorted(pairs))


def _read_resources(text):
    """`gpu=1,licence=0.5`."""
    found = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, amount = (part.strip() for part in piece.partition("="))
        if not equals or name in found:
            raise ValueError(f"resources are {text!r}; write each once, as in gpu=1,licence=0.5")
        found[name] = _number(f"resources[{name!r}]", amount)
    return found


def _number(option, value):
    """The number that a text is, if it is one."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} is {value!r}, and is a number") from None


_OPTIONS = {
    "priority": ("priority", _priority),
    "num_cpus": ("cpus_milli", _thousandths),
    "memory": ("memory_bytes", _memory),
    "resources": ("resources_milli", _resources),
}
NAMES = frozenset(_OPTIONS)
