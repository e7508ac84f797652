"""Derived rows of a log: files that cannot be written, erasure, older and newer programs."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest
from duolog.engine.errors import LogClosed
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.contract import Derived, Store
from duolog.engine.log.integrity.checksum import checksum_of
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.settings import parse
from duolog.engine.log.ranked import ROW, Arrangement, Ranked, RowNumbers, Rows
from duolog.engine.records import Draft, Record
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.tools import appended, collect
from msgspec import structs
from postgres_shell import shell

SECRET = "the-secret-of-ann"
FOLD = "fold/1"


def row(session: str, position: int, payload: bytes = b"") -> Derived:
    return Derived(session=session, kind=FOLD, version=1, position=position, payload=payload)


async def told(log: Store, *sessions: str) -> list[Derived]:
    """Sessions with a secret, and with rows that repeat it."""
    rows = []
    for session in sessions:
        said = Draft(MessageSent(text=f"{SECRET} of {session}"), session, "human", 1.0)
        end = (await log.append(session, [said]))[-1].position
        rows.append(row(session, end, f"{SECRET} {'x' * 3000} {session}".encode()))
    assert await log.keep_derived(rows) == len(rows)
    return rows


async def kept(log: Store) -> list[str]:
    return [found.session async for found in log.derived(FOLD, 1)]


async def in_file(path: Path, work: Callable[[sqlite3.Connection], object]) -> None:
    """Does something in the file as another program would."""

    def change() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            work(connection)

    await anyio.to_thread.run_sync(change)


def raw(directory: Path) -> bytes:
    """The bytes of the files, read by another process: a program with an open log must not open them."""
    command = ["cat", *sorted(map(str, directory.iterdir()))]
    return subprocess.run(command, capture_output=True, check=True).stdout


async def test_a_closed_log_says_so_whatever_it_is_given(tmp_path: Path) -> None:
    """Its rows could not be kept by an open log either."""
    for url in ("memory://", f"{tmp_path}/a.db"):
        async with open_log(url) as log:
            pass
        with pytest.raises(LogClosed):
            await log.keep_derived(
                [Derived(session="s", kind="", version=1, position=1, payload=b"")]
            )


async def test_rows_are_there_when_the_log_is_opened_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as log:
        rows = await told(log, "ann", "ben")
    async with open_log(url, create=False) as log:
        assert await collect(log.derived(FOLD, 1)) == rows
        assert (await log.verify()).problems == ()


@pytest.mark.slow
async def test_forgetting_leaves_nothing_of_a_row_in_the_file(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log:
        [first, *_] = await told(log, "ann", "ben")
        shorter = row("ann", first.position, b"rewritten")
        assert await log.keep_derived([shorter]) == 1  # the longer payload is in a free page now
        assert (await log.forget("ann")).compacted
        found = await anyio.to_thread.run_sync(raw, tmp_path)
        assert b"of ann" not in found
        assert b"x ann" not in found
        assert b"x ben" in found


def _forget_as_before(connection: sqlite3.Connection, session: str, records: list[Record]) -> None:
    """Forgets a session as a program does that does not know derived rows."""
    execute = connection.execute
    execute("PRAGMA secure_delete = ON")
    execute("BEGIN IMMEDIATE")
    (key,) = execute("SELECT key FROM sessions WHERE session = ?", (session,)).fetchone()
    execute("INSERT OR REPLACE INTO forgotten VALUES (?, 0)", (key,))
    for record in records:
        execute(
            "UPDATE events SET body = NULL, crc = ? WHERE position = ? AND body IS NOT NULL",
            (checksum_of(record, erased=True), record.position),
        )
    execute(
        "UPDATE sessions SET task = '', instance = '', labels = '{}', utility = NULL, "
        "state = 'forgotten' WHERE key = ?",
        (key,),
    )
    execute("COMMIT")
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    execute("VACUUM")
    execute("UPDATE forgotten SET compacted = 1 WHERE NOT compacted")
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


async def test_an_older_program_that_forgets_a_session_erases_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        rows = await told(log, "ann", "ben")
        records = await collect(log.read_all(session="ann"))
    await in_file(path, lambda connection: _forget_as_before(connection, "ann", records))
    assert b"x ann" not in path.read_bytes()
    assert b"x ben" in path.read_bytes()
    async with open_log(str(path)) as log:
        assert await collect(log.derived(FOLD, 1)) == rows[1:]
        verified = await log.verify()
        assert (verified.problems, verified.forgotten, verified.uncompacted) == ((), 1, 0)


async def test_an_older_program_that_appends_makes_a_row_stale(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        [kept_row] = await told(log, "ann")
        [before] = await collect(log.read_all())

    def append(connection: sqlite3.Connection) -> None:
        later = Record(
            *(2, "ann", "trace", 2), *[getattr(before, n) for n in before.__struct_fields__[4:13]]
        )
        connection.execute(
            "INSERT INTO events SELECT 2, session, stream, 2, kind, schema, time, actor, role, cause, "
            "seen, id, body, ? FROM events WHERE position = 1",
            (checksum_of(later),),
        )
        connection.execute("UPDATE sessions SET events = 2, version = 2, position = 2")

    await in_file(path, append)
    async with open_log(str(path)) as log:
        assert (await log.verify()).problems == ()
        assert await collect(log.derived(FOLD, 1)) == [kept_row]
        assert (await log.summary("ann")).position > kept_row.position


@pytest.mark.parametrize("what", ["TABLE derived", "TRIGGER derived_forgets"])
async def test_a_table_or_trigger_that_was_dropped_by_hand_is_made_again(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await told(log, "ann", "ben")
    await in_file(path, lambda connection: connection.execute(f"DROP {what}"))
    async with open_log(str(path)) as log:
        await log.forget("ann")
        assert await kept(log) == (["ben"] if "TRIGGER" in what else [])
        await told(log, "cid")
        await log.forget("cid")
        assert "cid" not in await kept(log)
        assert (await log.verify()).problems == ()


async def test_a_damaged_row_is_found_and_not_given(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        rows = await told(log, "ann", "ben", "cid", "dan")
    changes = (
        "UPDATE derived SET payload = X'00' WHERE session = 1",
        "UPDATE derived SET position = 1 WHERE session = 2",
        "UPDATE derived SET numbers = '[1' WHERE session = 3",
    )
    await in_file(path, lambda connection: [connection.execute(change) for change in changes])
    async with open_log(str(path)) as log:
        assert await collect(log.derived(FOLD, 1)) == rows[3:]
        whats = [problem.what for problem in (await log.verify()).problems]
        assert len(whats) == 3
        assert all("derived row" in what for what in whats)
        assert await log.keep_derived(rows) == 4
        assert (await log.verify()).problems == ()


async def test_rows_of_sessions_that_are_not_there_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await told(log, "ann", "ben")
    await in_file(path, lambda c: c.execute("UPDATE derived SET session = 9 WHERE session = 1"))
    async with open_log(str(path)) as log:
        assert await kept(log) == ["ben"]
        [problem] = (await log.verify()).problems
        assert "of a session that the log does not have" in problem.what
        await log.drop_derived()
        assert (await log.verify()).problems == ()


async def test_a_newer_layout_is_read_and_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        rows = await told(log, "ann")
    await in_file(path, lambda connection: connection.execute("PRAGMA user_version = 99"))
    async with open_log(str(path)) as log:
        assert await collect(log.derived(FOLD, 1)) == rows
        assert await log.keep_derived([row("ann", rows[0].position, b"new")]) == 0
        assert await collect(log.derived(FOLD, 1)) == rows


_READ_ONLY = """
import asyncio, logging, os, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
from duolog.engine.log.contract import Derived
from duolog.engine.log.open import open_log
from duolog.engine.logger import get_logger

