"""Short sessions are written many at once, and come in as they would one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, Origin, SessionOpened
from duolog.engine.log.contract import Store
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import TRACE
from duolog.interop.importers.protocol import Diagnostic, Foreign, Found
from duolog.interop.importers.run import ImportResult, import_foreign
from duolog.testing import by
from held_writer import gathered
from scripted_importer import Scripted


def session(name: str, *texts: str, origin: str | None = None) -> list[Found]:
    forked = None if origin is None else Origin(session=origin, version=1)
    opened = SessionOpened(
        task="t", instance="1", participants=(), clock="virtual", forked_from=forked
    )
    drafts = [by("environment", opened), *(by("human", MessageSent(text=text)) for text in texts)]
    return [Foreign(name, TRACE, draft) for draft in drafts]


MANY = [one for number in range(300) for one in session(f"s{number}", "a", "b")]
NAMES = [f"s{number}" for number in range(300)]


async def take(
    log: Store, found: Sequence[Found], *, keep_going: bool = False, look_first: bool = True
) -> ImportResult:
    return await import_foreign(
        log, Path("source"), Scripted(found), keep_going=keep_going, look_first=look_first
    )


async def names(log: Store) -> list[str]:
    return [one.session async for one in log.sessions()]


async def test_many_sessions_take_few_commits_and_no_more_the_next_time(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log:
        async with gathered(log, 300):  # all wait for the same commit
            taken = await take(log, MANY)
        assert taken == ImportResult(sessions=300, records=900, known=0)
        assert log.statistics().groups == 1
        assert await names(log) == NAMES
        await log.forget("s7")
        again = await take(log, [*MANY, *session("new", "c"), *session("newer", "d")])
        assert (again.records, again.known) == (4, 900)
        assert await names(log) == [*NAMES, "new", "newer"]


async def test_sessions_that_have_grown_are_taken_on_and_others_are_refused_alone() -> None:
    async with MemoryLog() as log:
        await take(log, [*session("s1", "a"), *session("s2", "a")])
        found = [*session("s0", "x"), *session("s1", "a", "b"), *session("s2", "y", "b")]
        taken = await take(log, [*found, *session("s3", "x")], keep_going=True)
        assert (taken.records, taken.known) == (5, 3)
        assert [one.session for one in taken.diagnostics] == ["s2"]
        assert taken.parted == {"s2": 1}
        assert await names(log) == ["s1", "s2", "s0", "s3"]


async def test_a_fork_is_left_out_where_the_log_went_on_with_it_as_if_alone() -> None:
    async with MemoryLog() as log:
        await take(log, session("s1", "a"))
        found = [*session("s0", "x"), *session("s1", "b"), *session("s1-branch", "a", origin="s1")]
        taken = await take(log, found, keep_going=True)
        assert (taken.sessions, taken.forks, taken.parted) == (2, 0, {"s1": 1})
        assert await names(log) == ["s1", "s0"]


async def test_a_session_that_comes_twice_is_compared_with_itself() -> None:
    async with MemoryLog() as log:
        taken = await take(log, [*session("s", "a"), *session("s", "a"), *session("t", "b")])
        assert (taken.records, taken.known) == (4, 2)


async def test_what_was_whole_before_a_problem_is_in_the_log() -> None:
    problem = Diagnostic("problem", "no record", "line 9")
    found = [*session("s0", "a"), *session("s1", "b"), *session("s2", "c"), problem]
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="line 9: no record; stopped after 4 events"):
            await take(log, found, look_first=False)
        assert await names(log) == ["s0", "s1"]
