"""A process of its own that scores parts of a log for this one: how it is asked, and what it answers.

Both ways go frames: four bytes that say how long it is, then MessagePack. First comes how to score, then
one part after the other, and an answer to each. It ends at once when its standard input does, so that
it never outlives the process that started it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from ..engine.log.parts import Part
from ..engine.rounds import Rounds
from ..engine.session.time.timing import Timing
from .trajectory.options import Options
from .trajectory.points import Trajectory

__all__ = ("HEADER", "Answer", "PartProcess", "ProcessEnded", "Request", "framed", "part_process")

HEADER: Final = 4
"""Bytes before a frame that say how many it has."""

WORKER: Final = ("-m", "duolog.scoring.part_worker")
"""The program that scores parts."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Which log a process is asked to score parts of, and how: see ``Options``."""

    url: str
    process: bool
    rounds: Rounds
    taus: tuple[int, ...]
    utility: str | None
    judge: str
    timing: Timing
    idle_cap: int | float

    @classmethod
    def of(cls, url: str, options: Options, *, process: bool) -> Request:
        """A request to score with options, none of which is a function of the caller's own."""
        return cls(
            url=url,
            process=process,
            rounds=options.rounds,
            taus=options.taus,
            utility=options.utility,
            judge=options.judge,
            timing=options.timing,
            idle_cap=options.idle_cap,
        )

    def options(self) -> Options:
        """The options to score with."""
        return Options(
            rounds=self.rounds,
            taus=self.taus,
            utility=self.utility,
            judge=self.judge,
            timing=self.timing,
            idle_cap=self.idle_cap,
        )


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What it answers: the trajectories of a part, or why there are none."""

    trajectories: tuple[Trajectory, ...] = ()
    error: str = ""


def framed(message: Request | Part | Answer) -> bytes:
    """A message as it is sent."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(HEADER, "big") + data


class ProcessEnded(Exception):
    """The process could not be started, or has ended before it answered."""


@final
class PartProcess:
    """A process that scores parts, one after the other.

    Args:
        process: the running process.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._asked = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)

    async def score(self, part: Part) -> Answer:
        """Has it score a part.

        Raises:
            ProcessEnded: it ended instead.
        """
        try:
            await self._asked.send(framed(part))
            size = int.from_bytes(await self._answers.receive_exactly(HEADER), "big")
            data = await self._answers.receive_exactly(size)
            return await anyio.to_thread.run_sync(
                partial(msgspec.msgpack.decode, data, type=Answer)
            )
        except (anyio.BrokenResourceError, anyio.IncompleteRead):
            code = await self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ProcessEnded(how) from None
        except msgspec.DecodeError as error:
            raise ProcessEnded(str(error)) from error


@asynccontextmanager
async def part_process(request: Request) -> AsyncIterator[PartProcess]:
    """A process that scores as it is asked; it is gone when the block is left.

    Raises:
        ProcessEnded: it cannot be started.
    """
    with anyio.CancelScope(shield=True):  # else one that is just starting would be nobody's
        try:
            process = await anyio.open_process(
                [sys.executable, "-P", *WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what is wrong, this process finds too, and says it once
            )
        except OSError as error:
            raise ProcessEnded(str(error)) from error
    try:
        assert process.stdin is not None
        try:
            await process.stdin.send(framed(request))
        except anyio.BrokenResourceError:
            pass  # it has ended, as the first part that it is asked for will show
        yield PartProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