async def main(path):
    async with open_log(path + ".warm-up") as log:  # imports all that is imported lazily
        await log.keep_derived([Derived(session="s", kind="k", version=1, position=1, payload=b"")])
    get_logger("log").info("ready")
    os.unlink(path + ".warm-up")
    os.chmod(os.path.dirname(path), 0o555)
    if not os.geteuid():  # file modes mean nothing to root
        os.setegid(65534)
        os.seteuid(65534)
    async with open_log(path, create=False) as log:
        assert [row.session async for row in log.derived("fold/1", 1)] == ["ann"]
        row = Derived(session="ann", kind="fold/1", version=1, position=1, payload=b"new")
        assert [await log.keep_derived([row]) for _ in range(3)] == [0, 0, 0]
        assert [row.payload async for row in log.derived("fold/1", 1)] != [b"new"]

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
async def test_a_file_that_cannot_be_written_keeps_nothing_and_says_so_once(
    public_path: Path,
) -> None:
    directory = public_path
    path = directory / "a.db"
    async with open_log(str(path)) as log:
        await told(log, "ann")
    path.chmod(0o444)
    command = [sys.executable, "-P", "-c", _READ_ONLY, str(path)]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, check=False)
    )
    directory.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cannot be kept") == 1


@pytest.mark.slow
async def test_another_process_sees_what_was_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as one, open_log(url) as other:
        rows = await told(one, "ann", "ben")
        assert await collect(other.derived(FOLD, 1)) == rows
        await appended(other, "ann", 1)
        assert await one.keep_derived([row("ann", 3, b"more")]) == 1
        await other.forget("ben")
        assert await one.keep_derived(rows[1:]) == 0
        assert await collect(one.derived(FOLD, 1)) == [row("ann", 3, b"more")]


