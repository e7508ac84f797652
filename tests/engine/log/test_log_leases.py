"""Leases: one contract on every store that offers them, and what keeps them while a process lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from duolog.engine.errors import InvalidInput, LogClosed, LogUnavailable
from duolog.engine.log.leases import LeaseHolder, Leases, LeaseTerms, Leasing
from duolog.engine.log.open import open_log
from duolog.testing.contracts.leases import check_leases
from duolog.testing.tools import message

Url = Callable[[], str]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/{uuid4().hex}.db"
    found: str = request.getfixturevalue("postgres").url()
    return found


async def test_leases_keep_their_contract_and_are_no_part_of_the_log(url: str) -> None:
    async with open_log(url) as one, open_log(url) as other:
        assert isinstance(one, Leasing)
        assert isinstance(other, Leasing)
        await one.append("s", [message("a")])
        await check_leases(one.leases(), other.leases())
        assert [record.position async for record in other.read_all()] == [1]
        assert not (await other.verify()).problems


async def test_a_log_that_is_closed_has_none(tmp_path: Path) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        leases = log.leases()
    with pytest.raises(LogClosed):
        log.leases()
    with pytest.raises(LogClosed):
        await leases.claim(["a"], "ann", 1.0)


async def test_a_log_in_memory_offers_none() -> None:
    async with open_log("memory://") as log:
        assert not isinstance(log, Leasing)


async def test_a_clock_that_was_set_back_makes_no_lease_last_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1e9 + 3600.0
    monkeypatch.setattr("duolog.engine.log.sqlite.leases.time.time", lambda: now)
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        leases = log.leases()
        await leases.claim(["a"], "ann", 30.0)
        now = 1e9
        assert await leases.holders() == {}
        assert await leases.claim(["a"], "ben", 30.0) == {"a"}


async def test_a_holder_renews_what_it_has_and_notices_what_it_lost(tmp_path: Path) -> None:
    terms = LeaseTerms(lasts=0.0, renewed=0.001)  # each runs out at once: any other holder takes it
    lost = anyio.Event()
    async with open_log(f"{tmp_path}/log.db") as log, anyio.create_task_group() as tasks:
        assert isinstance(log, Leasing)
        leases = log.leases()
        holder = LeaseHolder(leases, terms)
        tasks.start_soon(holder.keep)
        assert await holder.claim("a", lost.set)
        assert await leases.claim(["a"], "ben", 3600.0) == {"a"}
        await lost.wait()
        assert not await holder.claim("a", lost.set)
        assert await holder.others() == {"a": "ben"}
        await holder.release("a")
        tasks.cancel_scope.cancel()
        assert await leases.holders() == {"a": "ben"}


async def test_a_holder_gives_back_what_it_has_when_it_ends(tmp_path: Path) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        holder = LeaseHolder(log.leases(), LeaseTerms())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(holder.keep)
            assert await holder.claim("a", list)
            assert list(await log.leases().holders()) == ["a"]
            tasks.cancel_scope.cancel()
        assert await log.leases().holders() == {}


class Counted:
    """Leases that count in how many calls names are given back.

    Args:
        leases: the leases.
    """

    def __init__(self, leases: Leases) -> None:
        self.claim = leases.claim
        self.holders = leases.holders
        self.given_back: list[list[str]] = []
        self.under_way = anyio.Event()
        self._release = leases.release

    async def release(self, names: Sequence[str], holder: str) -> None:
        self.given_back.append(list(names))
        self.under_way.set()
        await self._release(names, holder)


async def test_what_many_give_back_at_a_time_goes_in_one_call(tmp_path: Path) -> None:
    names = [f"s{number:02}" for number in range(20)]
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        leases = Counted(log.leases())
        holder = LeaseHolder(leases, LeaseTerms())
        for name in names:
            assert await holder.claim(name, list)
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(holder.release, name)
        assert await leases.holders() == {}
        assert sorted(name for call in leases.given_back for name in call) == names
        assert len(leases.given_back) <= 2
        assert await holder.claim(names[0], list)


async def test_who_is_cancelled_while_it_gives_back_for_others_leaves_it_to_them(
    tmp_path: Path,
) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        leases = Counted(log.leases())
        holder = LeaseHolder(leases, LeaseTerms())
        for name in "ab":
            assert await holder.claim(name, list)
        first = anyio.CancelScope()

        async def give_back_first() -> None:
            with first:
                await holder.release("a")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_back_first)
            tasks.start_soon(holder.release, "b")
            await leases.under_way.wait()
            first.cancel()
        assert leases.given_back == [["a", "b"], ["a", "b"]]
        assert await leases.holders() == {}


class Away:
    """Leases whose store cannot be reached at first.

    Args:
        leases: reached from the second claim on.
    """

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.away = True

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        if self.away:
            self.away = False
            raise LogUnavailable("the server is away")
        return await self.leases.claim(names, holder, seconds)

    async def release(self, names: Sequence[str], holder: str) -> None:
        await self.leases.release(names, holder)

    async def holders(self, prefix: str = "") -> Mapping[str, str]:
        return await self.leases.holders(prefix)


async def test_what_could_not_be_claimed_while_the_log_was_away_can_be_later(
    tmp_path: Path,
) -> None:
    async with open_log(f"{tmp_path}/log.db") as log:
        assert isinstance(log, Leasing)
        holder = LeaseHolder(Away(log.leases()), LeaseTerms())
        with pytest.raises(LogUnavailable):
            await holder.claim("a", list)
        assert await holder.claim("a", list)


def test_terms_that_no_lease_can_have_are_refused() -> None:
    class Nothing:
        pass

    with pytest.raises(InvalidInput, match="above 0"):
        LeaseHolder(Nothing(), LeaseTerms(renewed=0.0))  # type: ignore[arg-type]
