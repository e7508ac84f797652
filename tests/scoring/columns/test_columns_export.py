"""Exporting a log into tables: closed sessions once each, as of now, whatever happens meanwhile."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.contract import SessionSummary, Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.scoring.columns.exporter import TablesWritten, export_tables
from duolog.scoring.columns.parquet import (
    Manifest,
    load_manifest,
    part_files,
    read_tables,
    save_manifest,
)
from duolog.scoring.live import score_sessions
from duolog.scoring.metrics import Numbers, aggregate
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from later import imported_later

pyarrow = imported_later("pyarrow.parquet")


def session(name: str, *, closed: bool = True) -> RecordWriter:
    script = RecordWriter(name)
    script.opened(clock="virtual", config={"judge": "judge", "group": {"agent": "clerk"}})
    script.human("a plan, please")
    draft = script.output("a plan", by="agent")
    script.scored(0.25, snapshot=draft)
    script.human(f"better, {name}")
    script.rated(1, 2)
    script.agent("is that all?")
    if closed:
        script.closed()
    return script


async def put(log: Store, scripts: Sequence[RecordWriter]) -> None:
    for script in scripts:
        await put_records(log, script.records)


async def export(log: Store, directory: Path, **options: bool | int) -> TablesWritten:
    return await export_tables(log, directory, Options(), batch=7, **options)  # type: ignore[arg-type]


async def rows(directory: Path, table: str) -> list[dict[str, object]]:
    return await anyio.to_thread.run_sync(read, directory, table)


def read(directory: Path, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for view in load_manifest(directory).views:
        for part in view.table(table):
            found += pyarrow.read_table(directory / part.path, partitioning=None).to_pylist()
    return sorted(found, key=lambda row: [str(row.get(key)) for key in ("session", "round")])


def row_groups(directory: Path) -> list[int]:
    """How many row groups each file of sessions has."""
    parts = [part for view in load_manifest(directory).views for part in view.table("sessions")]
    return [pyarrow.read_metadata(directory / part.path).num_row_groups for part in parts]


async def names(directory: Path) -> list[object]:
    return [row["session"] for row in await rows(directory, "sessions")]


async def report(directory: Path, options: Options, bootstrap: int = 0) -> Numbers:
    return await anyio.to_thread.run_sync(
        lambda: aggregate(read_tables(directory, options), bootstrap=bootstrap)
    )


async def files(directory: Path) -> tuple[Manifest, set[str]]:
    """The manifest, and what lies there."""
    manifest = await anyio.to_thread.run_sync(load_manifest, directory)
    return manifest, await anyio.to_thread.run_sync(lambda: set(part_files(directory)))


async def fold_agrees(log: Store, directory: Path) -> bool:
    """Whether the report on tables is that on the same sessions of the log."""
    found = [item async for item in score_sessions(log, process=True)]
    closed = [item for item in found if item.state != "open"]
    return aggregate(closed, bootstrap=10) == await report(directory, Options(), 10)


async def test_closed_sessions_are_written_once_and_open_ones_when_they_close(
    tmp_path: Path,
) -> None:
    async with open_log("memory://") as log:
        late = session("b")
        *early, end = late.records
        await put(log, [session("a")])
        await put_records(log, early)
        await put(log, [session("c")])
        written = await export(log, tmp_path, records=True)
        assert (written.sessions, written.position) == (2, log.statistics().position)
        assert await names(tmp_path) == ["a", "c"]
        again = await export(log, tmp_path)
        assert again == msgspec.structs.replace(written, sessions=0)
        await put_records(log, [end])
        assert (await export(log, tmp_path, records=True)).sessions == 1
        assert await names(tmp_path) == ["a", "b", "c"]
        assert len(await rows(tmp_path, "rounds")) == 6
        assert len(await rows(tmp_path, "records")) == log.statistics().position
        assert await fold_agrees(log, tmp_path)


async def test_a_newer_version_of_a_scorer_moves_its_sessions(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a"), session("b")])
        await export(log, tmp_path)
        await export_tables(log, tmp_path, Options(utility="u@1"))
        newer = RecordWriter("a")
        await put_records(log, [newer.scored(0.75, round=2, scorer="u@2")])
        assert (await export(log, tmp_path)).sessions == 1
        auto = {
            part.path.partition("rated_by=auto/")[2].rpartition("/")[0]: part.rows
            for view in (await files(tmp_path))[0].views
            for part in view.table("rounds")
            if view.utility == "auto"
        }
        assert auto == {"scorer=u/version=1": 2, "scorer=u/version=2": 2}
        assert await fold_agrees(log, tmp_path)
        old = (await report(tmp_path, Options(utility="u@1"))).groups[0]
        assert old.final.value == 0.25
        new = (await report(tmp_path, Options())).groups[0]
        assert new.final.value == 0.5


async def test_what_is_forgotten_is_gone_from_the_files(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a"), session("b")])
        await export(log, tmp_path, records=True)
        await log.forget("a")
        written = await export(log, tmp_path, records=True)
        assert (written.sessions, written.forgotten) == (1, 1)
        assert [row["session"] for row in await rows(tmp_path, "rounds")] == ["b", "b"]
        bodies = {row["session"]: row["body"] for row in await rows(tmp_path, "records")}
        assert bodies["a"] is None
        assert bodies["b"] is not None
        assert await fold_agrees(log, tmp_path)
        assert (await report(tmp_path, Options())).forgotten == 1
        assert (await export(log, tmp_path, records=True)).forgotten == 0


class ForgetsLate:
    """A log in which a session is forgotten just after its records were read."""

    def __init__(self, log: Store) -> None:
        self._log = log
        self._asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def sessions(self) -> AsyncIterator[SessionSummary]:
        self._asked += 1
        if self._asked == 2:  # the first time, nothing was read
            await self._log.forget("a")
        async for summary in self._log.sessions():
            yield summary


async def test_what_is_forgotten_while_it_is_read_is_not_written(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a"), session("b")])
        late: Any = ForgetsLate(log)
        await export_tables(late, tmp_path, Options(), records=True)
        assert [row["session"] for row in await rows(tmp_path, "rounds")] == ["b", "b"]
        found = await rows(tmp_path, "records")
        assert {row["session"] for row in found if row["body"] is not None} == {"b"}


class ForgetsInTheMiddle(ForgetsLate):
    """A log in which a session is forgotten while others are read, and that counts looks at its list."""

    def __init__(self, log: Store) -> None:
        super().__init__(log)
        self.looks = 0

    async def sessions(self) -> AsyncIterator[SessionSummary]:
        self.looks += 1
        async for summary in self._log.sessions():
            yield summary

    async def read_all(self, *, session: str | None = None) -> AsyncIterator[Record]:
        if session == "s3":
            await self._log.forget("s0")
        async for record in self._log.read_all(session=session):
            yield record


async def test_the_list_of_sessions_is_not_looked_through_for_each_batch(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session(f"s{number}") for number in range(8)])
        counting: Any = ForgetsInTheMiddle(log)
        await export(counting, tmp_path)
        assert counting.looks == 2
        found = {row["session"] for row in await rows(tmp_path, "rounds")}
        assert found == {f"s{number}" for number in range(1, 8)}


class Killed(BaseException):
    """The program is killed here."""


@contextmanager
def killed_at(step: int, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Lets so many changes of files happen, and then none ever again; gives how many there were."""
    steps = 0

    def until_killed(change: Callable[..., object]) -> Callable[..., object]:
        def changing(*given: object, **named: object) -> object:
            nonlocal steps
            steps += 1
            if steps > step:
                raise Killed
            return change(*given, **named)

        return changing

    with patch.context() as within:
        within.setattr(os, "replace", until_killed(os.replace))
        within.setattr(os, "fsync", until_killed(os.fsync))
        within.setattr(Path, "unlink", until_killed(Path.unlink))
        within.setattr(Path, "mkdir", until_killed(Path.mkdir))
        yield lambda: steps


