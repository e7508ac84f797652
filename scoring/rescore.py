"""Scores recorded sessions again; new measurements join the old ones, in their own streams."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.log.contract import EventLog
from ..engine.records import TRACE, Record
from ..engine.scorers.protocol import Scorer
from ..engine.scorers.runner import ScorerRunner

__all__ = ("rescore",)


async def rescore(log: EventLog, session: str, scorers: Sequence[Scorer]) -> int:
    """Has scorers measure a recorded session, open or closed, from its first record on.

    Measurements that the log already holds from this version of a scorer are kept, so repeating the
    call adds nothing. Another version of a scorer measures everything again.

    Args:
        log: the log, to read from and to append to.
        session: session id.
        scorers: the scorers.

    Returns:
        How many measurements were added.

    Raises:
        LogError: the log cannot take them.
    """
    trace: list[Record] = []
    measured: list[Record] = []
    async for record in log.read_all(session=session):
        (trace if record.stream == TRACE else measured).append(record)
    runner = ScorerRunner(log, session, scorers, recorded=measured)
    for record in trace:
        await runner.measure([record])
    held = len(trace) + len(measured)
    return (await log.summary(session)).events - held if trace else 0
