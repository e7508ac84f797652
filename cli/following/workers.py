"""Workers on this machine that score a log as it grows: started, and started again where one dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Final, final

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from ...scoring.following import FollowingStatistics
from ..output import say
from .options import FollowOptions
from .worker import FAILED, STOPPED

__all__ = ("Workers",)

_AGAIN: Final = 1.0  # seconds until a worker that died is replaced


@final
class Workers:
    """Keeps a number of workers alive.

    Args:
        options: what they score, and how.
        count: how many.
        report: called with how each stands, by number, whenever one says so.

    Attributes:
        code: exit code for all, where one ended by itself.
    """

    def __init__(
        self,
        options: FollowOptions,
        count: int,
        report: Callable[[dict[int, FollowingStatistics]], None],
    ) -> None:
        worker = "duolog.cli.following.worker"
        self._command = [sys.executable, "-P", "-m", worker, msgspec.json.encode(options).decode()]
        self._count = count
        self._report = report
        self._standing: dict[int, FollowingStatistics] = {}
        self._ending = anyio.Event()
        self.code = 0

    async def run(self, until: anyio.Event) -> None:
        """Keeps them alive until an event is set; ends them then, and waits for each."""
        async with anyio.create_task_group() as tasks:
            for number in range(self._count):
                tasks.start_soon(self._keep, number)
            tasks.start_soon(self._pass_on, until)
            await self._ending.wait()
            until.set()

    async def _pass_on(self, until: anyio.Event) -> None:
        await until.wait()
        self._ending.set()

    async def _keep(self, number: int) -> None:
        while not self._ending.is_set():
            code = await self._run(number)
            if self._ending.is_set():
                return
            if code in (0, FAILED, STOPPED):  # another one would end likewise
                self.code = code
                self._ending.set()
                return
            say(f"duolog: worker {number} has ended ({_how(code)}); another one takes its place")
            with anyio.move_on_after(_AGAIN):
                await self._ending.wait()

    async def _run(self, number: int) -> int:
        """Runs one worker to its end; its exit code."""
        process = await anyio.open_process(
            self._command,
            stdin=subprocess.PIPE,
            stderr=None,
            start_new_session=True,  # an interrupt is for who started it, who then ends it
        )
        async with process, anyio.create_task_group() as tasks:
            tasks.start_soon(self._end, process)
            await self._read(number, process)
            code = await process.wait()
            self._standing.pop(number, None)
            tasks.cancel_scope.cancel()
        return code

    async def _end(self, process: Process) -> None:
        await self._ending.wait()
        if process.stdin is not None:
            await process.stdin.aclose()

    async def _read(self, number: int, process: Process) -> None:
        assert process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(process.stdout):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._standing[number] = msgspec.json.decode(line, type=FollowingStatistics)
                self._report(self._standing)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
