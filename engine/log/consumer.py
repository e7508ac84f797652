"""Consumers read the log and write output to it: restartable, at their own pace, exactly once.

A consumer has a name and a version. Its checkpoint, kept under both, moves in the same append that
holds its output. So a consumer that is killed at any point resumes there, with nothing lost and
nothing recorded twice. A new version starts over, and its output is separate from the old one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import InvalidInput
from ..plugins import PluginCall
from ..records import Record
from .contract import EventLog
from .follower import CheckpointKey, Follower, Output

__all__ = ("Consumer", "run_consumer")


class Consumer(Protocol):
    """Consumes records in batches."""

    @property
    def name(self) -> str:
        """The consumer's name."""
        ...

    @property
    def version(self) -> str:
        """Its version; each version has a separate checkpoint."""
        ...

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        """Takes the next records in order of position; returns the output to record for them.

        Output for several places needs an id for each draft, see ``Follower.commit``.
        """
        ...


async def run_consumer(
    log: EventLog, consumer: Consumer, *, upto: int | None = None, batch: int = 256
) -> int:
    """Runs a consumer from its checkpoint on; returns the position it has reached.

    Args:
        log: an open log.
        consumer: who consumes.
        upto: position to end at; None follows the log for as long as the task runs.
        batch: the most records to consume at once.

    Raises:
        CheckpointConflict: another instance of this consumer runs, and was faster.
        InvalidInput: output for several places without ids.
        LogClosed: the log was closed.
        PluginFailed: the consumer raised something other than an ``Exception``. An ``Exception``
            passes unchanged. In both cases the next run gets the batch again.
    """
    if batch < 1:
        raise InvalidInput(f"a batch must hold at least one record, not {batch}")
    key = CheckpointKey(consumer.name, consumer.version)
    async with Follower(log, key=key) as follower:
        await follower.begin()
        while upto is None or follower.position < upto:
            records = await follower.take(batch)
            if upto is not None:
                records = [record for record in records if record.position <= upto]
            with PluginCall(f"consumer {consumer.name!r}"):
                outputs = await consumer.consume(records)
            for record in records:
                follower.done(record.position)
            await follower.commit(outputs)
        return follower.position
