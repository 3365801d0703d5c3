"""Programs as tasks of a job: `tripod run` once for each task, on this machine."""

import contextlib
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, List, Optional

from ._binary import binary
from ._call import Endpoints, joined
from ._errors import BinaryMissingError, ProgramError, TripodError
from ._jobs import JobName, delete_job, named

# Each is a process with an agent, and most programs of so many tasks run on several machines.
TASKS_MOST = 256
# Between SIGTERM and SIGKILL, when a task is not to run any more.
_STOP_S = 10.0
_LOOK_S = 0.02


@dataclass(frozen=True)
class Ended:
    """How one task ended."""

    task: int
    # Below 0 it is the number of the signal that ended it.
    status: int
    # What it wrote to standard output and to standard error, where that was captured.
    output: Optional[str] = None
    errors: Optional[str] = None


def run(
    program: Sequence[str],
    tasks: int = 1,
    *,
    job: Optional[JobName] = None,
    endpoints: Optional[Endpoints] = None,
    env: Optional[Mapping[str, str]] = None,
    flags: Sequence[str] = (),
    capture: bool = False,
    check: bool = True,
    timeout_s: Optional[float] = None,
) -> "list[Ended]":
    """Runs a program as every task of a job, each a process of this machine under `tripod run`, and waits for all of them.

    The program is told of its task and its coordinator by the environment, as JAX reads it. Without `job` it is a new one,
    which is deleted when all tasks have succeeded; otherwise it is created unless it exists. `env` is added to the
    environment, `flags` to the flags of `tripod run`. With `capture` the answers have what the tasks wrote; otherwise they
    write where this program does. `timeout_s` bounds the whole; None: nothing does. Whatever ends this call ends all
    tasks.

    Raises `ProgramError` if a task failed, unless `check` is false, or if the time was over.
    """
    if isinstance(program, str) or not program:
        raise TypeError('program is a list of the program and its arguments, such as ["python", "train.py"]')
    if not 1 <= tasks <= TASKS_MOST:
        raise ValueError(f"tasks is {tasks}; it is at least 1 and at most {TASKS_MOST}")
    name, endpoints = named(job or f"run-{secrets.token_hex(8)}", endpoints)
    command = [binary(), "run", "--job", name, "--tasks", str(tasks), *flags]
    command += [] if endpoints is None else ["--cluster", joined(endpoints)]
    end = None if timeout_s is None else time.monotonic() + timeout_s
    with contextlib.ExitStack() as stack:
        running: List[_Task] = []
        stack.callback(_stop, running)
        for number in range(tasks):
            one = _Task(number, [*command, "--task-id", str(number), "--", *program], env, capture, stack)
            running.append(one)
        while any([one.process.poll() is None for one in running]):
            if end is not None and time.monotonic() >= end:
                still = ", ".join(str(one.number) for one in running if one.process.poll() is None)
                _stop(running)
                raise ProgramError(f"tasks {still} of job `{name}` did not end within {timeout_s:g} s", _statuses(running))
            time.sleep(_LOOK_S)
        ended = [one.ended() for one in running]
    failed = [one for one in ended if one.status]
    if failed and check:
        raise ProgramError(_failure(name, failed), [one.status for one in ended])
    if job is None and not failed:
        # It is of no use any more; one that stays harms nobody.
        with contextlib.suppress(TripodError):
            delete_job(name, endpoints=endpoints)
    return ended


class _Task:
    """One `tripod run`."""

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        env: Optional[Mapping[str, str]],
        capture: bool,
        stack: contextlib.ExitStack,
    ) -> None:
        self.number = number
        # Files, and not pipes: nobody has to read while they run.
        self._files: "list[IO[bytes]]" = []
        if capture:
            self._files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        output, errors = self._files or (None, None)
        environment = None if env is None else {**os.environ, **env}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment
            )
        except OSError as error:
            raise BinaryMissingError(f"cannot run {command[0]}: {error}") from None

    def ended(self) -> Ended:
        """How it ended, as it has."""
        return Ended(self.number, self.process.wait(), *self._texts())

    def _texts(self) -> Iterator[str]:
        for file in self._files:
            file.seek(0)
            yield file.read().decode("utf-8", "replace")


def _stop(running: "List[_Task]") -> None:
    """Ends those that have not ended."""
    left = [one.process for one in running if one.process.poll() is None]
    for process in left:
        process.terminate()
    end = time.monotonic() + _STOP_S
    for process in left:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _statuses(running: "List[_Task]") -> "list[int]":
    return [one.process.wait() for one in running]


def _failure(name: str, failed: "List[Ended]") -> str:
    told = ", ".join(f"task {one.task} {_how(one.status)}" for one in failed)
    text = f"job `{name}`: {told}; next: `tripod job show {name}`"
    shown = [f"\ntask {one.task} wrote:\n{one.errors.rstrip()}" for one in failed if one.errors]
    return text + "".join(shown[:1])


def _how(status: int) -> str:
    return f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
