"""Erasing, compacting, verifying: the log as the keeper of people's words."""

from __future__ import annotations

import hmac
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest
from duolog.engine import codec
from duolog.engine.errors import SessionClosedError, SessionNotFound
from duolog.engine.events import (
    FeedbackGiven,
    Forgotten,
    MessageSent,
    Origin,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.contract import Store
from duolog.engine.log.integrity.hash_chain import mac
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft

WORKER = Path(__file__).parent / "scripts" / "log_worker.py"
SECRET = "the-secret-of-ann"
OTHER = "what-ben-says"


def said(text: str, caller_id: str | None = None) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0, caller_id)


def opened(secret: str, forked_from: Origin | None = None) -> Draft:
    event = SessionOpened(
        task=f"task {secret}",
        instance=f"instance {secret}",
        participants=(),
        clock="utc",
        config={"group": {"label": secret}},
        private={"ann": {"wish": secret}},
        forked_from=forked_from,
    )
    return Draft(event, "engine", "environment", 0.0)


async def tell(log: Store, session: str, secret: str, forked_from: Origin | None = None) -> None:
    content = {"plan": [secret, "x" * 5000]}
    snapshot = SnapshotTaken(content=content, digest=codec.digest(content))
    scored = UtilityScored(
        scorer=ScorerRef(name="judge", version="1", config="-"), value=0.5, parts={secret: 0.5}
    )
    await log.append(session, [opened(secret, forked_from), said(f"I am {secret}", "an-id")])
    await log.append(session, [Draft(snapshot, "bot", "agent", 2.0)])
    await log.append(session, [Draft(scored, "judge", "scorer", 2.0)], stream="judge@1")
    await log.append(session, [said(f"{secret}, as I said {number}") for number in range(20)])


async def tell_all(log: Store) -> None:
    await tell(log, "ann", SECRET)
    await tell(log, "ben", OTHER)
    await tell(log, "fork", SECRET, Origin(session="ann", version=3))
    await tell(log, "fork of fork", SECRET, Origin(session="fork", version=3))
    await tell(log, "fork of ben", OTHER, Origin(session="ben", version=3))


@pytest.fixture(params=["memory://", "sqlite:///{}/a.db", "sqlite:///{}/a.db?chain=yes"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    return lambda: open_log(request.param.format(tmp_path))


async def test_a_forgotten_session_leaves_its_outline(make: Callable[[], Store]) -> None:
    async with make() as log:
        await tell_all(log)
        before = [record async for record in log.read_all()]
        lines = [line async for line in log.sessions()]
        erasure = await log.forget("ann")
        assert set(erasure.sessions) == {"ann", "fork", "fork of fork"}
        assert erasure.compacted
        after = [record async for record in log.read_all()]
        for old, new in zip(before, after, strict=True):
            if old.session in erasure.sessions:
                assert new.event == Forgotten(old.kind)
                assert new == msgspec.structs.replace(old, body=None, _event=None)
            else:
                assert new == old
        for old_line, line in zip(lines, [line async for line in log.sessions()], strict=True):
            if line.session in erasure.sessions:
                counts = (line.events, line.version, line.opened, line.last)
                was = old_line
                assert counts == (was.events, was.version, was.opened, was.last)
                about = (line.task, line.instance, line.group, line.state)
                assert about == ("", "", {}, "forgotten")
            else:
                assert line == old_line
        verified = await log.verify()
        assert (verified.problems, verified.forgotten, verified.uncompacted) == ((), 3, 0)


async def test_a_forgotten_session_takes_nothing_more(make: Callable[[], Store]) -> None:
    async with make() as log:
        await tell(log, "ann", SECRET)
        await log.forget("ann")
        feedback = Draft(FeedbackGiven(thumbs="up"), "ann", "human", 1.0)
        for draft, stream in ((said("x"), "trace"), (feedback, "trace"), (said("x"), "judge@2")):
            with pytest.raises(SessionClosedError):
                await log.append("ann", [draft], stream=stream)
        original = await log.append("ann", [said(f"I am {SECRET}", "an-id")])
        assert original[0].body is None  # an append that is repeated still finds its record
        again = await log.forget("ann")
        assert again.sessions == ("ann",)
        with pytest.raises(SessionNotFound):
            await log.forget("nobody")


async def test_who_follows_meets_forgotten_records(make: Callable[[], Store]) -> None:
    async with make() as log, log.subscribe() as subscription, log.tap() as tap:
        await tell(log, "ann", SECRET)
        first = await anext(subscription)
        assert isinstance(first.event, SessionOpened)
        await log.forget("ann")
        assert isinstance((await anext(subscription)).event, Forgotten)
        assert isinstance((await anext(tap)).event, Forgotten)
        [closing] = await log.append("ben", [said("hello")])
        rest = [await anext(subscription) for _ in range(closing.position - 2)]
        assert [record.position for record in rest] == list(range(3, closing.position + 1))
        assert rest[-1] == closing


class Drawer:
    """A cache that remembers what it was told to forget."""

    name = "drawer"

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    async def forget(self, sessions: Sequence[str]) -> None:
        self.forgotten += sessions


async def test_caches_are_told(make: Callable[[], Store]) -> None:
    drawer = Drawer()
    async with make() as log:
        await tell_all(log)
        erasure = await log.forget("fork", caches=[drawer])
    assert set(drawer.forgotten) == {"fork", "fork of fork"}
    assert erasure.caches == ("drawer",)


def raw_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "?chain=yes", "?durability=normal"])
async def test_nothing_is_left_in_the_files(tmp_path: Path, options: str) -> None:
    url = f"sqlite:///{tmp_path}/a.db{options}"
    async with open_log(url) as log:
        await tell_all(log)
    assert SECRET.encode() in raw_bytes(tmp_path)
    async with open_log(url) as log:
        await tell(log, "later", SECRET)  # in the write-ahead log
        await tell(log, "much later", OTHER)
        for session in ("ann", "later"):
            assert (await log.forget(session)).compacted
        assert SECRET.encode() not in await anyio.to_thread.run_sync(bytes_by_others, tmp_path)
        await log.append("ben", [said("and on it goes")])
    assert SECRET.encode() not in raw_bytes(tmp_path)
    assert OTHER.encode() in raw_bytes(tmp_path)
    async with open_log(url) as log:
        assert (await log.verify()).problems == ()


