"""A watched log, without a terminal: it follows, goes back, and reads only the visible part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.cli.watch.state import WatchedLog
from duolog.engine.errors import LogNotFound, LogUnavailable
from duolog.engine.log.contract import EventLog, SessionSummary
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Record
from duolog.scoring.index.lines import SessionLine, SessionLines
from duolog.scoring.trajectory.options import Options
from duolog.testing.sessions import put_records
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples
from scripted_logs import MOVES, interleave, script_of

OPTIONS = Options()
FOUR = ["human", "agent", "human", "agent"]


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(120):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.002)


async def settle(watched: WatchedLog) -> None:
    await until(lambda: watched.settled)


def row_of(watched: WatchedLog, place: int) -> SessionLine:
    """The row of a session by its place in the log."""
    return watched.row(watched.index.names[place])


@asynccontextmanager
async def watching(log: EventLog, session: str | None = None) -> AsyncIterator[WatchedLog]:
    """Watches a log, its whole list in view."""
    watched = WatchedLog(log, OPTIONS, session=session)
    watched.changed = lambda: watched.show(0, watched.count)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.run)
        await settle(watched)
        yield watched
        tasks.cancel_scope.cancel()


async def test_it_shows_the_newest_session_and_follows_it() -> None:
    async with MemoryLog() as log:
        await interleave(log, [script_of(FOUR, "a"), script_of(["human"], "b")], [0, 1])
        async with watching(log) as watched:
            assert (watched.selected, watched.count) == ("b", 2)
            assert watched.shown.count == 2
            await put_records(log, script_of(FOUR, "b").records[2:])
            await until(lambda: watched.shown.count == 5)
            await settle(watched)
            assert row_of(watched, 1).rounds == 2


async def test_an_empty_log_waits_for_its_first_session() -> None:
    async with MemoryLog() as log, watching(log) as watched:
        assert (watched.selected, watched.count, watched.shown.count) == (None, 0, 0)
        watched.step(-1)
        watched.step_round(-1)
        watched.go(1)
        assert watched.moment is None
        await put_records(log, script_of(FOUR, "a").records)
        await until(lambda: watched.shown.count == 5)
        assert watched.selected == "a"


async def test_a_session_that_begins_is_listed_and_the_selected_one_stays() -> None:
    async with MemoryLog() as log:
        await put_records(log, script_of(FOUR, "a").records)
        async with watching(log, "a") as watched:
            await put_records(log, script_of(FOUR, "b").records)
            await until(lambda: watched.count == 2 and watched.settled)
            assert watched.selected == "a"
            assert row_of(watched, 1).rounds == 2


async def test_steps_go_back_and_on_by_events() -> None:
    async with MemoryLog() as log:
        await put_records(log, script_of(FOUR, "a").records)
        async with watching(log) as watched:
            seen = []
            for by in (-1, -1, -1, -1, -1, 1, 1, 1, 1):
                watched.step(by)
                seen.append(watched.shown.count)
            assert seen == [4, 3, 2, 1, 1, 2, 3, 4, 5]
            following = [watched.moment is None]
            for _ in range(2):
                watched.step(1)  # past the last one it follows
                following.append(watched.moment is None)
            assert following == [False, True, True]


async def test_steps_by_rounds_go_to_their_beginnings() -> None:
    async with MemoryLog() as log:
        await put_records(log, script_of([*FOUR, "human"], "a").records)
        async with watching(log) as watched:
            seen: list[int | None] = []
            for by in (-1, -1, -1, -1, 1, 1, 1):
                watched.step_round(by)
                seen.append(watched.shown.count if watched.moment else None)
            assert seen == [4, 1, 1, 1, 4, 6, None]


async def test_while_it_looks_back_the_log_may_grow() -> None:
    async with MemoryLog() as log:
        script = script_of(FOUR, "a")
        await put_records(log, script.records[:3])
        async with watching(log) as watched:
            watched.go(2)
            await put_records(log, script.records[3:])
            await put_records(log, script_of(FOUR, "b").records)
            await until(lambda: watched.index.position == 10 and watched.settled)
            assert (watched.shown.count, watched.count, row_of(watched, 0).rounds) == (2, 1, 1)
            watched.follow()
            await settle(watched)
            assert (watched.shown.count, watched.count, row_of(watched, 0).rounds) == (5, 2, 2)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.lists(st.lists(st.sampled_from(MOVES), max_size=8), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), max_size=20),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
)
def test_a_moment_shows_the_list_as_the_log_was_then(
    moves: list[list[str]], order: list[int], moments: list[int]
) -> None:
    scripts = [script_of(some, f"s{number}") for number, some in enumerate(moves)]

    async def main() -> None:
        async with MemoryLog() as log:
            await interleave(log, scripts, order)
            records = [record async for record in log.read_all()]
            async with watching(log, records[0].session) as watched:
                for moment in moments:
                    at = moment % len(records) + 1
                    watched.go_to(at)
                    await settle(watched)
                    before = [record for record in records if record.position <= at]
                    assert watched.count == len({record.session for record in before})
                    async with MemoryLog() as prefix:
                        await put_records(prefix, before)
                        for place in range(watched.count):
                            row = row_of(watched, place)
                            summary = await prefix.summary(row.row.session)
                            then = await SessionLines(prefix, OPTIONS).line(summary)
                            assert (row.row, row.points) == (then.row, then.points)

    anyio.run(main)


async def test_only_what_is_shown_is_read(tmp_path: Path) -> None:
    async with open_log(str(tmp_path / "log.db")) as log:
        for number in range(300):
            await put_records(log, script_of(["human"], f"s{number:03}").records)
        read: list[str | None] = []
        read_all = log.read_all

        class Reading:
            """The log, with a note of each read."""

            def __getattr__(self, name: str) -> object:
                return getattr(log, name)

            def read_all(self, *, session: str | None = None, after_position: int = 0) -> object:
                read.append(session)
                return read_all(session=session, after_position=after_position)

        watched = WatchedLog(Reading(), OPTIONS)  # type: ignore[arg-type]
        watched.changed = lambda: watched.show(0, 10)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.run)
            await settle(watched)
            assert watched.count == 300
            assert set(read) == {f"s{number}" for number in range(290, 300)}
            read.clear()
            watched.go(1)
            await settle(watched)
            assert None not in read
            assert len(set(read)) <= 20  # the ten, and a search by halves
            tasks.cancel_scope.cancel()


async def test_a_file_that_goes_away_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with open_log(str(path)) as log:
        await put_records(log, script_of(FOUR, "a").records)
        watched = WatchedLog(log, OPTIONS, file=path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.run)
            await settle(watched)
            await anyio.Path(path).rename(tmp_path / "elsewhere.db")
            await until(lambda: watched.failure is not None)
        assert isinstance(watched.failure, LogNotFound)
        assert watched.shown.count == 5  # sessions read earlier are still shown


async def test_a_log_that_fails_ends_the_following() -> None:
    async with MemoryLog() as log:
        await put_records(log, script_of(FOUR, "a").records)
        watched = WatchedLog(log, OPTIONS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.run)
            await settle(watched)
            await log.aclose()
            await until(lambda: watched.failure is not None)
    assert "closed" in str(watched.failure)


async def test_a_session_that_was_erased_says_no_more_than_that() -> None:
    async with MemoryLog() as log:
        await put_records(log, script_of([*FOUR, "close"], "a").records)
        await log.forget("a")
        async with watching(log) as watched:
            assert (row_of(watched, 0).row.state, watched.shown.state) == ("forgotten", "forgotten")
            assert watched.shown.count == 6


async def test_a_damaged_record_is_a_problem_of_its_row() -> None:
    records = script_of(FOUR, "a").records
    records[3] = msgspec.structs.replace(records[3], body=b'{"text": 5}', _event=None)

    class Damaged:
        """A log whose store does not look into bodies."""

        async def read_all(self, *, session: str, after_position: int) -> AsyncIterator[Record]:
            for record in records:
                yield record

    lines = SessionLines(Damaged(), OPTIONS)  # type: ignore[arg-type]
    line = await lines.line(SessionSummary(session="a", position=5))
    assert line.row.unreadable
    assert line.missing == line.row.unreadable
    assert (line.rounds, line.position) == (2, 5)


@pytest.mark.parametrize("place", range(3))
async def test_a_session_that_is_chosen_is_read(place: int) -> None:
    async with MemoryLog() as log:
        moves = [FOUR[:2], FOUR, [*FOUR, "human"]]
        await interleave(log, [script_of(some, f"s{n}") for n, some in enumerate(moves)], [0, 1, 2])
        async with watching(log) as watched:
            watched.select(f"s{place}")
            await settle(watched)
            assert watched.shown.count == len(moves[place]) + 1


async def test_a_session_whose_reading_was_cut_off_is_read_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_all = MemoryLog.read_all
    failed: list[str] = []

    async def failing(
        log: MemoryLog, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        async for record in read_all(log, session=session, after_position=after_position):
            yield record
            if session is not None and not failed:
                failed.append(session)
                raise LogUnavailable("for a moment")

    monkeypatch.setattr(MemoryLog, "read_all", failing)
    async with MemoryLog() as log:
        await put_records(log, script_of(FOUR, "a").records)
        async with watching(log) as watched:
            await until(lambda: watched.shown.count == 5)
            await until(lambda: not watched.loading)
    assert failed == ["a"]
