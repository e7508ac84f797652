"""Consumers: what reads the log to write to it, restartable, at its own pace, exactly once.

A consumer has a name and a version. Its checkpoint, kept under both, is moved in the same append
that holds its output, so a consumer that is killed anywhere goes on where it was, with nothing
lost and nothing recorded twice. A new version begins from the start, and is rebuilt beside the old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..errors import InvalidInput
from ..records import Draft, Record
from .contract import Advance, EventLog

__all__ = ("Consumer", "Output", "run_consumer")


class Output(NamedTuple):
    """What a consumer records: where, and what.

    Output of one batch in several places takes several appends, of which the last one moves the
    checkpoint. A batch that was interrupted is consumed again, so each draft needs an id then,
    which keeps it from being recorded twice.
    """

    session: str
    stream: str
    drafts: Sequence[Draft]


class Consumer(Protocol):
    """Consumes records in batches."""

    @property
    def name(self) -> str:
        """The consumer's name."""
        ...

    @property
    def version(self) -> str:
        """Its version; another version has a checkpoint of its own."""
        ...

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        """Takes the next records in order of position; gives what is to be recorded of them."""
        ...


async def run_consumer(
    log: EventLog, consumer: Consumer, *, upto: int | None = None, batch: int = 256
) -> int:
    """Runs a consumer from its checkpoint on; gives the position it has reached.

    Args:
        log: an open log.
        consumer: who consumes.
        upto: position to end at; None follows the log for as long as the task runs.
        batch: the most records to consume at once.

    Raises:
        CheckpointConflict: another instance of this consumer runs, and was faster.
        InvalidInput: output for several places without ids.
        LogClosed: the log was closed.
    """
    if batch < 1:
        raise InvalidInput(f"a batch must hold at least one record, not {batch}")
    at = await log.checkpoint(consumer.name, consumer.version)
    async with log.subscribe(after_position=at) as subscription:
        while upto is None or at < upto:
            records = [await anext(subscription)]
            while len(records) < batch and subscription.statistics().buffered:
                records.append(await anext(subscription))
            if upto is not None:
                records = [record for record in records if record.position <= upto]
            outputs = await consumer.consume(records)
            position = records[-1].position
            await _record(log, consumer, records[0].session, outputs, at, position)
            at = position
    return at


async def _record(
    log: EventLog,
    consumer: Consumer,
    session: str,
    outputs: Sequence[Output],
    at: int,
    position: int,
) -> None:
    advance = Advance(
        consumer=consumer.name, version=consumer.version, expected=at, position=position
    )
    outputs = [output for output in outputs if output.drafts] or [Output(session, "trace", ())]
    if len(outputs) > 1 and not all(draft.id for out in outputs for draft in out.drafts):
        raise InvalidInput(
            f"consumer {consumer.name!r} has output for {len(outputs)} places, which takes an id "
            "for each draft"
        )
    *others, last = outputs
    for output in others:
        await log.append(output.session, output.drafts, stream=output.stream)
    await log.append(last.session, last.drafts, stream=last.stream, checkpoint=advance)
