"""A session on a virtual clock is written in groups; killed at any write, it ends as it would have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import LogUnavailable, SessionInterrupted, VersionConflict
from duolog.engine.events import (
    ActionResolved,
    MessageSent,
    ScorerRef,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log import staging
from duolog.engine.log.append import Append
from duolog.engine.log.contract import EventLog
from duolog.engine.log.memory import MemoryLog
from duolog.engine.log.open import open_log
from duolog.engine.log.staging import EVENTS, Stage
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.rounds import Round
from duolog.engine.scorers.protocol import (
    Cost,
    Measurement,
    SessionScorer,
    measurement_id,
    stream_of,
)
from duolog.engine.session.context import ActorContext, Reply
from duolog.engine.session.environment import Action, Outcome
from duolog.engine.session.runner import Session, run_session
from duolog.testing import Script, Workshop, a_session, agent, human, played, streams


class Lengths:
    """Scores every message, by computing alone."""

    ref = ScorerRef(name="lengths", version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if not isinstance(event := record.event, MessageSent):
            return []
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=1 / len(event.text))
        return [Measurement(scored, f"message/{record.version}")]


class Asking(Lengths):
    """Scores snapshots by a request that takes a while."""

    ref = ScorerRef(name="asking", version="1", config="")

    def __init__(self, happened: list[str]) -> None:
        self._happened = happened

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "waits" if record.kind == "SnapshotTaken" else "quick"

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if not isinstance(record.event, SnapshotTaken):
            return []
        self._happened.append(f"judged {record.version}")
        await checkpoint()
        scored = UtilityScored(scorer=self.ref, snapshot=record.version, value=0.5)
        return [Measurement(scored, f"snapshot/{record.version}")]


class Site:
    """A workshop that notes what it builds, which cannot be undone."""

    def __init__(self, happened: list[str]) -> None:
        self._workshop = Workshop()
        self._happened = happened
        self.actions = self._workshop.actions
        self.recall = self._workshop.recall

    async def perform(self, action: Action) -> Outcome:
        if action.name == "build":
            self._happened.append(f"built {action.version}")
        return await self._workshop.perform(action)


def working(happened: list[str]) -> Session:
    """A long session with all that has to wait for the disk; what costs something is noted."""

    async def ask(context: ActorContext, name: str) -> None:
        async def send() -> Reply:
            happened.append(f"asked {name}")
            await checkpoint()
            return Reply(reply={"text": name}, latency=1.0, cost=0.01)

        reply = await context.models.call(model="m", purpose="act", request=[name], send=send)
        await context.say(str(reply.reply))

    user = Script(
        Script().say("Go.").pause(1).times(EVENTS // 4),
        Script().then(partial(ask, name="user")).pause(400).finish(),
    )
    helper = Script(
        Script().hear().act("search").say("looking").pause(1).times(EVENTS // 4),
        Script()
        .act("build")
        .result()
        .then(partial(ask, name="agent"))
        .submit("a plan")
        .say("Done."),
    )
    return a_session(
        human(user),
        agent(helper),
        environment=Site(happened),
        scorers=(Lengths(), Asking(happened)),
    )


class Mortal:
    """A log whose process is killed at one of its writes: before it, or before anybody hears of it."""

    def __init__(self, log: MemoryLog, at: int = 0, *, written: bool = False) -> None:
        self._log = log
        self._at = at
        self._written = written
        self.writes = 0
        self.grouped: list[int] = []
        self.unwritten = Stage(self.write_staged)

    @property
    def followed(self) -> bool:
        return False

    def stage(
        self, session: str, drafts: Sequence[Draft], *, stream: str, expected_version: int
    ) -> Append:
        return self._log.stage(session, drafts, stream=stream, expected_version=expected_version)

    def write_staged(self, appends: Sequence[Append]) -> None:
        self.grouped.append(sum(len(append.envelopes) for append in appends))
        self._live(early=True)
        self._log.write_staged(appends)
        try:
            self._live(early=False)
        except LogUnavailable as error:
            for append in appends:
                append.outcome = error

    async def append(self, *args: object, **options: object) -> list[Record]:
        self._live(early=True)
        records = await self._log.append(*args, **options)  # type: ignore[arg-type]
        self._live(early=False)
        return records

    def _live(self, *, early: bool) -> None:
        self.writes += early
        due = self.writes > self._at or (self.writes == self._at and early is not self._written)
        if self._at and due:
            raise LogUnavailable("killed")

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


async def undisturbed() -> tuple[Mortal, dict[str, list[Record]], list[Record], list[str]]:
    happened: list[str] = []
    async with MemoryLog() as memory:
        log = Mortal(memory)
        await run_session(log, working(happened))  # type: ignore[arg-type]
        records = [record async for record in memory.read_all()]
        return log, await streams(memory, "session"), records, happened


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written because it has waited for long: on a slow machine everything would be."""
    monkeypatch.setattr(staging, "WALL", 3600.0)


