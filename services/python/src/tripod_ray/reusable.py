"""Reusable variables: what every worker makes once and tasks use, such as a model or a connection.

    reusables.model = Reusable(load_model, reset_model)

defines one; in tasks `reusables.model` is the worker's own. A task may change it: afterwards the worker makes
it anew with `reset_model(model)`, or with `load_model()` if no other function is given, so the next task sees
it fresh.
"""

import logging
import pickle

import cloudpickle

from . import context, runtime, wire
from .calls import Alone
from .errors import TripodError

VARIABLE_MAGIC = b"TPV1"

_log = logging.getLogger("tripod_ray")


class Reusable:
    """How a variable is made, and made anew after a task has used it."""

    def __init__(self, initializer, reinitializer=None):
        if not callable(initializer) or not (reinitializer is None or callable(reinitializer)):
            raise TypeError("a Reusable takes functions")
        self.initializer = initializer
        self.reinitializer = reinitializer


class ReusableError(TripodError):
    """A variable could not be made on this worker; the text says why."""


class Reusables:
    """The variables, as attributes. There is one instance, `tripod_ray.reusables`."""

    def __init__(self):
        object.__setattr__(self, "_definitions", {})
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_errors", {})

    def __setattr__(self, name, reusable):
        if not isinstance(reusable, Reusable):
            raise TypeError(f"{name} is defined by a Reusable; its value is not assigned")
        self._definitions[name] = reusable
        self._values[name] = reusable.initializer()
        self._errors.pop(name, None)
        process = runtime.connected()
        if process is not None:
            self._export(process, name)

    def __getattr__(self, name):
        task = context.current()
        if task is not None:
            task.touched.add(name)
        if name in self._errors:
            raise ReusableError(f"reusable variable {name} could not be made: {self._errors[name]}")
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"there is no reusable variable {name}") from None

    def __reduce__(self):
        return "reusables"

    def export_all(self, process):
        """Tells a cluster about the variables that were defined before."""
        for name in self._definitions:
            self._export(process, name)

    def take(self, variable):
        """Makes a variable that the scheduler sent. What goes wrong is told to the tasks that use it. Variables of
        other languages are left to their workers."""
        if not variable.initializer.implementation.startswith(VARIABLE_MAGIC):
            return
        name = variable.name.decode("utf-8", "replace")
        self._values.pop(name, None)
        try:
            again = variable.reinitializer.implementation
            reusable = Reusable(_load(variable.initializer.implementation), _load(again) if again else None)
            self._definitions[name] = reusable
            self._values[name] = reusable.initializer()
            self._errors.pop(name, None)
        except BaseException as error:  # The author's code may raise anything, and must not end the worker.
            self._fail(name, error)

    def renew(self, touched):
        """Makes anew what a task has used."""
        for name in touched:
            reusable = self._definitions.get(name)
            if reusable is None:
                continue
            try:
                if name in self._errors or reusable.reinitializer is None:
                    self._values[name] = reusable.initializer()
                else:
                    self._values[name] = reusable.reinitializer(self._values[name])
                self._errors.pop(name, None)
            except BaseException as error:  # As above.
                self._fail(name, error)

    def _fail(self, name, error):
        _log.warning("reusable variable %s could not be made: %r", name, error)
        self._errors[name] = repr(error)
        self._values.pop(name, None)

    def _export(self, process, name):
        reusable = self._definitions[name]
        variable = wire.message("ReusableVar")(name=name.encode())
        variable.initializer.implementation = _dump(reusable.initializer)
        if reusable.reinitializer is not None:
            variable.reinitializer.implementation = _dump(reusable.reinitializer)
        request = wire.ExportReusableVariableRequest(reusable_variable=variable)
        process.outbox.ask(Alone(wire.EXPORT_VARIABLE, request))


def _dump(function):
    return VARIABLE_MAGIC + cloudpickle.dumps(function)


def _load(data):
    if not data.startswith(VARIABLE_MAGIC):
        raise ValueError("it was not defined by this package")
    return pickle.loads(data[len(VARIABLE_MAGIC) :])


reusables = Reusables()
