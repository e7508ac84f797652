"""A program that speaks lines over its standard streams: started, spoken to, ended with its children."""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, final

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ...engine.errors import ModelBadReply, ModelDenied, ModelError, ModelUnavailable
from ...engine.redaction import redact
from . import keeper
from .surroundings import surroundings

__all__ = ("LineProcess",)

_MOST: Final = 8 * 1024 * 1024
"""Bytes that a program may write in one exchange."""

_MOST_TOLD: Final = 32 * 1024 * 1024
"""Bytes that it may write to its standard error in one exchange: agents may log there."""

_KEPT = sys.platform == "linux"
_GRACE = 2.0  # seconds to end by itself once its input is closed, and again once it is asked to
_TAIL = 2000  # bytes of its standard error that are kept
_SHOWN = 300  # and characters of that which an error quotes
_CHUNK = 65536
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


@final
class LineProcess:
    """One run of a program, with all processes that it starts: they end with it.

    On Linux these are all of its descendants, see ``keeper``; elsewhere its process group.

    Args:
        command: the program and its arguments; it runs in the current directory.
        name: of it, for errors.
        passed: names of environment variables that it gets, see ``surroundings``.
    """

    def __init__(self, command: Sequence[str], name: str, passed: Sequence[str] = ()) -> None:
        self._command = command
        self._name = name
        self._passed = passed
        self._process: Process | None = None
        self._buffer = bytearray()
        self._tail = b""
        self._failed = False
        self._outgoing: MemoryObjectSendStream[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs, and every exchange so far was completed."""
        process = self._process
        return process is not None and process.returncode is None and not self._failed

    async def start(self) -> None:
        """Starts it.

        Raises:
            ModelDenied: there is no such program, or it cannot be executed.
        """
        if sys.platform == "win32":
            raise ModelDenied(
                f"{self._name} cannot be started: agents that are programs need Linux or macOS (Duolog "
                "ends the program with all that it started); on Windows use an agent's URL"
            )
        environment = surroundings(self._passed)
        command = list(self._command)
        try:
            with anyio.CancelScope(shield=True):  # else nothing would end one that has just begun
                if _KEPT:
                    await anyio.to_thread.run_sync(_find, command[0], environment)
                    own = [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid())]
                    command = [*own, *command]
                self._process = await anyio.open_process(
                    command, env=environment, start_new_session=True
                )
        except OSError as error:
            raise ModelDenied(f"{self._name} cannot be started: {error}") from None

    def send(self, line: bytes) -> None:
        """Sends a line, while an exchange is under way."""
        if self._outgoing is not None:
            self._outgoing.send_nowait(line + b"\n")

    async def exchange(self, line: bytes, take: Callable[[bytes], Awaitable[bool]]) -> None:
        """Sends a line, and takes lines until one of them completes the exchange.

        Args:
            line: the first line to send.
            take: takes a line that came back; returns whether the exchange is complete.

        Raises:
            ModelUnavailable: the program ended before that.
            ModelBadReply: it wrote too much.
            ModelError: ``take`` raised it.
        """
        process = self._process
        if process is None:
            raise ModelUnavailable(f"{self._name} is not running")
        self._failed = True  # until the exchange is complete: it may be cancelled at any point
        outgoing, queued = anyio.create_memory_object_stream[bytes](math.inf)
        self._outgoing = outgoing
        failure: ModelError | None = None
        drained = anyio.Event()
        reading = anyio.CancelScope()
        with outgoing, queued:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write, process, queued)
                tasks.start_soon(self._keep_tail, process.stderr, drained, reading)
                tasks.start_soon(self._end_group, process)
                self.send(line)
                try:
                    with reading:
                        await self._read(process, take, drained)
                except ModelError as error:
                    failure = error
                if reading.cancelled_caught:
                    failure = self._too_much(f"{_MOST_TOLD // 2**20} MB to its standard error")
                tasks.cancel_scope.cancel()
        self._outgoing = None
        if failure is not None:
            raise failure
        self._failed = False

    async def stop(self) -> None:
        """Ends it: closes its input, asks it to end, kills it and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                await process.stdin.aclose()
            if not self._failed:
                await _ended(process)
            if process.returncode is None:
                _end(process, by=signal.SIGTERM)
                await _ended(process)
            if _KEPT and process.returncode is None:
                _end(process, by=signal.SIGUSR1)  # the keeper kills them all, and ends
                await _ended(process)
            _end(process, by=signal.SIGKILL)
            await process.aclose()

    async def _read(
        self, process: Process, take: Callable[[bytes], Awaitable[bool]], drained: anyio.Event
    ) -> None:
        searched, read = 0, len(self._buffer)
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                searched = 0
                if line.strip() and await take(line):
                    return
                continue
            searched = len(self._buffer)
            if read > _MOST:
                raise self._too_much(f"{_MOST // 2**20} MB")
            try:
                chunk = await process.stdout.receive(_CHUNK) if process.stdout else b""
            except _GONE:
                raise await self._early_end(process, drained) from None
            self._buffer += chunk
            read += len(chunk)

    def _too_much(self, what: str) -> ModelBadReply:
        return ModelBadReply(f"{self._name} wrote more than {what}, and has not answered")

    async def _early_end(self, process: Process, drained: anyio.Event) -> ModelUnavailable:
        """Explains a missing answer: how the program ended, and the last lines that it wrote."""
        with anyio.move_on_after(_GRACE):
            await process.wait()
            await drained.wait()
        code = process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        lines = redact(self._tail.decode("utf-8", "replace").strip()).splitlines()
        said = f"; it wrote: {' | '.join(lines)[-_SHOWN:]}" if lines else ""
        return ModelUnavailable(f"{self._name} {how} before it had answered{said}")

    async def _keep_tail(
        self, stream: ByteReceiveStream | None, drained: anyio.Event, reading: anyio.CancelScope
    ) -> None:
        """Drains standard error so that the program never blocks on it, and keeps the last part. Ends
        the reading of its answer if it writes too much.
        """
        told = 0
        while stream is not None:
            try:
                chunk = await stream.receive(_CHUNK)
            except _GONE:
                break
            self._tail = (self._tail + chunk)[-_TAIL:]
            told += len(chunk)
            if told > _MOST_TOLD:
                reading.cancel()
                break
        drained.set()

    async def _write(self, process: Process, queued: MemoryObjectReceiveStream[bytes]) -> None:
        async for line in queued:
            try:
                if process.stdin is not None:
                    await process.stdin.send(line)
            except _GONE:
                return  # it has ended, which reading will show

    async def _end_group(self, process: Process) -> None:
        """Ends the children of a program that has ended: they may hold its output open."""
        await process.wait()
        _end(process, by=signal.SIGKILL)


def _find(program: str, environment: Mapping[str, str]) -> None:
    """Looks for a program, which its keeper will start.

    Raises:
        OSError: there is none, or it cannot be executed.
    """
    if shutil.which(program, path=environment.get("PATH")) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


async def _ended(process: Process) -> None:
    """Waits for its end, for a while."""
    with anyio.move_on_after(_GRACE):
        await process.wait()


def _end(process: Process, *, by: int) -> None:
    """Sends a signal to a program and its children, or to the process that keeps them."""
    if sys.platform != "win32":  # no program is started there
        with suppress(ProcessLookupError, PermissionError):  # none is left
            os.killpg(process.pid, by)
