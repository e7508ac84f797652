"""Erasing the sessions of a person or of an age, in batches, with one compaction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, SessionNotFound
from duolog.engine.events import MessageSent, Origin, SessionOpened
from duolog.engine.log.contract import Cache, ForgetResult, Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.scoring.index.erasure import (
    Retention,
    erase,
    keep_to,
    sessions_to_erase,
)
from duolog.scoring.index.query import parse_query
from duolog.testing.postgres_server import PostgresServer

NOW = 1_800_000_000.0
DAY = 86_400.0


async def tell(
    log: Store, session: str, user: str, age: float = 0.0, origin: Origin | None = None
) -> None:
    opened = SessionOpened(
        task="chat",
        instance=session,
        participants=(),
        clock="utc",
        config={"group": {"user": user}},
        forked_from=origin,
    )
    said = MessageSent(text=f"secret of {user}")
    at = NOW - age
    await log.append(
        session,
        [Draft(opened, "e", "environment", at), Draft(said, user, "human", at)],
    )


async def tell_all(log: Store) -> None:
    for number in range(6):
        await tell(log, f"s{number}", f"u{number % 2}", number * 30 * DAY)
    await tell(log, "fork", "u9", 0.0, Origin(session="s1", version=1))


async def check_erasure_by_user(log: Store) -> None:
    await tell_all(log)
    due = await sessions_to_erase(log, parse_query(["user=u1"]))
    assert due == ["s1", "s3", "s5"]
    done = await erase(log, due)
    assert (done.sessions, done.forks) == (("s1", "s3", "s5"), ("fork",))
    texts = [record.event async for record in log.read_all()]
    left = [event.text for event in texts if isinstance(event, MessageSent)]
    assert left == ["secret of u0"] * 3
    verified = await log.verify()
    assert (verified.problems, verified.forgotten) == ((), 4)
    assert await sessions_to_erase(log, parse_query(["user=u1"]), strict=False) == []


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/a.db", "sqlite:///{}/a.db?chain=yes"])
async def test_the_sessions_of_a_user_are_erased_with_their_forks(url: str, tmp_path: Path) -> None:
    async with open_log(url.format(tmp_path)) as log:
        await check_erasure_by_user(log)
        assert not (await log.verify()).uncompacted


async def test_a_server_erases_them_too_and_compacts_when_its_owner_says(
    postgres: PostgresServer,
) -> None:
    async with open_log(postgres.url()) as log:
        await check_erasure_by_user(log)
        assert (await log.verify()).uncompacted == 4
        assert (await log.vacuum()).finished
        assert not (await log.verify()).uncompacted


class Counting:
    """A log that counts how it is asked to erase."""

    def __init__(self, log: Store) -> None:
        self._log = log
        self.calls: list[tuple[int, bool]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def forget(
        self, session: str | Sequence[str], *, caches: Sequence[Cache] = (), compact: bool = True
    ) -> ForgetResult:
        self.calls.append((len(session), compact))
        return await self._log.forget(session, caches=caches, compact=compact)


async def test_many_are_erased_in_batches_with_one_compaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duolog.scoring.index.erasure.BATCH", 2)
    async with open_log("memory://") as log:
        await tell_all(log)
        counting = Counting(log)
        done = await erase(counting, await sessions_to_erase(log))  # type: ignore[arg-type]
    assert len(done.sessions) == 7
    assert [compact for _, compact in counting.calls] == [False, False, False, True]


async def test_age_is_that_of_the_last_record_and_virtual_clocks_have_none() -> None:
    async with open_log("memory://") as log:
        await tell_all(log)
        await tell(log, "simulated", "u0", NOW - 60)
        assert await sessions_to_erase(log, before=NOW - 90 * DAY) == ["s4", "s5"]


async def test_a_filter_by_measurements_is_met_too() -> None:
    async with open_log("memory://") as log:
        await tell_all(log)
        assert await sessions_to_erase(log, parse_query(["rounds=5.."])) == []
        assert len(await sessions_to_erase(log, parse_query(["rounds=1", "user=u0"]))) == 3


async def test_a_misspelled_label_erases_nothing() -> None:
    async with open_log("memory://") as log:
        await tell_all(log)
        with pytest.raises(InvalidInput, match="'usr'; did you mean 'user'"):
            await sessions_to_erase(log, parse_query(["usr=u1"]))


async def test_one_unknown_session_in_a_batch_erases_nothing(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log:
        await tell_all(log)
        with pytest.raises(SessionNotFound):
            await log.forget(["s0", "nobody"])
        with pytest.raises(InvalidInput, match="at least one session id"):
            await log.forget([])
        assert (await log.verify()).forgotten == 0


@pytest.mark.parametrize("embedded", [False, True])
async def test_a_retention_erases_what_comes_of_age(
    embedded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(time=lambda: NOW)
    monkeypatch.setattr("duolog.scoring.index.erasure.time", clock)
    url = f"sqlite:///{tmp_path}/a.db"
    keep = Retention(age=100 * DAY, where=("user=u0",))

    async with open_log(url) as log, anyio.create_task_group() as tasks:
        await tell_all(log)

        async def are_erased() -> None:
            while (await log.verify()).forgotten != 1:  # noqa: ASYNC110
                await anyio.sleep(0.01)

        if embedded:
            async with duolog.open(url, retention=keep):
                await are_erased()
        else:
            tasks.start_soon(keep_to, log, keep)
            await are_erased()
        assert (await log.summary("s4")).state == "forgotten"
        tasks.cancel_scope.cancel()


def test_a_retention_that_makes_no_sense_is_refused_where_it_is_given() -> None:
    with pytest.raises(InvalidInput, match="above 0"):
        duolog.open("memory://", retention=Retention(age=0))
