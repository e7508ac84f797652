"""Sessions made up at random, and logs that hold them interleaved."""

from __future__ import annotations

from collections.abc import Sequence

from duolog.engine.log.contract import EventLog
from duolog.engine.records import Record
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from hypothesis import strategies as st

MOVES = ("human", "agent", "draft", "edit", "score", "miss", "good", "bad", "rate", "close")


def script_of(moves: Sequence[str], session: str = "s") -> RecordWriter:
    """A session in which these things happen, as far as they can."""
    script = RecordWriter(session)
    script.opened(clock="virtual", config={"judge": "judge"})
    drafts: list[Record] = []
    rounds = 0
    for number, move in enumerate(moves):
        if move == "human":
            script.human(f"word {number}")
            rounds += 1
        elif move == "agent":
            script.agent(f"answer {number}")
        elif move in ("draft", "edit"):
            by = "agent" if move == "draft" else "human"
            drafts.append(script.output(f"line\nnumber {number}", by=by))  # type: ignore[arg-type]
        elif move in ("score", "miss") and drafts:
            script.scored(number % 11 / 10 if move == "score" else None, snapshot=drafts[-1])
        elif move in ("good", "bad"):
            script.rated(max(rounds - 1, 1), 5 if move == "good" else 1)
        elif move == "rate":
            script.rated(1, 2, judge=None)
        elif move == "close":
            script.closed()
            break
    return script


def scripts() -> st.SearchStrategy[RecordWriter]:
    """Any session."""
    return st.lists(st.sampled_from(MOVES), max_size=24).map(script_of)


async def interleave(log: EventLog, scripts: Sequence[RecordWriter], order: Sequence[int]) -> None:
    """Writes sessions into a log, a record of one after a record of another."""
    left = {script.session: list(script.records) for script in scripts}
    turns = [scripts[number % len(scripts)] for number in order]
    turns += [script for script in scripts for _ in script.records]
    for script in turns:
        if left[script.session]:
            await put_records(log, [left[script.session].pop(0)])
