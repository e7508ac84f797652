"""Runs a program, and ends all of its descendants with it: a process between Duolog and the program.

A descendant that calls ``setsid`` leaves its process group, and a signal to the group does not reach
it. On Linux this process adopts such descendants (it is their "subreaper"), so it finds all of them.
It runs as a script, without Duolog and without other packages.

Duolog asks with SIGTERM that the program ends, and with SIGUSR1 that all descendants are killed. If
Duolog itself is killed, the system sends SIGUSR1. If the program ends, the descendants are killed, and
this process ends in the same way.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final

__all__ = ("NOT_FOUND", "keep")

NOT_FOUND: Final = 127
"""The exit code if the program cannot be started."""

_PARENT_DEATH: Final = 1
_SUBREAPER: Final = 36


def keep(parent: int, command: Sequence[str]) -> int:
    """Runs a program until it ends, and then kills its descendants.

    Args:
        parent: the process that started this one.
        command: the program and its arguments.

    Returns:
        The status of the program, negative for a signal.
    """
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_SUBREAPER, 1, 0, 0, 0)
    system.prctl(_PARENT_DEATH, signal.SIGUSR1, 0, 0, 0)
    asked = {signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)  # taken one by one, by sigwait
    if os.getppid() != parent:  # it was killed before the system was told of it
        return -signal.SIGKILL
    try:
        program = subprocess.Popen(command, start_new_session=True, preexec_fn=_unblock)  # noqa: PLW1509
    except OSError as error:
        sys.stderr.write(f"it cannot be started: {error.strerror or error}\n")
        return NOT_FOUND
    for descriptor in (0, 1):  # only the program holds them, so its end closes them
        os.close(descriptor)
    status = _status_of(program.pid, asked)
    _kill_descendants()
    return status


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _status_of(program: int, asked: set[signal.Signals]) -> int:
    """Waits until the program has ended; gives its status."""
    while True:
        status = _reap(program)
        if status is not None:
            return status
        received = signal.sigwait(asked)
        if received == signal.SIGTERM:
            _signal_group(program, signal.SIGTERM)
        elif received == signal.SIGUSR1:
            _signal_group(program, signal.SIGKILL)


def _reap(program: int) -> int | None:
    """Takes the children that have ended; gives the status of the program if it is among them."""
    status: int | None = None
    while True:
        try:
            found, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not found:
            return status
        if found == program:
            status = os.waitstatus_to_exitcode(how)


def _signal_group(program: int, number: int) -> None:
    try:
        os.killpg(program, number)
    except (ProcessLookupError, PermissionError):
        return  # all of them have ended


def _kill_descendants() -> None:
    """Kills the children until there are none: those of a child that was killed are adopted."""
    while True:
        for child in _children():
            try:
                os.kill(child, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> Iterator[int]:
    """The processes whose parent is this one."""
    own = str(os.getpid())
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if fields[1] == own:
            yield int(name)


def _end_like(status: int) -> int:
    """Ends this process by a signal if one ended the program; else gives the exit code."""
    if status >= 0:
        return status
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # the program has left its own
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.kill(os.getpid(), -status)
    return 128 - status


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Never called: it keeps the system from dropping signals that are to be waited for."""


if __name__ == "__main__":
    for _number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(_number, _on_signal)
    sys.exit(_end_like(keep(int(sys.argv[1]), sys.argv[2:])))
