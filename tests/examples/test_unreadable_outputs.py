"""In every shipped task, an output that cannot be read is worth 0: its author failed, not the measurement."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from duolog.engine import codec
from duolog.engine.events import JSON, MessageSent, SessionClosed, SnapshotTaken, UtilityScored
from duolog.engine.records import Record
from duolog.engine.rounds import RoundProjector
from duolog.engine.scorers.protocol import Measurement, RoundScorer, Scorer
from duolog.engine.task import Cell, Setting, find_task
from duolog.testing.records import RecordWriter

TASKS = ("data", "finance", "proof", "travel", "tutoring")


def scored(name: str, *outputs: JSON) -> UtilityScored:
    """The last score of a session in which an agent puts up some outputs."""
    task = find_task(name)
    [instance] = task.instances(1, 7)
    cell = Cell(agent="two-stage", user="proactive", instance=instance, seed=7)
    opened = task.session(cell, Setting()).opened
    script = RecordWriter()
    script.add(opened, "engine", "environment")
    script.add(MessageSent(text="Please help me."), "user", "human")
    for content in outputs:
        taken = SnapshotTaken(content=content, digest=codec.digest(content))
        script.add(taken, "agent", "agent")
    script.add(SessionClosed(reason="finished", by="agent"), "agent", "agent")
    [scorer] = task.scorers(opened)  # type: ignore[attr-defined]  # of the shipped tasks
    return anyio.run(last_score, scorer, script.records)


async def last_score(scorer: Scorer, records: Sequence[Record]) -> UtilityScored:
    session, projector = scorer.begin("s"), RoundProjector()
    found: list[Measurement] = []
    for record in records:
        found += await session.observe(record)
        over = projector.feed(record)
        if over is not None and isinstance(session, RoundScorer):
            found += await session.close_round(over)
    event = found[-1].event
    assert isinstance(event, UtilityScored)
    return event


@pytest.mark.parametrize("content", ["As discussed, I am on it!", {"rows": [1, 2]}], ids=str)
@pytest.mark.parametrize("name", TASKS)
def test_an_output_that_cannot_be_read_is_worth_nothing_and_says_so(
    name: str, content: JSON
) -> None:
    found = scored(name, content)
    assert (found.value, found.missing) == (0.0, None)
    assert found.parts == {"readable": 0.0}


@pytest.mark.parametrize("name", TASKS)
def test_a_later_output_that_can_be_read_counts_again(name: str) -> None:
    task = find_task(name)
    [instance] = task.instances(1, 7)
    best = task.best_output(instance, 7)  # type: ignore[attr-defined]  # of the shipped tasks
    found = scored(name, "As discussed, I am on it!", best.content)
    assert "readable" not in found.parts
    assert found.value is not None