@pytest.mark.usefixtures("unhurried")
async def test_most_events_of_a_simulation_do_not_wait_for_a_write() -> None:
    log, _, records, _ = await undisturbed()
    assert max(log.grouped) == EVENTS
    assert log.writes < len(records) / 8


def building(records: Sequence[Record]) -> bool:
    """Whether the log holds that something is being built, and not yet what came of it."""
    taken = {
        r.version for r in records if r.kind == "ActionTaken" and b'"build"' in (r.body or b"")
    }
    resolved = {r.event.action for r in records if isinstance(r.event, ActionResolved)}
    return bool(taken - resolved)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("written", [False, True])
async def test_killed_at_any_write_it_ends_as_it_would_have(written: bool) -> None:
    log, expected, whole, wanted = await undisturbed()
    asked = [entry for entry in wanted if entry.startswith("asked")]
    interrupted = 0
    for at in range(1, log.writes + 1):
        before: list[str] = []
        after: list[str] = []
        async with MemoryLog() as memory:
            with pytest.raises(LogUnavailable, match="killed"):
                await run_session(Mortal(memory, at, written=written), working(before))  # type: ignore[arg-type]
            held = [record async for record in memory.read_all()]
            await run_session(memory, working(after))
            got = await streams(memory, "session")
        assert held == whole[: len(held)], "the log holds a prefix, in the order of delivery"
        paid = sum(record.kind == "ModelCalled" for record in held)
        again = [entry for entry in after if entry.startswith("asked")]
        assert again == asked[paid:], "what was recorded is not paid for again"
        assert sum(e.startswith("built") for e in before + after) <= 1, "it cannot be undone"
        if building(held):  # it may have been built, or not
            interrupted += 1
            assert any(b"interrupted" in (record.body or b"") for record in got[TRACE])
        else:
            assert got == expected, f"killed at write {at}"
    assert interrupted, "one was killed while it built"


async def test_whatever_costs_something_finds_everything_before_it_in_the_log() -> None:
    """Before a model is asked, before an action that cannot be repeated and before a scorer waits."""
    missing: list[str] = []

    class Watched(list[str]):
        def append(self, entry: str) -> None:
            known = {record.version for record in log._records if record.stream == TRACE}
            if known != set(range(1, version[0] + 1)):
                missing.append(entry)
            super().append(entry)

    class Counting(Lengths):
        ref = ScorerRef(name="counting", version="1", config="")

        async def observe(self, record: Record) -> Sequence[Measurement]:
            version[0] = record.version
            return []

    version = [0]
    happened = Watched()
    async with MemoryLog() as log:
        session = working(happened)
        scorers = (Counting(), *session.scorers)
        await run_session(log, msgspec.structs.replace(session, scorers=scorers))
    assert {entry.split()[0] for entry in happened} == {"asked", "built", "judged"}
    assert missing == []


async def test_a_reply_that_was_paid_for_is_in_the_log_before_it_is_used() -> None:
    held: list[str] = []

    async def ask(context: ActorContext) -> None:
        async def send() -> Reply:
            await checkpoint()
            return Reply(reply="yes")

        await context.models.call(model="m", purpose="act", request=None, send=send)
        held.extend([record.kind async for record in log.read(context.session)])

    async with open_log("memory://") as log:
        await run_session(log, a_session(agent(Script().say("a").then(ask).finish())))
    assert held == ["SessionOpened", "MessageSent", "ModelCalled"]


async def test_what_is_staged_is_written_in_time() -> None:
    """However long its actor works outside of the kernel."""

    async def work(context: ActorContext) -> None:
        while not (held := [r.kind async for r in log.read(context.session)]):  # noqa: ASYNC110
            await anyio.sleep(0.002)  # whoever followed the log would have each record at once
        written.extend(held)

    written: list[str] = []
    async with open_log("memory://") as log:
        await run_session(log, a_session(agent(Script().say("a").then(work).finish())))
    assert written == ["SessionOpened", "MessageSent"]


