"""Appends that a log checks first and writes later: in order, as one group, none without those before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
import virtual_loop
from duolog.engine.errors import CodecError, LogClosed, VersionConflict
from duolog.engine.events import MessageSent, ScorerRef, UtilityScored
from duolog.engine.log.append import Append
from duolog.engine.log.contract import Store
from duolog.engine.log.memory import MemoryLog
from duolog.engine.log.open import open_log
from duolog.engine.log.staging import SessionAppends, Staging
from duolog.engine.records import TRACE, Draft

STORES = ["memory://", "sqlite:///{}/log.db"]


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


def chain(log: Store, count: int, *, wrong: int = -1, session: str = "s") -> list[Append]:
    """Staged appends that follow each other; one of them may expect a wrong version."""
    assert isinstance(log, Staging)
    appends: list[Append] = []
    for number in range(count):
        expected = 99 if number == wrong else number
        append = log.stage(session, [said(str(number))], stream=TRACE, expected_version=expected)
        append.after = appends[-1] if appends else None
        appends.append(append)
    return appends


async def written(log: Staging, appends: Sequence[Append]) -> int:
    """Writes staged appends, and returns the last position. Raises why the first one was refused."""
    log.write_staged(appends)
    position = 0
    for append in appends:
        await append.wait()
        if isinstance(append.outcome, Exception):
            raise append.outcome
        assert append.outcome is not None
        position = append.outcome[-1].position
    return position


@pytest.mark.parametrize("url", STORES)
async def test_what_follows_a_refused_append_is_refused_too(url: str, tmp_path: Path) -> None:
    async with open_log(url.format(tmp_path)) as log:
        assert isinstance(log, Staging)
        other = log.stage("t", [said("beside")], stream=TRACE, expected_version=0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(written, log, [other])
            with pytest.raises(VersionConflict):
                await written(log, chain(log, 5, wrong=2))
        assert [r.version async for r in log.read("s")] == [1, 2]
        assert [r.version async for r in log.read("t")] == [1], "others do not suffer"


@pytest.mark.parametrize("url", STORES)
async def test_they_are_one_group_however_many_they_are(url: str, tmp_path: Path) -> None:
    """A group takes as many events as it may, and then what follows the last of them."""
    async with open_log(url.format(tmp_path)) as log:
        assert isinstance(log, Staging)
        position = await written(log, chain(log, 5_000))
        assert (position, log.statistics().groups) == (5_000, 1)
        assert [r.version async for r in log.read("s")] == list(range(1, 5_001))


@pytest.mark.parametrize("url", STORES)
@pytest.mark.parametrize(("stream", "welcome"), [("u@1", True), (TRACE, False)])
async def test_a_measurement_of_another_process_is_welcome_and_an_event_of_its_trace_is_not(
    url: str, stream: str, welcome: bool, tmp_path: Path
) -> None:
    score = UtilityScored(scorer=ScorerRef(name="u", version="1", config=""), round=1, value=0.5)
    mine, equal, another = (Draft(score, "u", "scorer", 1.0, f"round/{n}") for n in (1, 2, 3))
    async with open_log(url.format(tmp_path)) as log:
        await log.append("s", [said("a")])
        appends = SessionAppends(log, "s", staged=True)
        for version, draft in enumerate((mine, equal), start=not welcome):
            await appends.append("s", [draft], stream=stream, expected_version=version)
        await log.append("s", [equal, another], stream=stream)
        if welcome:
            await appends.flush()
        else:
            with pytest.raises(VersionConflict):
                await appends.flush()
        await appends.close()
        found = [r.caller_id async for r in log.read("s", stream=stream) if r.caller_id]
        assert found == ["round/2", "round/3", "round/1"][: 3 if welcome else 2]


def test_a_log_in_memory_waits_for_no_clock() -> None:
    async def main() -> None:
        async with open_log("memory://") as log:
            assert isinstance(log, Staging)
            await written(log, chain(log, 3))
            await log.append("s", [said("4")])
            async with log.subscribe() as subscription:
                assert [(await anext(subscription)).version for _ in range(4)] == [1, 2, 3, 4]
            await log.forget(["s"])
        assert anyio.current_time() == 0.0

    virtual_loop.run(main)


@pytest.mark.parametrize("url", STORES)
async def test_a_caller_that_is_cancelled_disturbs_no_other(url: str, tmp_path: Path) -> None:
    """The write goes through, and others that wait for it are told."""
    async with open_log(url.format(tmp_path)) as log:
        assert isinstance(log, Staging)
        appends = chain(log, 20)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(written, log, appends)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await appends[-1].wait()
        assert [r.version async for r in log.read("s")] == list(range(1, 21))


@pytest.mark.parametrize("url", STORES)
async def test_sessions_of_one_process_are_written_together(url: str, tmp_path: Path) -> None:
    """In the order of each; one that is refused does not affect the others."""
    async with open_log(url.format(tmp_path)) as log:
        sessions = [SessionAppends(log, name, staged=True) for name in "abc"]
        for version in range(3):
            for name, appends in zip("abc", sessions, strict=True):
                await appends.append(name, [said(f"{version}")], expected_version=version)
        await log.append("b", [said("another writer")])
        await sessions[0].flush()
        with pytest.raises(VersionConflict):
            await sessions[1].flush()
        await sessions[2].flush()
        assert log.statistics().groups == 2
        assert [[r.version async for r in log.read(name)] for name in "abc"] == [
            [1, 2, 3],
            [1],
            [1, 2, 3],
        ]


async def test_a_defect_in_a_write_is_raised_in_each_session_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the timer has begun the write: nobody waits for ever."""

    def fail(log: MemoryLog, appends: Sequence[Append]) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(MemoryLog, "write_staged", fail)
    async with open_log("memory://") as log:
        sessions = [SessionAppends(log, name, staged=True) for name in "ab"]
        for name, appends in zip("ab", sessions, strict=True):
            await appends.append(name, [said("0")], expected_version=0)
        assert isinstance(log, Staging)
        log.unwritten.write()
        for appends in sessions:
            with pytest.raises(ZeroDivisionError):
                await appends.flush()


