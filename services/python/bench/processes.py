"""What a program and everything that it started cost, seen from outside by the kernel's counts (Linux)."""

import ctypes
import os
import pathlib
import signal
import subprocess

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PROC = pathlib.Path("/proc")
_STOP_S = 30


def adopt_orphans():
    """Processes whose parents ended become this process's children, so that none is missed."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(pid):
    """A process and those that it started, directly or not, and that have not ended."""
    children = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, at = [pid], 0
    while at < len(found):
        found.extend(children.get(found[at], ()))
        at += 1
    return found


def cpu_s(pid):
    """Processor seconds of a process and all that it started, by name. What children used that have ended is
    counted with whoever waited for them."""
    used = {}
    for one in descendants(pid):
        fields = _stat(one)
        if fields is None:
            continue
        name = _name(one)
        # Of itself in user and kernel mode, and the same of children that were waited for.
        used[name] = used.get(name, 0.0) + sum(int(field) for field in fields[11:15]) * _TICK_S
    return used


def kill_all_but(pid):
    """Ends, by process id, what a program left that was ours to end with it, and waits for it."""
    left = [one for one in descendants(pid) if one != pid]
    for one in left:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def stop(child):
    """Waits for a program's own end, and ends it if it does not come."""
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _stat(pid):
    """The fields of /proc/PID/stat behind the name, which may have blanks in it: state, parent, ..."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _name(pid):
    """A short name of what a process is."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return "ended"
    program = pathlib.Path(words[0].split()[0] if words[0] else "kernel").name
    if program == "tripod":
        return " ".join(words[:2]).rpartition("/")[2]
    for word in words[1:]:
        if word.endswith("tripod_ray.worker"):
            return "python worker"
        if word.endswith(".py"):
            return pathlib.Path(word).name
    return program
