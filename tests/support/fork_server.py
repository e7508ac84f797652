"""A process that imports modules once, and then becomes any number of programs, by forking.

``forked.py`` starts it, with a socket as its standard input. Each message is a program; with it come the program's
standard streams, and a pipe in which its process id is written, and how it ended. A fork leaves the loop of
``serve`` and runs the program as the interpreter would: so its exceptions, exit code and clean-up are those of Python.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import re
import runpy
import selectors
import signal
import socket
import struct
import sys
import termios
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeAlias, TypedDict

__all__ = ("LONGEST", "Program", "ended", "started")

LONGEST = 200_000
"""Bytes of the longest message."""

started = struct.Struct("i")
ended = struct.Struct("i")
"""A program's pipe is sent its process id, and later its exit code, negative if by a signal."""


Kinds: TypeAlias = type[Warning] | tuple[type[Warning], ...]
Filter: TypeAlias = tuple[str, re.Pattern[str] | None, Kinds, re.Pattern[str] | None, int]
"""What to do about which warnings, as Python keeps it."""


class Program(TypedDict):
    """What to become: the arguments of an interpreter, directory, variables, and the module path without them."""

    arguments: Sequence[str]
    where: str
    environment: dict[str, str]
    paths: Sequence[str]
    leads: bool
    """Whether it leads a session, whose controlling terminal is its standard input."""


def serve(calls: socket.socket) -> Program:
    """Forks a process for each message, until there are none. Returns in the forks only."""
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which then end this
    waiting = selectors.DefaultSelector()
    waiting.register(woken, selectors.EVENT_READ)
    waiting.register(calls, selectors.EVENT_READ)
    told: dict[int, int] = {}
    while True:
        ready = {key.fileobj for key, _ in waiting.select()}
        if woken in ready:
            os.read(woken, 1 << 16)
            _reap(told)
        if calls not in ready:
            continue
        message, handed, _, _ = socket.recv_fds(calls, LONGEST, 4)
        if not message:
            os._exit(0)
        *streams, tells = handed
        if pid := os.fork():
            told[pid] = tells
            os.write(tells, started.pack(pid))
            for stream in streams:
                os.close(stream)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        waiting.close()
        calls.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for unneeded in (woken, wakes, *handed, *told.values()):
            os.close(unneeded)
        program: Program = json.loads(message)
        return program


def _reap(told: dict[int, int]) -> None:
    """Tells of programs that have ended."""
    while told:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        tells = told.pop(pid)
        try:
            os.write(tells, ended.pack(os.waitstatus_to_exitcode(status)))
        except BrokenPipeError:
            pass  # the test waits for it no longer
        os.close(tells)


def become(program: Program, filters: Sequence[Filter]) -> None:
    """Makes this process what the interpreter would be, and runs the program. What imported modules have said
    about warnings comes before the program's options, as if it had imported them."""
    if program["leads"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(program["where"])
    os.environ.clear()
    os.environ.update(program["environment"])
    time.tzset()
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False, errors="backslashreplace")
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))

    said = program["environment"].get("PYTHONPATH")
    # An empty entry is the working directory.
    found = [entry or program["where"] for entry in said.split(os.pathsep)] if said else []
    sys.path[:] = [*found, *program["paths"]]
    words = [*program["arguments"]]
    safe = False
    while words[0] in ("-P", "-W"):
        if words.pop(0) == "-P":
            safe = True
        else:
            warnings.simplefilter(words.pop(0))  # type: ignore[arg-type]  # as the option has it
    warnings.filters = [*filters, *(one for one in warnings.filters if one not in filters)]
    kind, what, *rest = words
    if not safe:
        sys.path.insert(0, "" if kind == "-c" else program["where"])
    sys.argv = [kind, *rest]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert kind == "-c", f"what is {kind}?"
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    listening = socket.socket(fileno=os.dup(0))
    usual = [*warnings.filters]
    for name in sys.argv[1:]:
        import_module(name)
    gc.freeze()  # imported modules are not examined again in each fork
    become(serve(listening), [one for one in warnings.filters if one not in usual])
