"""Scores parts of a log for another process: ``python -m duolog.scoring.part_worker``.

What it reads from its standard input and writes to its standard output, ``part_process`` says.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from ..engine.errors import DuologError, error_text
from ..engine.log.contract import EventLog
from ..engine.log.open import open_log
from ..engine.log.parts import Divisible, Part
from .part_process import HEADER, Answer, Request, framed
from .session_folds import SessionFolds

__all__ = ()

_T = TypeVar("_T")


def _read(kind: type[_T]) -> _T:
    """The next frame; ends this process where there is none.

    The other process has closed its end, or was killed, and nobody needs what is being done here.
    """
    header = sys.stdin.buffer.read(HEADER)
    data = sys.stdin.buffer.read(int.from_bytes(header, "big"))
    if not data:
        os._exit(0)
    return msgspec.msgpack.decode(data, type=kind)


def _read_parts(into: SimpleQueue[Part]) -> None:
    """Reads in a thread, so that the end is noticed while a part is scored."""
    while True:
        into.put(_read(Part))


def _write(answer: Answer) -> None:
    sys.stdout.buffer.write(framed(answer))
    sys.stdout.buffer.flush()


async def _score_parts(request: Request, parts: SimpleQueue[Part]) -> None:
    async with open_log(request.url, create=False) as log:
        while True:
            part = await anyio.to_thread.run_sync(parts.get)
            answer = await _answer(log, request, part)
            await anyio.to_thread.run_sync(_write, answer)


async def _answer(log: EventLog, request: Request, part: Part) -> Answer:
    if not isinstance(log, Divisible):
        return Answer(error=f"{log.url} cannot be read in parts")
    folds = SessionFolds(request.options(), process=request.process)
    await log.scan_part(part, folds.consume)
    return Answer(trajectories=tuple(folds.trajectories()))


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked is interrupted too, and ends this one
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # folds hold many objects that stay until the part is scored
    parts: SimpleQueue[Part] = SimpleQueue()
    request = _read(Request)
    threading.Thread(target=_read_parts, args=(parts,), daemon=True).start()
    try:
        anyio.run(partial(_score_parts, request, parts))
    except DuologError as error:
        _write(Answer(error=error_text(error)))


if __name__ == "__main__":
    _main()