# --- PostgreSQL --------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_database_that_was_made_without_the_table_gets_it_from_its_owner(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(partition="100")
    schema = parse(url).schema
    async with open_log(url) as log:
        await appended(log, "old", 2)
    async with shell(url) as owner:
        layout = await owner.fetchval("SELECT layout FROM log")
        await owner.execute(
            "DROP TABLE derived; DROP TRIGGER summaries_forget ON summaries; "
            f"DROP FUNCTION forget_derived(); CREATE ROLE other_{schema} LOGIN; "
            f"GRANT USAGE ON SCHEMA {schema} TO other_{schema}; "
            f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO other_{schema}"
        )
    others = url.replace("duolog@", f"other_{schema}@")
    async with open_log(others) as log:  # it is not the owner: nothing is kept, and nothing fails
        await appended(log, "new", 1)
        assert await log.keep_derived([row("old", 2)]) == 0
        assert await kept(log) == []
        await log.drop_derived()
        assert (await log.verify()).problems == ()
        await log.forget("new")
        async with open_log(url) as owned:
            assert await owned.keep_derived([row("old", 2)]) == 1
        assert await kept(log) == []  # it lacks rights on the new table
        assert await log.keep_derived([row("old", 2)]) == 0
        assert (await log.verify()).problems == ()
        await log.forget("old")  # its trigger has its owner's rights
    async with open_log(url) as log, shell(url) as owner:
        assert await owner.fetchval("SELECT count(*) FROM derived") == 0
        assert await owner.fetchval("SELECT layout FROM log") == layout


@pytest.mark.slow
async def test_an_older_program_that_forgets_in_a_database_erases_its_rows(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(partition="100")
    async with open_log(url) as log, shell(url) as older:
        rows = await told(log, "ann", "ben")
        transaction = older.transaction()
        await transaction.start()
        await older.execute("UPDATE log SET epoch = epoch + 1")
        await older.execute(
            "UPDATE summaries SET task = '', instance = '', labels = '{}', utility = NULL, "
            "evaluated = false, state = 'forgotten', salt = NULL, compacted = false "
            "WHERE session = 'ann'"
        )
        again = [row("ann", rows[0].position, b"again"), rows[1]]
        counts: list[int] = []

        async def keep() -> None:
            counts.append(await log.keep_derived(again))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)  # waits for the transaction that forgets
            for record in await collect(log.read_all(session="ann")):
                await older.execute(
                    "UPDATE records SET body = NULL, crc = $1 WHERE position = $2",
                    checksum_of(record, erased=True),
                    record.position,
                )
            await transaction.commit()
        assert counts == [1]
        assert await older.fetchval("SELECT count(*) FROM derived") == 1
        assert await collect(log.derived(FOLD, 1)) == rows[1:]
        assert (await log.verify()).problems == ()
        await log.vacuum()
        assert (await log.verify()).uncompacted == 0


