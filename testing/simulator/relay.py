"""Consumers that write to two sessions about each record: both outputs are there, once, or neither counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

import anyio

from ...engine.errors import CheckpointConflict
from ...engine.events import MessageSent
from ...engine.log.contract import EventLog
from ...engine.log.follower import CheckpointKey, Follower, Output
from ...engine.records import TRACE, Draft, Record
from ..tools import require
from .scenario import Operation

__all__ = ("RELAY", "Readers", "Relay", "check_relay")

RELAY: Final = "relay"
"""The name of the consumer, and how the names of all sessions of consumers begin."""

_LATEST = 60.0  # seconds within which a follower settles


@final
class Relay:
    """Writes the position of each record to two sessions."""

    name = RELAY
    version = "1"

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        """Gives the outputs for the next records, except for records of consumers."""
        return _outputs(self.name, records)


@final
class Readers:
    """Followers that keep a checkpoint, stop, and begin again at the last commit.

    Attributes:
        stands: by the name of a reader, where its checkpoint may stand.
    """

    def __init__(self) -> None:
        self.stands: dict[str, set[int]] = {}

    async def read(self, log: EventLog, operation: Operation) -> None:
        """Takes some records, is done with all but one of them, perhaps, and commits that."""
        name, draw = f"{RELAY}-{operation.worker}", operation.draw
        stands = self.stands.setdefault(name, {0})
        async with Follower(log, key=CheckpointKey(name, "1")) as follower:
            await follower.begin()
            began, head = follower.taken, log.statistics().position
            require(began in stands, f"a follower begins where it was: at {began}, not {stands}")
            if head <= began:
                return
            got, left = await _taken(follower, 1 + draw % 6, draw >> 4), draw >> 8 & 7
            where = [record.position for record in got]
            require(
                where == list(range(began + 1, began + 1 + len(got))), f"it leaves out: {where}"
            )
            done = [record for at, record in enumerate(got) if at != left]
            reached = where[left] - 1 if left < len(where) else where[-1]
            await _process(follower, done, lambda: reached >= log.statistics().position)
            require(follower.position == reached, f"it is done up to {reached}")
            upto = reached - 1 if draw & 2048 and reached - 1 > began else None
            reached = reached if upto is None else upto
            stands.add(reached)  # also if it is not known whether it was committed
            outputs = _outputs(name, [record for record in got if record.position <= reached])
            if operation.draw & 1 << 15:  # one place takes drafts without ids
                said = Draft(MessageSent(text=f"up to {reached}"), RELAY, "agent", 1.0)
                other = CheckpointKey(f"{name}-alone", "1")
                async with Follower(log, key=other) as alone:
                    await alone.begin()
                    await _alone(log, alone, Output(other.consumer, TRACE, [said]))
            await follower.commit(outputs, upto=upto)
            self.stands[name] = {reached}
            found = await log.checkpoint(name, "1")
            require(found == reached, f"a checkpoint is where it was moved: at {found}")
            stand = follower.statistics()
            known = (stand.checkpoint, stand.taken, stand.position)
            wanted = (reached, where[-1], follower.position)
            require(known == wanted, f"a follower knows where it is: {stand}")
            again = follower.position > reached
            require(follower.has_uncommitted == again, "a follower knows what is not committed")

    async def check(self, log: EventLog, records: Sequence[Record]) -> None:
        """Checks the outputs and checkpoints of an idle log."""
        check_relay(records, await log.checkpoint(RELAY, "1"), RELAY)
        for name, stands in self.stands.items():
            found = await log.checkpoint(name, "1")
            require(found in stands, f"the checkpoint of {name} is at {found}, not {stands}")
            check_relay(records, found, name)


async def _alone(log: EventLog, follower: Follower, output: Output) -> None:
    """Commits one output after the next record, and finds the checkpoint moved by one."""
    head = log.statistics().position
    if head <= follower.taken:
        return
    [record] = await follower.take(1)
    follower.done(record.position)
    try:
        await follower.commit([output])
    except CheckpointConflict:
        return  # another one was faster
    require(not follower.has_uncommitted, "what is processed is committed")
    require(follower.statistics().checkpoint == record.position, "with its checkpoint")


async def _taken(follower: Follower, most: int, draw: int) -> list[Record]:
    """Some records of a follower, one by one or several at once."""
    head = follower.taken + follower.statistics().lag
    got: list[Record] = []
    while len(got) < most and follower.taken < head:
        if draw & 1:
            got.append(await anext(follower))
        else:
            more = await follower.take(most - len(got))
            require(1 <= len(more) <= most - len(got), f"a follower takes {len(more)} at once")
            got += more
    return got


async def _process(follower: Follower, done: Iterable[Record], is_all: Callable[[], bool]) -> None:
    """Processes records, the last of them first; a task that waits for the follower to settle continues."""
    settling = asyncio.get_running_loop().create_task(follower.settle())
    try:
        await asyncio.sleep(0)
        settles = is_all()
        for record in reversed(list(done)):
            follower.done(record.position)
        if settles:
            with anyio.move_on_after(_LATEST):
                await asyncio.wait([settling])
            require(settling.done(), "a follower that has processed all has settled")
    finally:
        settling.cancel()
        await asyncio.wait([settling])


def _outputs(name: str, records: Sequence[Record]) -> list[Output]:
    said = [record.position for record in records if not record.session.startswith(RELAY)]
    return [
        Output(session, TRACE, [_draft(at) for at in said]) for session in _sessions(name) if said
    ]


def _sessions(name: str) -> tuple[str, str]:
    return f"{name}.0", f"{name}.1"


def _draft(position: int) -> Draft:
    text = str(position)
    return Draft(MessageSent(text=text), RELAY, "agent", 1.0, f"of {text}")


def check_relay(records: Sequence[Record], checkpoint: int, name: str) -> None:
    """Each record up to the checkpoint is in both sessions, and none is there twice.

    Args:
        records: all of the log.
        checkpoint: the checkpoint of the consumer.
        name: the name of the consumer.
    """
    for session in _sessions(name):
        said = Counter(record.caller_id for record in records if record.session == session)
        twice = [ident for ident, count in said.items() if count > 1]
        require(not twice, f"a consumer records nothing twice: {twice}")
        left_out = [
            record.position
            for record in records
            if record.position <= checkpoint
            and not record.session.startswith(RELAY)
            and f"of {record.position}" not in said
        ]
        require(not left_out, f"a consumer leaves nothing out: {left_out}")