@pytest.mark.slow
async def test_killed_anywhere_it_goes_on_and_writes_each_session_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a"), session("b")])
        step = 0
        while True:
            directory = tmp_path / str(step)
            try:
                with killed_at(step, monkeypatch) as steps:
                    await export(log, directory, records=True)
                    break
            except (Killed, BaseExceptionGroup):
                assert steps() > step
            if (await files(directory))[0].views:  # whatever it names is whole
                assert len(await rows(directory, "rounds")) == 2 * len(await names(directory))
            await export(log, directory, records=True)
            assert await names(directory) == ["a", "b"]
            assert len(await rows(directory, "rounds")) == 4
            assert len(await rows(directory, "records")) == log.statistics().position
            manifest, there = await files(directory)
            assert there == {part.path for view in manifest.views for part in view.parts}
            step += 1
        assert step > 20


async def test_following_takes_what_comes(tmp_path: Path) -> None:
    positions: list[int] = []
    arrived = anyio.Event()

    def progress(position: int) -> None:
        positions.append(position)
        arrived.set()

    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        await put(log, [session("a")])

        async def follow() -> None:
            await export_tables(log, tmp_path, Options(), follow=True, progress=progress)

        tasks.start_soon(follow)
        await arrived.wait()
        assert await names(tmp_path) == ["a"]
        with pytest.raises(InvalidInput, match="another program is writing the tables"):
            await export(log, tmp_path)
        tasks.cancel_scope.cancel()
    assert positions == sorted(positions)