@pytest.mark.slow
async def test_a_damaged_row_of_a_database_is_found_and_not_given(postgres: PostgresServer) -> None:
    url = postgres.url(partition="100")
    async with open_log(url) as log, shell(url) as owner:
        rows = await told(log, "ann", "ben")
        await owner.execute("UPDATE derived SET payload = 'x' WHERE session = 1")
        assert await collect(log.derived(FOLD, 1)) == rows[1:]
        [problem] = (await log.verify()).problems
        assert "is not what was written" in problem.what


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def ranking(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a log whose store orders sessions by the numbers of their rows."""
    if request.param == "sqlite":
        return str(tmp_path / "ranked.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(schema=request.function.__name__.split("_")[3])


async def test_sessions_are_ranked_by_a_number_of_their_rows(ranking: str) -> None:
    opened = open_log(ranking)
    assert isinstance(opened, Ranked)
    with pytest.raises(LogClosed):  # it is not open yet
        await opened.outdated(FOLD, 1)
    async with opened as log:
        assert isinstance(log, Ranked)
        assert await log.outdated(FOLD, 1) == []
        rows = await told(log, "a", "b", "c", "d", "e")
        assert await log.outdated(FOLD, 2) == ["a", "b", "c", "d", "e"]
        numbers = ((1, 0.5), (2, None), (3, 0.9), (4, 0.5), (5, 0.1))
        held = [
            structs.replace(one, numbers=found) for one, found in zip(rows, numbers, strict=True)
        ]
        await log.keep_derived(held)
        assert await log.outdated(FOLD, 1) == []
        ranked = partial(Arrangement, by=f"{ROW}1", rows=Rows(FOLD, 1))

        async def best(*, descending: bool, limit: int) -> Sequence[str]:
            found = await log.arranged(ranked(descending=descending, limit=limit))
            kept = {
                one.session: one.numbers[1] for one in await log.numbers(Rows(FOLD, 1), [*"abcde"])
            }
            assert [one.value for one in found] == [kept.get(one.session) for one in found]
            return [one.session for one in found]

        assert await best(descending=True, limit=9) == ["c", "a", "d", "e", "b"]
        assert await best(descending=False, limit=9) == ["e", "a", "d", "c", "b"]
        assert await best(descending=True, limit=2) == ["c", "a"]
        by_the_other = ranked(by=f"{ROW}0", descending=True, limit=1)
        assert await log.arranged(by_the_other) == [("e", 5)]
        [found_b] = await log.numbers(Rows(FOLD, 1), ["b", "?"])
        assert found_b == RowNumbers("b", held[1].position, (2, None))
        assert not await log.numbers(Rows(FOLD, 2), ["b"])
        await log.append("d", [Draft(MessageSent(text="more"), "ann", "human", 2.0)])
        await log.forget("c")
        assert await log.outdated(FOLD, 1) == ["d"]  # a forgotten session does not need a row
        assert await best(descending=True, limit=9) == ["a", "d", "e", "b", "c"]
        assert await best(descending=True, limit=4) == ["a", "d", "e", "b"]


async def test_sessions_are_arranged_by_a_property_of_their_summaries(ranking: str) -> None:
    labelled = {"s10": ("eat", {"x": "b"}), "s9": ("", {}), "S2": ("Eat", {"x": "a", 'y"': "1"})}
    async with open_log(ranking) as log:
        assert isinstance(log, Ranked)
        for at, (session, (instance, labels)) in enumerate(labelled.items()):
            opened = SessionOpened(
                task="t", instance=instance, participants=(), clock="utc", config={"group": labels}
            )
            said = Draft(MessageSent(text="more"), "ann", "human", 30.0 - at)
            await log.append(session, [Draft(opened, "engine", "environment", 9.0 * at), said])

        async def first(by: str, descending: bool = False, limit: int = 9) -> str:
            wanted = Arrangement(by=by, descending=descending, limit=limit)
            return " ".join(one.session for one in await log.arranged(wanted))

        assert await first("session") == "S2 s9 s10"
        assert await first("session", True, 2) == "s10 s9"
        assert await first("instance", True) == "s10 S2 s9"
        assert await first("label:x") == "S2 s10 s9"
        assert await first('label:y"', True, 2) == "S2 s10"
        assert await first("lasted") == "S2 s9 s10"
        assert await first("last", True, 1) == "s10"
        assert await first("position", True) == "S2 s9 s10"
        assert await first("events") == await first("events", True) == "s10 s9 S2"
        assert await first("state") == "s10 s9 S2"
        assert await log.arranged(Arrangement()) == [("s10", None), ("s9", None), ("S2", None)]
        by_label = await log.arranged(Arrangement(by="label:x"))
        assert by_label == [("S2", "a"), ("s10", "b"), ("s9", None)]
        by_instance = await log.arranged(Arrangement(by="instance", descending=True))
        assert by_instance == [("s10", "eat"), ("S2", "Eat"), ("s9", None)]
        assert await log.arranged(Arrangement(by="last", limit=1)) == [("S2", 28.0)]
        listed = {one.session: one async for one in log.sessions()}
        assert [*await log.summaries(["s9", "?", "S2"])] == [listed["s9"], listed["S2"]]


async def test_sessions_are_counted_by_what_they_are(ranking: str) -> None:
    async with open_log(ranking) as log:
        assert isinstance(log, Ranked)
        assert await log.groups() == []
        for session, labels in (("a", {"x": "1"}), ("b", {}), ("c", {"x": "1"})):
            opened = SessionOpened(
                task="t", instance="", participants=(), clock="utc", config={"group": labels}
            )
            await log.append(session, [Draft(opened, "engine", "environment", 0.0)])
        await log.forget("b")
        found = sorted(await log.groups())
        assert found == [("", "forgotten", {}, 1, 2), ("t", "open", {"x": "1"}, 2, 3)]
