"""Events as sessions have them, for the benchmarks of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import anyio
from duolog.engine.events import (
    JSON,
    ActionTaken,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Tokens,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.records import Draft

__all__ = ("EVENTS", "draft", "fill")

_WORDS = "the plan for day two has a museum near the hotel and dinner by the river at eight".split()


def _typical_events(count: int = 64) -> list[Event]:
    """Events of about 700 bytes each in the mean."""
    random = Random(5)

    def text(size: int) -> str:
        words: list[str] = []
        while sum(map(len, words)) + len(words) < size:
            words.append(random.choice(_WORDS))
        return " ".join(words)

    events: list[Event] = []
    for number in range(count):
        if number % 4 == 0:
            events.append(MessageSent(text=text(random.randrange(300, 900))))
        elif number % 4 == 1:
            wishes: Sequence[JSON] = [text(40) for _ in range(8)]
            arguments: Mapping[str, JSON] = {"city": "Oslo", "days": 3, "wishes": wishes}
            events.append(ActionTaken(name="search_stays", arguments=arguments))
        elif number % 4 == 2:
            events.append(NoteTaken(text=text(random.randrange(400, 800))))
        else:
            reply: JSON = {"text": text(600), "calls": [{"name": "wait", "arguments": {}}]}
            tokens = Tokens(prompt=1200, completion=150, cached=800)
            called = ModelCalled(
                model="m", purpose="act", request="0" * 32, reply=reply, tokens=tokens, latency=1.5
            )
            events.append(called)
    return events


EVENTS = _typical_events()


def draft(number: int) -> Draft:
    """A draft of a typical event."""
    return Draft(EVENTS[number % len(EVENTS)], "bot", "agent", number * 0.5, None, "trace/3", 4)


async def fill(opening: EventLog, sessions: int, count: int) -> None:
    """Writes a log of typical events.

    Args:
        opening: the log, not opened yet.
        sessions: how many write at once.
        count: events of all of them.
    """
    async with opening as log, anyio.create_task_group() as tasks:

        async def write(number: int) -> None:
            session = f"session-{number}"
            for start in range(0, count // sessions, 50):
                drafts = [draft(number + start + index) for index in range(50)]
                await log.append(session, drafts[: count // sessions - start])

        for number in range(sessions):
            tasks.start_soon(write, number)