async def test_tables_of_several_row_groups_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = [session(f"s{number}") for number in range(7)]
    async with open_log("memory://") as log:
        await put(log, scripts)
        await export(log, tmp_path / "one")
        monkeypatch.setattr("duolog.scoring.columns.parquet._GROUP", 2)
        await export(log, tmp_path / "several")
    assert await anyio.to_thread.run_sync(row_groups, tmp_path / "several") == [3, 1]
    whole = await report(tmp_path / "one", Options())
    assert await report(tmp_path / "several", Options()) == whole


async def test_tables_of_other_columns_are_written_anew(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a"), session("b")])
        await export(log, tmp_path)
        manifest, before = await files(tmp_path)
        older = [msgspec.structs.replace(view, columns="older") for view in manifest.views]
        await anyio.to_thread.run_sync(save_manifest, tmp_path, manifest.including(older))
        assert (await report(tmp_path, Options())).groups[0].sessions == 2
        assert (await export(log, tmp_path)).sessions == 2
        assert before.isdisjoint((await files(tmp_path))[1])
        assert await names(tmp_path) == ["a", "b"]


async def test_other_directories_and_other_logs_are_refused(tmp_path: Path) -> None:
    async with open_log("memory://") as log, open_log("memory://") as other:
        await put(log, [session("a")])
        await put(other, [session("x")])
        await export(log, tmp_path / "tables")
        with pytest.raises(InvalidInput, match="holds the tables of another log"):
            await export(other, tmp_path / "tables")
        await anyio.Path(tmp_path / "photos" / "cats").mkdir(parents=True)
        with pytest.raises(InvalidInput, match="holds other files than tables"):
            await export(log, tmp_path / "photos")


async def test_tables_of_other_definitions_have_to_be_exported_again(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a")])
        await export(log, tmp_path)
        manifest, _ = await files(tmp_path)
        older = [msgspec.structs.replace(view, definitions=1) for view in manifest.views]
        await anyio.to_thread.run_sync(save_manifest, tmp_path, manifest.including(older))
        with pytest.raises(InvalidInput, match="another version of Duolog wrote"):
            await report(tmp_path, Options())
        assert (await export(log, tmp_path)).sessions == 1
        assert await fold_agrees(log, tmp_path)


async def test_tables_that_are_not_there_or_damaged_are_refused(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await put(log, [session("a")])
        await export(log, tmp_path)
        with pytest.raises(InvalidInput, match="no closed sessions with rounds by human-turn"):
            await report(tmp_path, Options(rounds="human-turn"))
        for path in (await files(tmp_path))[1]:
            await anyio.Path(tmp_path / path).write_bytes(b"PAR1 no more")
        with pytest.raises(InvalidInput, match="the tables cannot be read"):
            await report(tmp_path, Options())
        await anyio.Path(tmp_path / "manifest.json").write_text("{")
        with pytest.raises(InvalidInput, match="is not a manifest of tables"):
            await report(tmp_path, Options())