async def test_what_a_scorer_measures_after_the_close_is_written_in_time() -> None:
    """However long another scorer still works."""

    class Last(Lengths):
        ref = ScorerRef(name="last", version="1", config="")

        async def observe(self, record: Record) -> Sequence[Measurement]:
            if record.kind != "ActionResolved":  # cancelled in the same append as the close
                return []
            scored = UtilityScored(scorer=self.ref, snapshot=1, value=0.5)
            return [Measurement(scored, "result")]

    class Waiting(Lengths):
        ref = ScorerRef(name="waiting", version="1", config="")

        async def observe(self, record: Record) -> Sequence[Measurement]:
            if record.kind == "SessionClosed":
                with anyio.move_on_after(120):
                    while not written:
                        await anyio.sleep(0.002)
                        written.extend([r.kind async for r in log.read(session.id, stream=own)])
            return []

    own, written = stream_of(Last.ref), list[str]()
    session = a_session(agent(Script().act("search").finish()), scorers=(Last(), Waiting()))
    async with open_log("memory://") as log:
        await run_session(log, session)
    assert written == ["UtilityScored"]


@pytest.mark.parametrize("follow", ["subscribe", "tap"])
async def test_a_follower_gets_every_record_at_once(follow: str) -> None:
    held: list[int] = []

    async def look(context: ActorContext) -> None:
        held.append(len([record async for record in log.read(context.session)]))

    async with open_log("memory://") as log, getattr(log, follow)():
        script = Script().say("a").then(look).say("b").then(look).finish()
        await run_session(log, a_session(agent(script)))
    assert held == [2, 3]


async def test_what_was_said_before_a_failure_is_in_the_log() -> None:
    async def leave(context: ActorContext) -> None:
        context.models.interrupt("the model is away")

    async with open_log("memory://") as log:
        with pytest.raises(SessionInterrupted):
            await run_session(log, a_session(agent(Script().say("a").then(leave))))
        assert [record.kind async for record in log.read("session")] == [
            "SessionOpened",
            "MessageSent",
        ]


async def test_what_a_failed_run_cannot_write_any_more_is_said_in_the_program_s_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(log: MemoryLog, appends: Sequence[Append]) -> None:
        raise LogUnavailable("the disk is full")

    async def leave(context: ActorContext) -> None:
        context.models.interrupt("the model is away")

    monkeypatch.setattr(MemoryLog, "write_staged", refuse)
    async with open_log("memory://") as log:
        with pytest.raises(SessionInterrupted, match="model is away"):
            await run_session(log, a_session(agent(Script().say("a").then(leave))))
    [said] = [text for text in caplog.messages if "were not written" in text]
    assert "session='session'" in said
    assert "error='the disk is full'" in said


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/log.db"])
async def test_where_another_process_runs_it_nothing_staged_is_mixed_in(
    url: str, tmp_path: Path
) -> None:
    """Measurements of a refused record are refused too."""
    async with open_log(url.format(tmp_path)) as log:

        async def intrude(context: ActorContext) -> None:
            await log.append("session", [Draft(MessageSent(text="mine"), "user", "human", 0.0)])

        talk = Script().say("a").then(intrude).pause(1).say("b").finish()
        with pytest.raises(VersionConflict):
            await run_session(log, a_session(human(talk), scorers=(Lengths(),)))
        held = [(r.stream, r.event.text) async for r in log.read_all() if r.kind == "MessageSent"]  # type: ignore[union-attr]
        assert held == [(TRACE, "mine")]
        assert len([record async for record in log.read_all()]) == 1


async def test_a_scorer_that_another_process_runs_too_stops_nobody() -> None:
    """Its equal measurements count, and the session continues."""
    async with open_log("memory://") as log:

        async def measure(context: ActorContext) -> None:
            async for record in log.read(context.session):
                for event, of in await Lengths().observe(record):
                    own = measurement_id(Lengths.ref, of)
                    cause = f"{TRACE}/{record.version}"
                    draft = Draft(event, "lengths", "scorer", record.time, own, cause)
                    await log.append(context.session, [draft], stream=stream_of(Lengths.ref))

        def session(meanwhile: Callable[[ActorContext], Awaitable[None]]) -> Session:
            pair = Script().say("a").pause(1).say("bb").then(meanwhile).say("ccc").finish()
            return a_session(agent(pair), scorers=(Lengths(),))

        alone = await played(session(checkpoint_of))
        result = await run_session(log, session(measure))
        assert result.scorer_failed is None
        assert await streams(log, "session") == alone.streams


async def checkpoint_of(context: ActorContext) -> None:
    await checkpoint()


async def test_a_log_that_passes_appends_on_sees_each() -> None:
    """A wrapper that knows ``append`` alone is not gone around."""

    class Noting:
        def __init__(self, log: EventLog) -> None:
            self._log = log
            self.appends = 0

        async def append(self, *args: object, **options: object) -> list[Record]:
            self.appends += 1
            return await self._log.append(*args, **options)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self._log, name)

    async with open_log("memory://") as memory:
        log = Noting(memory)
        result = await run_session(log, a_session(agent(Script().say("a").times(5).finish())))  # type: ignore[arg-type]
    assert log.appends == result.events