async def test_what_a_run_stages_after_a_refusal_is_refused_too(tmp_path: Path) -> None:
    """Even if the refusal is not known yet, and the stream of what follows is another one."""
    score = UtilityScored(scorer=ScorerRef(name="u", version="1", config=""), round=1, value=0.5)
    async with open_log(f"{tmp_path}/log.db") as log:
        await log.append("s", [said("another writer")])
        appends = SessionAppends(log, "s", staged=True)
        beside = SessionAppends(log, "t", staged=True)
        await appends.append("s", [said("a")], expected_version=0)
        await beside.append("t", [said("b")], expected_version=0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beside.flush)
            await anyio.lowlevel.checkpoint()  # it is being written now
            measured = [Draft(score, "u", "scorer", 1.0, "round/1")]
            await appends.append("s", measured, stream="u@1", expected_version=0)
        with pytest.raises(VersionConflict):
            await appends.flush()
        assert [r.stream async for r in log.read_all(session="s")] == [TRACE]


@pytest.mark.parametrize("url", STORES)
async def test_what_a_cancelled_run_has_staged_is_not_written(url: str, tmp_path: Path) -> None:
    async with open_log(url.format(tmp_path)) as log:
        left, other = (SessionAppends(log, name, staged=True) for name in "st")
        await left.append("s", [said("a")], expected_version=0)
        await other.append("t", [said("b")], expected_version=0)
        await left.close()
        await other.flush()
        assert [r.session async for r in log.read_all()] == ["t"]


@pytest.mark.parametrize("url", STORES)
async def test_what_cannot_be_stored_is_refused_as_it_is_staged(url: str, tmp_path: Path) -> None:
    async with open_log(url.format(tmp_path)) as log:
        appends = SessionAppends(log, "s", staged=True)
        [record] = await appends.append("s", [said("a")], expected_version=0)
        assert (record.position, record.version, record.event) == (0, 1, MessageSent(text="a"))
        with pytest.raises(CodecError):
            await appends.append("s", [said("half a pair: \udcff")], expected_version=1)
        await appends.append("s", [said("b")], expected_version=1)
        assert [r.version async for r in log.read("s")] == []
        assert [r.version async for r in appends.read("s")] == [1, 2]
        await appends.close()


@pytest.mark.parametrize("url", STORES)
async def test_a_wrong_version_and_a_large_event_go_to_the_log_at_once(
    url: str, tmp_path: Path
) -> None:
    async with open_log(url.format(tmp_path)) as log:
        appends = SessionAppends(log, "s", staged=True)
        await appends.append("s", [said("a")], expected_version=0)
        with pytest.raises(VersionConflict):
            await appends.append("s", [said("b")], expected_version=0)
        [record] = await appends.append("s", [said("x" * 100_000)], expected_version=1)
        assert (record.position, record.version) == (2, 2)
        [record] = await appends.append("s", [said("c")], expected_version=2)
        assert (record.position, record.version) == (0, 3)
        await appends.flush()
        assert [r.version async for r in log.read("s")] == [1, 2, 3]


async def test_once_the_log_is_closed_nothing_more_is_taken(tmp_path: Path) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        appends = SessionAppends(log, "s", staged=True)
        await appends.append("s", [said("a")], expected_version=0)
    with pytest.raises(LogClosed):
        await appends.flush()
    with pytest.raises(LogClosed):
        await appends.append("s", [said("b")], expected_version=1)