def bytes_by_others(directory: Path) -> bytes:
    """The raw bytes of the files, read by another process: a log's own must not open them."""
    command = ["cat", *sorted(str(path) for path in directory.iterdir())]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.slow
async def test_another_process_can_hold_up_compacting(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as log:
        await tell_all(log)
        holder = await anyio.to_thread.run_sync(hold, url)
        try:
            erasure = await log.forget("ann")
            assert not erasure.compacted
            assert isinstance((await anext(log.read("ann"))).event, Forgotten)
            verified = await log.verify()
            assert (verified.problems, verified.uncompacted) == ((), 3)
            assert not (await log.vacuum()).finished
        finally:
            assert holder.stdin is not None
            assert holder.stdout is not None
            holder.stdin.close()
            assert await anyio.to_thread.run_sync(holder.wait) == 0
            holder.stdout.close()
        compaction = await log.vacuum()
        assert compaction.finished
        assert compaction.after < compaction.before
        assert (await log.verify()).uncompacted == 0
        assert SECRET.encode() not in await anyio.to_thread.run_sync(bytes_by_others, tmp_path)


def hold(url: str) -> subprocess.Popen[bytes]:
    holder = subprocess.Popen(
        [sys.executable, WORKER, "hold", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"ready\n"
    return holder


async def test_nothing_but_erasing_gets_past_the_trigger(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await tell_all(log)
        await log.forget("ann")
    connection = sqlite3.connect(path)
    (key,) = connection.execute("SELECT key FROM sessions WHERE session = 'ann'").fetchone()
    for statement in (
        "UPDATE events SET body = NULL WHERE session <> ?",  # not forgotten
        "UPDATE events SET body = X'7B7D' WHERE session = ?",  # made up again
        "UPDATE events SET body = NULL, actor = 'eve' WHERE session = ?",
        "DELETE FROM events WHERE session = ?",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement, (key,))
    connection.close()


async def test_vacuum_gives_room_back(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await log.append("s", [said("x" * 1000) for _ in range(500)])
        before = await log.vacuum()
        assert before.finished
        assert before.after <= before.before
        await log.forget("s")
    assert os.stat(path).st_size < before.after / 4


async def test_redaction_comes_before_anything_is_written(tmp_path: Path) -> None:
    def redact(draft: Draft) -> Draft:
        event = draft.event
        if isinstance(event, MessageSent):
            event = msgspec.structs.replace(event, text=event.text.replace(SECRET, "[name]"))
        elif isinstance(event, SnapshotTaken):
            event = msgspec.structs.replace(event, content="[plan]")
        return msgspec.structs.replace(draft, event=event)

    for url in ("memory://", f"sqlite:///{tmp_path}/a.db"):
        async with open_log(url, redact=redact) as log, log.subscribe() as subscription:
            content = f"a plan for {SECRET}"
            snapshot = SnapshotTaken(content=content, digest=codec.digest(content))
            [first, second] = await log.append(
                "s", [said(f"I am {SECRET}", "1"), Draft(snapshot, "bot", "agent", 1.0)]
            )
            assert first.event == MessageSent(text="I am [name]")
            assert second.event == SnapshotTaken(content="[plan]", digest=codec.digest("[plan]"))
            assert [await anext(subscription) for _ in range(2)] == [first, second]
            assert await log.append("s", [said(f"I am {SECRET}", "1")]) == [first]
            assert (await log.verify()).problems == ()
    assert SECRET.encode() not in raw_bytes(tmp_path)


# --- verifying ------------------------------------------------------------------------------------


async def damaged(path: Path, *statements: str, options: str = "") -> list[str]:
    """The problems that ``verify`` finds in a log whose tables were changed behind its back."""
    url = f"sqlite:///{path}{options}"
    async with open_log(url) as log:
        await tell(log, "ann", SECRET)
        await log.append(
            "ann", [Draft(SessionClosed(reason="finished", by="ann"), "a", "human", 9.0)]
        )
        await tell(log, "ben", OTHER)
        assert (await log.verify()).problems == ()
    connection = sqlite3.connect(path)
    for name in ("events_stay", "events_stand", "chain_stays", "chain_stands"):
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    async with open_log(url) as log:
        return [problem.what for problem in (await log.verify()).problems]


OTHER_PLAN = """
UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'xxxx', 'yyyy') AS BLOB)
WHERE kind = 'SnapshotTaken'"""

ONE_MORE = """
INSERT INTO events
SELECT (SELECT max(position) FROM events) + 1, session, stream, version + 1, kind, schema, time,
       actor, role, cause, seen, NULL, body, crc
FROM events WHERE kind = 'SessionClosed'"""


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("DELETE FROM events WHERE position = 10", "position 11 follows 9"),
        ("UPDATE events SET version = 100 WHERE position = 30", "version 100 of trace follows"),
        ("UPDATE events SET body = X'7B' WHERE position = 5", "does not decode"),
        ("UPDATE events SET kind = 'TurnYielded' WHERE position = 5", "does not decode"),
        (OTHER_PLAN, "digest is not that of its content"),
        ("UPDATE events SET body = NULL WHERE session = 1", "was not forgotten"),
        (
            "INSERT INTO forgotten VALUES (1, 1); UPDATE sessions SET state = 'forgotten'",
            "bodies are left",
        ),
        ("UPDATE sessions SET events = 9 WHERE session = 'ann'", "the list says events is 9"),
        ("UPDATE sessions SET last = 0.9", "the list says last is 0.9"),
        ("DELETE FROM sessions WHERE session = 'ben'", "cannot be read"),
        (
            "INSERT INTO sessions (session) VALUES ('ghost')",
            "the session is listed, and has no records",
        ),
        (ONE_MORE, "follows SessionClosed"),
    ],
)
async def test_verify_finds(tmp_path: Path, statement: str, complaint: str) -> None:
    problems = await damaged(tmp_path / "a.db", *statement.split("; "))
    assert any(complaint in problem for problem in problems), problems


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = X'7B7D' WHERE position = 3",
        "UPDATE events SET time = 7 WHERE position = 3",
        "UPDATE events SET actor = 'eve' WHERE position = 3",
        "UPDATE events SET id = 'another' WHERE position = 3",
        "UPDATE chain SET hash = randomblob(32) WHERE position = 3",
        "UPDATE chain SET mac = randomblob(32) WHERE position = 3",
        "UPDATE salts SET salt = randomblob(16)",
        "DELETE FROM salts",
        "DELETE FROM chain WHERE position = 3",
    ],
)
async def test_the_chain_shows(tmp_path: Path, statement: str) -> None:
    problems = await damaged(tmp_path / "a.db", statement, options="?chain=yes")
    words = ("hash chain", "not the one that was chained", "salt is missing")
    assert any(word in problem for problem in problems for word in words), problems


async def test_the_heads_of_the_chain_show_a_rewritten_log(tmp_path: Path) -> None:
    """A forger who rewrites a log from some record on, chain and all, cannot reproduce the heads."""
    heads = []
    for text in ("what was said", "what was not"):
        path = tmp_path / f"{text}.db"
        async with open_log(f"sqlite:///{path}?chain=yes") as log:
            await log.append("s", [said("before"), said(text), said("after")])
            verified = await log.verify()
            assert verified.chained
            assert verified.problems == ()
            heads.append(verified.heads["s/trace"])
    assert heads[0] != heads[1]


async def test_the_chain_survives_forgetting_and_its_salt_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(f"sqlite:///{path}?chain=yes") as log:
        await tell_all(log)
        before = (await log.verify()).heads
        await log.forget("ann")
        await log.append("ben", [said("more")])
        verified = await log.verify()
        assert verified.problems == ()
        for stream, head in before.items():
            assert (verified.heads[stream] == head) == (stream != "ben/trace")
    connection = sqlite3.connect(path)
    kept = connection.execute(
        "SELECT s.session FROM salts JOIN sessions s ON s.key = salts.session ORDER BY s.key"
    ).fetchall()
    connection.close()
    assert kept == [("ben",), ("fork of ben",)]


async def test_verify_looks_at_one_moment_while_others_write(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a.db?chain=yes") as log:
        await log.append("s", [said("x")] * 2000)

        async def write() -> None:
            for number in range(100):
                await log.append(f"t{number % 3}", [said("y")])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for _ in range(5):
                verified = await log.verify()
                assert verified.problems == ()
                assert verified.events >= 2000


def test_the_chain_is_what_its_page_says() -> None:
    """Chains that were written by other versions are followed by this one."""
    body, salt = b'{"kind":"MessageSent"}', bytes(range(16))
    assert mac(salt, body).hex() == hmac.new(salt, body, "sha256").hexdigest()
    assert mac(salt, body) != mac(body, salt)
    assert mac(None, body) == mac(salt, None) == bytes(32)
