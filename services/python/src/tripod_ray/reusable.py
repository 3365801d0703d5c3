"""Reusable variables: what every worker makes once and tasks use, such as a model or a connection.

    reusables.model = Reusable(load_model, reset_model)

defines one; in tasks `reusables.model` is the worker's own. A task may change it: afterwards the worker makes
it anew with `reset_model(model)`, or with `load_model()` if no other function is given, so the next task sees
it fresh. A task that runs while another one waits is given an instance of its own, made with `load_model()`
unless one is at hand: no task sees what another one did.
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
        # Of each the instance that no task has.
        object.__setattr__(self, "_values", {})
        # The last ones that were made or given to tasks, for threads that belong to no task.
        object.__setattr__(self, "_last", {})
        # How often each was defined: an instance of an earlier definition is not kept.
        object.__setattr__(self, "_versions", {})
        object.__setattr__(self, "_errors", {})

    def __setattr__(self, name, reusable):
        if not isinstance(reusable, Reusable):
            raise TypeError(f"{name} is defined by a Reusable; its value is not assigned")
        self._define(name, reusable)
        self._keep(name, reusable.initializer())
        task = context.current()
        if task is not None:
            task.variables.pop(name, None)
        process = runtime.connected()
        if process is not None:
            self._export(process, name)

    def __getattr__(self, name):
        task = context.current()
        if task is not None:
            return self._of_task(task, name)
        self._check(name)
        try:
            return self._values[name] if name in self._values else self._last[name]
        except KeyError:
            raise AttributeError(f"there is no reusable variable {name}") from None

    def _of_task(self, task, name):
        """The instance of a task, which nobody else has until it ends."""
        if task.variables.get(name) is None:
            # It is made anew after the task, also if there is none now.
            task.variables[name] = None
            self._check(name)
            task.variables[name] = self._versions.get(name), self._take_out(name)
        return task.variables[name][1]

    def _take_out(self, name):
        if name in self._values:
            value = self._values.pop(name)
        elif name in self._definitions:
            try:
                value = self._definitions[name].initializer()
            except Exception as error:  # The author's code may raise anything.
                raise ReusableError(f"reusable variable {name} could not be made: {error!r}") from error
        else:
            raise AttributeError(f"there is no reusable variable {name}")
        self._last[name] = value
        return value

    def _check(self, name):
        if name in self._errors:
            raise ReusableError(f"reusable variable {name} could not be made: {self._errors[name]}")

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
        try:
            again = variable.reinitializer.implementation
            reusable = Reusable(_load(variable.initializer.implementation), _load(again) if again else None)
            self._define(name, reusable)
            self._keep(name, reusable.initializer())
        except BaseException as error:  # The author's code may raise anything, and must not end the worker.
            self._fail(name, error)

    def renew(self, used):
        """Makes anew what a task has used: `TaskContext.variables`. What is at hand already, since another task
        has given it back meanwhile, is not made twice."""
        for name, taken in used.items():
            reusable = self._definitions.get(name)
            if reusable is None or name in self._values:
                continue
            version, value = taken or (None, None)
            as_new = reusable.reinitializer is None or name in self._errors
            try:
                if as_new or version != self._versions[name]:
                    self._keep(name, reusable.initializer())
                else:
                    self._keep(name, reusable.reinitializer(value))
            except BaseException as error:  # As above.
                self._fail(name, error)

    def _define(self, name, reusable):
        self._definitions[name] = reusable
        self._versions[name] = self._versions.get(name, 0) + 1
        self._values.pop(name, None)

    def _keep(self, name, value):
        self._values[name] = self._last[name] = value
        self._errors.pop(name, None)

    def _fail(self, name, error):
        _log.warning("reusable variable %s could not be made: %r", name, error)
        self._errors[name] = repr(error)
        self._values.pop(name, None)
        self._last.pop(name, None)

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
