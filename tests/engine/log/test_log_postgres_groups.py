"""The log on PostgreSQL where groups follow one another: the next is decided of during a commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from duolog.engine.errors import DuologError, InvalidInput, LogClosed, OutcomeUnknown
from duolog.engine.events import MessageSent
from duolog.engine.log.append import Append
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.commit import Committer
from duolog.engine.log.postgres.connection import Connection
from duolog.engine.log.summary import SessionState
from duolog.engine.records import Draft
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.tools import collect, message
from postgres_shell import shell

pytestmark = pytest.mark.slow

WRITERS = 800  # more than a group takes; the rest makes another group
ROUNDS = 4


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many groups were decided of ahead."""
    counts: Counter[str] = Counter()
    take_ahead = Committer.take_ahead

    def counted(self: Committer, group: Sequence[Append]) -> None:
        take_ahead(self, group)
        counts["taken"] += bool(self._ahead)

    monkeypatch.setattr(Committer, "take_ahead", counted)
    return counts


async def write_each(log: Store, session: str, rounds: int = ROUNDS) -> None:
    """Writes to a session, an event at a time, at expected versions."""
    for version in range(rounds):
        [record] = await log.append(session, [message(str(version))], expected_version=version)
        assert record.version == version + 1


@asynccontextmanager
async def writing(log: Store, name: str, rounds: int = ROUNDS) -> AsyncIterator[None]:
    """Many tasks write to a session each, at expected versions, while the block runs."""

    async with anyio.create_task_group() as tasks:
        for number in range(WRITERS):
            tasks.start_soon(write_each, log, f"{name}-{number}", rounds)
        yield


async def until(log: Store, position: int) -> None:
    """Waits until the log has reached a position."""
    while log.statistics().position < position:
        await anyio.lowlevel.checkpoint()


async def check(log: Store, events: int) -> None:
    """Checks that the log holds so many events, in order and without gaps, each once."""
    records = await collect(log.read_all())
    assert [record.position for record in records] == list(range(1, events + 1))
    assert len({(record.session, record.version) for record in records}) == events
    assert not (await log.verify()).problems  # summaries among them


async def test_a_value_that_the_server_refuses_fails_alone_in_a_group(
    postgres: PostgresServer, ahead: Counter[str]
) -> None:
    bad = Draft(MessageSent(text="x"), "b\0", "human", 1.0)
    async with open_log(postgres.url()) as log:
        async with writing(log, "s", 2 * ROUNDS):
            await until(log, ROUNDS * WRITERS)
            with pytest.raises(InvalidInput, match="cannot be stored"):
                await log.append("s-0", [bad])
        await check(log, 2 * WRITERS * ROUNDS)
    assert ahead["taken"]


async def test_what_was_decided_of_ahead_is_decided_of_anew_where_the_connection_is_lost(
    postgres: PostgresServer, ahead: Counter[str]
) -> None:
    url = postgres.url()
    async with open_log(url) as log, shell(url) as other:
        async with writing(log, "s", 2 * ROUNDS):
            for at in range(1, 2 * ROUNDS, 2):
                await until(log, at * WRITERS)
                await other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'duolog'"
                )
        await check(log, 2 * WRITERS * ROUNDS)
    assert ahead["taken"]


@pytest.mark.parametrize("pooler", ["no", "yes"])
async def test_what_is_begun_for_a_group_that_may_follow_holds_nobody_up_where_none_does(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, pooler: str
) -> None:
    ends: Counter[bool] = Counter()
    end = Committer.end

    async def counted(self: Committer, connection: Connection) -> None:
        await end(self, connection)
        ends[connection.is_in_transaction()] += 1

    monkeypatch.setattr(Committer, "end", counted)
    url = postgres.url(pooler=pooler)
    async with open_log(url) as log, open_log(url) as other:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(write_each, log, f"s-{number}")
        assert log.statistics().groups == ROUNDS
        with anyio.fail_after(120):
            await other.append("s-0", [message("x")], expected_version=ROUNDS)
        await check(log, 20 * ROUNDS + 1)
    assert ends == {False: 1}


async def test_what_was_decided_of_ahead_is_decided_of_anew_where_others_write(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    async with open_log(url) as log, open_log(url) as other:
        async with writing(log, "a"), writing(other, "b"):
            pass
        await check(log, 2 * WRITERS * ROUNDS)


async def test_what_could_not_be_decided_of_ahead_is_decided_of_anew(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_ahead = Committer.take_ahead
    left: list[int] = []  # appends that can be taken before one fails

    def decided(self: Committer, group: Sequence[Append]) -> None:
        left.append(3)
        try:
            take_ahead(self, group)
        finally:
            left.clear()

    advance = SessionState.advance

    def advanced(self: SessionState, append: Append, position: int) -> bool:
        if left:
            left[0] -= 1
            if not left[0]:
                failed.append(append.session)
                raise ZeroDivisionError("a bug")
        return advance(self, append, position)

    failed: list[str] = []
    monkeypatch.setattr(Committer, "take_ahead", decided)
    monkeypatch.setattr(SessionState, "advance", advanced)
    async with open_log(postgres.url()) as log:
        async with writing(log, "s"):
            pass
        await check(log, WRITERS * ROUNDS)
    assert failed


async def test_who_is_cancelled_ahead_has_written_all_or_nothing(
    postgres: PostgresServer, ahead: Counter[str]
) -> None:
    async with open_log(postgres.url()) as log:
        async with writing(log, "s", 1):
            pass
        written = 0

        async def write(number: int) -> None:
            nonlocal written
            await log.append(f"s-{number}", [message("x")], expected_version=1)
            written += 1

        async with anyio.create_task_group() as tasks:
            for number in range(WRITERS):
                tasks.start_soon(write, number)
            while not ahead["taken"]:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        position = log.statistics().position
        assert position >= WRITERS + written
        await check(log, position)
        async with writing(log, "t", 1):  # the writer continues
            pass


async def test_where_the_writer_is_cancelled_nobody_is_said_to_have_written(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    async with open_log(url) as log:
        async with writing(log, "s"):  # from now on, it is known how far each session has come
            pass
        outcomes: Counter[type[DuologError]] = Counter()

        async def write(number: int) -> None:
            try:
                await log.append(f"s-{number}", [message("x")])
            except DuologError as error:
                outcomes[type(error)] += 1

        with anyio.CancelScope(shield=True):  # the writer takes the tasks of the log along
            async with shell(url) as other, anyio.create_task_group() as tasks:
                await other.execute("BEGIN; SELECT FROM log FOR UPDATE")
                for number in range(WRITERS):
                    tasks.start_soon(write, number)
                waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while not await other.fetchval(waiting):
                    await anyio.lowlevel.checkpoint()
                [writer] = [t for t in asyncio.all_tasks() if t.get_name().startswith("writer of")]
                writer.cancel()
    assert set(outcomes) == {OutcomeUnknown, LogClosed}
    assert outcomes.total() == WRITERS


async def test_an_error_nobody_foresaw_fails_its_group_and_leaves_no_transaction_open(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log(postgres.url()) as log:
        await log.append("s", [message("0")])
        with monkeypatch.context() as patch:
            write = Committer._write

            async def fail_afterwards(self: Committer) -> str:
                await write(self)
                raise ZeroDivisionError("a bug")

            patch.setattr(Committer, "_write", fail_afterwards)
            with pytest.raises(ZeroDivisionError):
                await log.append("s", [message("x")], expected_version=1)
        [record] = await log.append("s", [message("1")], expected_version=1)
        assert record.position == 2
        await check(log, 2)
