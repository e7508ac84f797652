"""Continuations of a session with fresh seeds differ: people do not say the same again, nor in the same order."""

from __future__ import annotations

import anyio
import pytest
from duolog.engine.events import MessageSent, SnapshotTaken
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE
from duolog.engine.session.fork import end_before_round
from duolog.engine.session.runner import run_session
from duolog.engine.task import Cell, Setting, find_task
from duolog.experiments.continuations import Changes, Continuations, load_records

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("task", ["travel", "finance", "proof"])
def test_fresh_seeds_after_a_cut_give_other_words_and_other_outputs(task: str) -> None:
    words, outputs = anyio.run(continued, task)
    assert len(words) == len(SEEDS)
    assert len(outputs) > 1


async def continued(task: str) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """What people said, and the outputs, after the cut."""
    cell = Cell(agent="one-stage", user="feedback", instance="1", seed=5)
    async with open_log("memory://") as log:
        session = find_task(task).session(cell, Setting())
        await run_session(log, session)
        records = await load_records(log, session.id)
        trace = [record for record in records if record.stream == TRACE]
        cut = end_before_round(trace, 3)
        words: set[tuple[str, ...]] = set()
        outputs: set[tuple[str, ...]] = set()
        for seed in SEEDS:
            fork = await Continuations(log).make(records, cut, Changes(seed=seed))
            await run_session(log, fork)
            after = [r for r in await load_records(log, fork.id) if r.version > cut]
            said = (r.event for r in after if r.role == "human")
            words.add(tuple(event.text for event in said if isinstance(event, MessageSent)))
            drawn = [r.event.digest for r in after if isinstance(r.event, SnapshotTaken)]
            outputs.add(tuple(drawn))
    return words, outputs
