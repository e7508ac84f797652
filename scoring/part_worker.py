"""Scores a part of a log for another process: ``python -m duolog.scoring.part_worker``.

It reads what it is asked from its standard input and writes the answer to its standard output, in
MessagePack both.
"""

from __future__ import annotations

import gc
import signal
import sys
from functools import partial

import anyio
import msgspec

from ..engine.errors import DuologError, error_text
from ..engine.log.open import open_log
from ..engine.log.parts import Divisible
from .parts import Answer, Request
from .session_folds import SessionFolds

__all__ = ()


async def _score(request: Request) -> Answer:
    folds = SessionFolds(request.options(), process=request.process)
    async with open_log(request.url, create=False) as log:
        if not isinstance(log, Divisible):
            return Answer(error=f"{log.url} cannot be read in parts")
        await log.scan_part(request.part, folds.consume)
    return Answer(trajectories=tuple(folds.trajectories()))


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked is interrupted too, and ends this one
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Request)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # folds hold millions of objects that stay until the end
    try:
        answer = anyio.run(partial(_score, request))
    except DuologError as error:
        answer = Answer(error=error_text(error))
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()
