"""Folds a part of a log for another process: ``python -m duolog.scoring.columns.worker``.

It reads a ``PartRequest`` from its standard input, and writes the rows as MessagePack.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from functools import partial

import anyio
import msgspec

from ...engine.errors import DuologError
from ...engine.log.open import open_log
from .log import PartRequest, fold_part

__all__ = ()

_LOOK = 0.5  # seconds


async def _fold(request: PartRequest) -> bytes:
    async with open_log(request.url, create=False) as log:
        return msgspec.msgpack.encode(await fold_part(log, request))


def _end_with(asker: int) -> None:
    """Ends this process once the one that asked is gone, since the answer would go unread."""
    while os.getppid() == asker:
        threading.Event().wait(_LOOK)
    os._exit(1)


def _main() -> int:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # folds are many objects that stay until the end
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=PartRequest)
    threading.Thread(target=_end_with, args=(request.asker,), daemon=True).start()
    try:
        rows = anyio.run(partial(_fold, request))
    except (DuologError, KeyboardInterrupt):
        return 1  # the other process finds the same error, and says it once
    sys.stdout.buffer.write(rows)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
