"""Programs in Python that begin as forks of a clean process which has imported Duolog already.

A short program spends most of its time on importing the same modules: 1.7 of 2.1 seconds of CPU. These forks are still
separate processes, each with its directory, environment, files and signals. They are forked from a process without
threads that has run nothing, and so know nothing of the tests or of each other: see ``fork_server.py``.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import BinaryIO, Self

import fork_server
from fork_server import LONGEST, Program, ended, started

__all__ = ("Forked", "run_forked")

_IMPORTED = (
    *(f"duolog.cli.commands.{name}" for name in ("export", "fork", "replay", "report", "run")),
    *(f"duolog.cli.commands.{name}" for name in ("score", "sessions", "show")),
    "duolog.cli.app",
    "duolog.cli.reporting",
    "duolog.experiments.running",
    "duolog.experiments.sources",
    "duolog.cli.scoring",
    "duolog.engine.log.sqlite",
    "duolog.engine.session.simulation",
    "duolog.agents.players",
    "duolog.users.players",
    "duolog.tasks.rule_user",
    "duolog.examples.travel",
    "duolog.scoring.report",
    "anyio._backends._asyncio",
    "rich.progress",
    "rich.table",
    "structlog",
)
"""What most programs import; one that is missing here only costs time."""

_SCREENS = (
    "duolog.cli.chat.app",
    "duolog.cli.commands.chat",
    "duolog.cli.commands.watch",
    "duolog.cli.watch.app",
)
"""What programs on the whole screen import in addition."""

_MODELS = ("litellm", "openai", "httpx", "aiohttp", "tiktoken")
"""Packages of which LiteLLM imports most when it is used."""


class Forked:
    """A program, as ``subprocess.Popen`` with the interpreter is one; its streams are bytes.

    Args:
        arguments: the arguments of the interpreter: ``-P`` and ``-W`` if wanted, then ``-m`` or ``-c`` and what is the
            program's own.
        where: the working directory; the tests' own by default.
        environment: all variables of the program; those of the tests by default.
        stdin, stdout, stderr: descriptors, or ``subprocess.PIPE`` or ``DEVNULL``, which is the default.
        leads: whether it leads a session, whose controlling terminal is its input.
        screen: whether it runs on the whole screen.
        models: whether it calls models through LiteLLM, which the tests' process must have loaded.

    Attributes:
        pid: the process id.
        returncode: how it has ended, negative if by a signal; None until that is known.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        where: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        leads: bool = False,
        screen: bool = False,
        models: bool = False,
    ) -> None:
        program = Program(
            arguments=[*arguments],
            where=str(where or Path.cwd()),
            environment={**(os.environ if environment is None else environment)},
            paths=_paths(),
            leads=leads,
        )
        self.returncode: int | None = None
        self.stdin: BinaryIO | None = None
        self.stdout: BinaryIO | None = None
        self.stderr: BinaryIO | None = None
        message = json.dumps(program).encode()
        assert len(message) < LONGEST
        with ExitStack() as ours:  # closes here what the program has

            def theirs(given: int, writes: bool) -> tuple[int, int | None]:
                if given == subprocess.DEVNULL:
                    given = os.open(os.devnull, os.O_RDWR)
                    ours.callback(os.close, given)
                if given != subprocess.PIPE:
                    return given, None
                reading, writing = os.pipe()
                end, other = (writing, reading) if writes else (reading, writing)
                ours.callback(os.close, end)
                return end, other

            (read, typed), (out, said), (err, complained) = (
                theirs(given, writes)
                for given, writes in ((stdin, False), (stdout, True), (stderr, True))
            )
            self._told, tells = os.pipe()
            self._asking = threading.Lock()
            weakref.finalize(self, os.close, self._told)
            ours.callback(os.close, tells)
            server = _server(
                _on_models() if models else (*_IMPORTED, *(_SCREENS if screen else ()))
            )
            socket.send_fds(server, [message], [read, out, err, tells])
        self.stdin = None if typed is None else os.fdopen(typed, "wb", buffering=0)
        self.stdout = None if said is None else os.fdopen(said, "rb")
        self.stderr = None if complained is None else os.fdopen(complained, "rb")
        [self.pid] = started.unpack(os.read(self._told, started.size))

    def poll(self) -> int | None:
        """How it has ended, or None."""
        return self._wait(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """How it ends.

        Raises:
            TimeoutExpired: it does not within so many seconds.
        """
        code = self._wait(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired("a forked program", timeout)
        return code

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            with self._asking:  # another thread may ask too
                if self.returncode is None:
                    [self.returncode] = ended.unpack(os.read(self._told, ended.size))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, text: str | None = None) -> tuple[str, str]:
        """Types a text and the end of input, waits for its end, and returns what it has written to both streams."""

        def rest(stream: BinaryIO | None) -> str:
            if stream is None:
                return ""
            with stream:
                return stream.read().decode().replace("\r\n", "\n")

        with ThreadPoolExecutor() as readers:
            texts = [readers.submit(rest, stream) for stream in (self.stdout, self.stderr)]
            if self.stdin is not None:
                with self.stdin:
                    self.stdin.write((text or "").encode())
            said, complained = (text.result() for text in texts)
        self.wait()
        return said, complained

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def run_forked(
    arguments: Sequence[str],
    where: Path,
    environment: Mapping[str, str],
    *,
    text: str | None = None,
    models: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs a program as ``subprocess.run`` does with the interpreter; gives exit code and output.

    Args:
        arguments: as of ``Forked``.
        where: the working directory.
        environment: all variables of the program.
        text: what is typed, before the end of input.
        models: whether it calls models through LiteLLM.
    """
    pipe = subprocess.PIPE
    with Forked(
        arguments,
        where,
        environment,
        stdin=subprocess.DEVNULL if text is None else pipe,
        stdout=pipe,
        stderr=pipe,
        models=models,
    ) as program:
        texts = program.communicate(text)
    assert program.returncode is not None
    return subprocess.CompletedProcess([*arguments], program.returncode, *texts)


def _on_models() -> tuple[str, ...]:
    """What programs on models import: of LiteLLM, as much as has been needed in this process."""
    loaded = tuple(
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in _MODELS and getattr(module.__spec__, "name", None) == name
    )
    assert "litellm" in loaded, "a test that starts programs on models needs litellm_at_work"
    return (*_IMPORTED, "duolog.engine.models.litellm.client", *loaded)


_SERVERS: dict[bool | str, socket.socket] = {}


def _server(modules: Sequence[str]) -> socket.socket:
    """Calls of the process that has imported the modules; it ends with this one."""
    what = "models" if "litellm" in modules else "screens" if _SCREENS[0] in modules else "commands"
    if what not in _SERVERS:
        calls, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", fork_server.__file__, *modules],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # The rest of a key is waited for, however late it comes. Textual reads this when it is imported.
                env={**os.environ, "ESCDELAY": "60000"},
            )
        atexit.register(process.wait)
        atexit.register(calls.close)
        _SERVERS[what] = calls
    return _SERVERS[what]


@cache
def _paths() -> tuple[str, ...]:
    """The default module path of an interpreter."""
    show = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(show, check=True, capture_output=True, text=True, env=environment)
    return tuple(done.stdout.splitlines())
