"""Scores the sessions of a large log in several processes, each a part of them.

The parts are whole sessions, so that each process folds its own as one process would fold all. This
process takes the first part. Where one of them fails, in whatever way, there is no result, and the caller
folds the log by itself: so what is raised is what one process raises, too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import anyio
import msgspec

from ..engine.errors import DuologError
from ..engine.log.contract import EventLog
from ..engine.log.parts import Divisible, Part
from ..engine.logger import get_logger
from ..engine.rounds import Rounds
from ..engine.session.time.timing import Timing
from .session_folds import SessionFolds
from .trajectory.options import Options
from .trajectory.points import Trajectory

__all__ = ("Answer", "Request", "Shared", "score_parts")

RECORDS: Final = 1 << 16
"""Records that are worth a process: it starts in 0.3 s, and folds so many in 0.5 s."""

WORKER: Final = ("-m", "duolog.scoring.part_worker")
"""The program that scores a part."""

_PLAIN: Final = Options()


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is shared among processes.

    Attributes:
        url: path or URL by which each of them opens the log, with a password if it needs one.
        processes: how many there are at most, this one included.
    """

    url: str
    processes: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is asked to score, and how: see ``Options``."""

    url: str
    part: Part
    process: bool
    rounds: Rounds
    taus: tuple[int, ...]
    utility: str | None
    judge: str
    timing: Timing
    idle_cap: int | float

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
    """What it answers: trajectories, or why there are none."""

    trajectories: tuple[Trajectory, ...] = ()
    error: str = ""


async def score_parts(
    log: EventLog, options: Options, *, process: bool, shared: Shared
) -> Sequence[Trajectory] | None:
    """The trajectories of all sessions, each part of them by a process.

    Args:
        log: the log.
        options: how to score.
        process: measure also how the parties worked together.
        shared: among which processes.

    Returns:
        The trajectories in order of the sessions' first records. None where the log is too small to
        be worth it or cannot be divided, where a function of the caller's own counts tokens or
        deferrals, which another process does not have, and where a process failed.

    Raises:
        LogClosed: the log is closed.
    """
    own = options.count is not _PLAIN.count or options.vague is not _PLAIN.vague
    wanted = min(shared.processes, log.statistics().position // RECORDS)
    if own or wanted < 2 or not isinstance(log, Divisible):
        return None
    parts = await log.parts(wanted)
    if len(parts) < 2:
        return None
    found: list[Sequence[Trajectory]] = [()] * len(parts)
    failed = False

    async def help_with(number: int) -> None:
        nonlocal failed
        answer = await _ask(_request(shared.url, parts[number], options, process=process))
        found[number] = answer.trajectories
        if answer.error:
            failed = True
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for number in range(1, len(parts)):
            tasks.start_soon(help_with, number)
        folds = SessionFolds(options, process=process)
        try:
            await log.scan_part(parts[0], folds.consume)
        except DuologError as error:  # which of all errors comes first, one process finds out
            get_logger("scoring").debug("a part was not scored", error=str(error))
            failed = True
            tasks.cancel_scope.cancel()
        else:
            found[0] = tuple(folds.trajectories())
    return None if failed else [item for part in found for item in part]


def _request(url: str, part: Part, options: Options, *, process: bool) -> Request:
    return Request(
        url=url,
        part=part,
        process=process,
        rounds=options.rounds,
        taus=options.taus,
        utility=options.utility,
        judge=options.judge,
        timing=options.timing,
        idle_cap=options.idle_cap,
    )


async def _ask(request: Request) -> Answer:
    """Has a process of its own answer; it is gone when this returns, or is cancelled."""
    with anyio.CancelScope(shield=True):  # else one that is just starting would be nobody's
        try:
            helper = await anyio.open_process(
                [sys.executable, "-P", *WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what is wrong, this process finds too, and says it once
            )
        except OSError as error:
            return _failed(str(error))
    assert helper.stdin is not None
    assert helper.stdout is not None
    answer = bytearray()
    try:
        await helper.stdin.send(msgspec.msgpack.encode(request))
        await helper.stdin.aclose()
        async for some in helper.stdout:
            answer += some
        code = await helper.wait()
        if code == 0:
            return msgspec.msgpack.decode(answer, type=Answer)
        why = f"exit code {code}"
    except (anyio.BrokenResourceError, msgspec.DecodeError) as error:
        why = str(error) or type(error).__name__
    finally:
        if helper.returncode is None:
            helper.kill()
        with anyio.CancelScope(shield=True):
            await helper.aclose()
    return _failed(why)


def _failed(why: str) -> Answer:
    get_logger("scoring").warning("a process that scored sessions failed", error=why)
    return Answer(error=why)
