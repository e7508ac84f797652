"""The log on PostgreSQL as the server goes away: nothing is lost, doubled or guessed."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from pathlib import Path

import anyio
import asyncpg
import pytest
from duolog.engine.errors import LogAway, LogUnavailable, OutcomeUnknown
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.connection import translate
from duolog.testing.postgres_server import PostgresServer, main, running_postgres
from duolog.testing.tools import appended, collect
from postgres_shell import shell

pytestmark = pytest.mark.slow

MACHINE = Path(__file__).parent / "scripts" / "log_machine.py"
HOUR = 3600


async def crash_when(server: PostgresServer, url: str, positions: list[int]) -> list[float]:
    """Kills the server and starts it again whenever the log has reached a position; gives how long
    each time took.
    """
    seconds = []
    async with open_log(url) as log, log.subscribe() as subscription:
        for position in positions:
            while (await anext(subscription)).position < position:
                pass
            begun = time.perf_counter()
            await anyio.to_thread.run_sync(server.stop, "immediate")
            await anyio.to_thread.run_sync(server.start)
            seconds.append(time.perf_counter() - begun)
    return seconds


@pytest.mark.parametrize(
    ("crashes", "sessions", "each", "rate"),
    [
        (1, 4, 40, 0),
        pytest.param(5, 50, 600, 500, marks=[pytest.mark.soak, pytest.mark.timeout(5400)]),
    ],
)
async def test_machines_with_wrong_clocks_lose_and_double_nothing_while_the_server_is_killed(
    crashes: int, sessions: int, each: int, rate: int
) -> None:
    """Two machines write, two follow; their clocks are up to two hours apart."""
    total = 2 * sessions * each
    said: dict[str, list[tuple[int, str, int, str]]] = {}
    with running_postgres(durable=False) as server:
        url = server.url()

        async def machine(name: str, skew: int, *arguments: object) -> None:
            command = [sys.executable, "-P", str(MACHINE), url, str(skew), *map(str, arguments)]
            done = await anyio.run_process(command, stderr=subprocess.STDOUT, check=False)
            lines = done.stdout.decode().splitlines()
            assert done.returncode == 0, "\n".join(lines[-40:])
            said[name] = [tuple(one) for one in json.loads(lines[-1])]

        async with open_log(url) as log:
            begun = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for name, skew in (("ahead", HOUR), ("behind", -HOUR)):
                    tasks.start_soon(machine, name, skew, "write", name, sessions, each, rate)
                    tasks.start_soon(machine, f"{name} follows", skew, "follow", total)
                moments = [total * (number + 1) // (crashes + 1) for number in range(crashes)]
                seconds = await crash_when(server, url, moments)
            took = time.perf_counter() - begun
            held = [
                (record.position, record.session, record.version, (record.body or b"").decode())
                for record in await collect(log.read_all())
            ]
            assert not (await log.verify()).problems
    sys.stdout.write(
        f"{total} events in {took:.1f} s, {total / (took - sum(seconds)):,.0f} a second while the server "
        f"was there; away for {', '.join(f'{one:.1f}' for one in seconds)} s\n"
    )
    assert [position for position, *_ in held] == list(range(1, total + 1))
    assert sorted(said["ahead"] + said["behind"]) == held
    assert said["ahead follows"] == said["behind follows"] == held
    for name in {session for _, session, *_ in held}:
        mine = [(version, body) for _, session, version, body in held if session == name]
        assert [version for version, _ in mine] == list(range(1, each + 1))
        assert all(f'"{version - 1}"' in body for version, body in mine)


async def test_an_append_is_refused_where_the_server_stays_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_postgres(durable=False) as server:
        async with open_log(server.url()) as log:
            await appended(log, "s", 1)
            await anyio.to_thread.run_sync(server.stop, "immediate")
            with monkeypatch.context() as hurry:
                hurry.setattr("duolog.engine.log.postgres.writer.PATIENCE", 0.3)
                with pytest.raises(LogUnavailable, match="nothing was written"):
                    await appended(log, "s", 1)
            await anyio.to_thread.run_sync(server.start)
            [record] = await appended(log, "s", 1, expected_version=1)
    assert record.version == 2


async def _waits_for_a_lock(connection: asyncpg.Connection) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while not await connection.fetchval(query):
        await anyio.lowlevel.checkpoint()


async def test_forgetting_waits_for_the_server_and_says_when_its_outcome_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_postgres(durable=False) as server:
        url = server.url()
        async with open_log(url) as log:
            await appended(log, "s", 1)
            async with shell(url) as other, anyio.create_task_group() as tasks:
                await other.execute("BEGIN; SELECT FROM log FOR UPDATE")
                tasks.start_soon(log.forget, "s")
                await _waits_for_a_lock(other)
                await anyio.to_thread.run_sync(server.stop, "immediate")
                await anyio.to_thread.run_sync(server.start)
            assert (await log.summary("s")).state == "forgotten"

            monkeypatch.setattr("duolog.engine.log.postgres.writer.PATIENCE", 0.3)
            async with shell(url) as other, anyio.create_task_group() as tasks:
                await other.execute("BEGIN; SELECT FROM log FOR UPDATE")

                async def forget() -> None:
                    with pytest.raises(OutcomeUnknown, match="it may be done, or not"):
                        await log.forget("s")

                tasks.start_soon(forget)
                await _waits_for_a_lock(other)
                await anyio.to_thread.run_sync(server.stop, "immediate")
            with pytest.raises(LogUnavailable, match="nothing was done"):
                await log.forget("s")
            monkeypatch.undo()  # a machine may take longer to connect again
            await anyio.to_thread.run_sync(server.start)
            assert (await log.forget("s")).sessions == ("s",)


def test_a_command_has_a_server_while_it_runs(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import os, sys; print(os.environ['DUOLOG_POSTGRES']); sys.exit(3)"
    assert main([sys.executable, "-c", code]) == 3
    said = capfd.readouterr()
    assert said.out.startswith("postgresql://duolog@127.0.0.1:")
    assert said.err.endswith("PostgreSQL is stopped, and its files are removed\n")
    assert main([]) == 2


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (asyncpg.InterfaceError("the underlying connection is closed"), True),
        (ConnectionRefusedError("refused"), True),
        (asyncpg.CannotConnectNowError("the database system is starting up"), True),
        (asyncpg.InvalidPasswordError("no"), False),
        (ssl.SSLError("bad certificate"), False),
        (asyncpg.DiskFullError("full"), False),
    ],
)
def test_only_what_trying_again_may_help_is_away(error: Exception, away: bool) -> None:
    assert (
        isinstance(translate(error, "postgresql://db/log", so="it was not opened"), LogAway) is away
    )
