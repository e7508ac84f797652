"""Logs of every schema number and table layout that was ever written stay readable.

``golden/schema-1.jsonl`` holds each kind of event as schema 1 writes it; ``golden/layout-1.sql`` is
a log with table layout 1. When a schema or the layout changes, a new file joins them; these stay.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest
from duolog.engine import codec
from duolog.engine.errors import CodecError
from duolog.engine.events import (
    EVENTS,
    JSON,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    AlertSent,
    AnswersGiven,
    ApprovalAsked,
    ApprovalGiven,
    CommentAdded,
    ConditionAssigned,
    ConditionBegun,
    ConsentGiven,
    DraftDropped,
    EffortObserved,
    Event,
    FeedbackGiven,
    Forgotten,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    Origin,
    Participant,
    ParticipantWithdrew,
    ProfileChanged,
    ProgressRated,
    RatingGiven,
    RecordsLate,
    RecordsLost,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    TagAdded,
    TagRemoved,
    Tokens,
    TurnYielded,
    Unknown,
    UtilityScored,
)
from duolog.engine.log.exchange.jsonl_export import export_jsonl, from_jsonl
from duolog.engine.log.exchange.jsonl_import import import_jsonl
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite.identity import create_identity
from duolog.engine.log.sqlite.tables import APPLICATION, LAYOUT
from duolog.engine.records import Draft
from log_measurements import last_utility

GOLDEN = Path(__file__).parent / "golden"
JUDGE = ScorerRef(name="judge", version="2", config="c0ffee")

SCHEMA_1: tuple[Event, ...] = (
    SessionOpened(
        task="travel",
        instance="7",
        participants=(
            Participant(name="ann", role="human"),
            Participant(
                name="bot",
                role="agent",
                policy="two-stage",
                model="m",
                persona="proactive",
                prompt="abc",
            ),
        ),
        clock="virtual",
        seed=7,
        request="A weekend in Oslo",
        config={"group": {"agent": "two-stage"}, "limits": {"rounds": 30}},
        private={"ann": {"likes": ["fjords"]}},
        forked_from=Origin(session="before", version=3),
        package="0.1.0",
    ),
    MessageSent(text="hello \u2713", to=("bot",)),
    ActionTaken(name="search", arguments={"to": "Oslo", "days": 3, "cheap": True}),
    ActionResolved(action=3, outcome="failed", observation={"found": []}, error="nothing there"),
    SnapshotTaken(
        content={"entries": [{"id": "1", "content": "fjord", "status": "pending"}]},
        digest="0de33d81bffd4600aebe1efbfedef55d",
        media_type="application/json",
        base=2,
    ),
    ApprovalAsked(question="Book it?", action="book", arguments={"price": 9.5}, to=("ann",)),
    ApprovalGiven(asked=6, approved=False, comment="too dear"),
    NoteTaken(text="she minds the price"),
    TurnYielded(reason="waiting"),
    Nudged(to="bot", reason="stalled"),
    ModelCalled(
        model="m",
        purpose="act",
        request="beef",
        reply={"text": "hi"},
        tokens=Tokens(prompt=10, completion=5, cached=3, reasoning=1),
        latency=0.25,
        cost=0.001,
        error=None,
        attempt=2,
    ),
    ProgressRated(
        round=1, rating=4, until=9, rounds="human-turn", explanation="good", scorer=JUDGE
    ),
    UtilityScored(scorer=JUDGE, snapshot=5, value=0.5, parts={"budget": 1.0, "dates": None}),
    ScorerFailed(scorer=JUDGE, error="boom", type="ValueError"),
    SimulatorFlagged(fault="leak", of=2, detail="said it all", scorer=JUDGE),
    StopAdvised(round=3, tau=2, rule="tolerance", enforced=True, scorer=JUDGE),
    ActorFailed(error="boom", type="ValueError"),
    SessionClosed(reason="tolerance", by="engine", detail="2 bad rounds"),
    FeedbackGiven(thumbs="down", edits_kept=0.25, comment="meh", of=5),
)


def lines(name: str) -> list[bytes]:
    return (GOLDEN / name).read_bytes().splitlines()


CLOSED_2 = (
    SessionClosed(reason="abandoned", by="ann", detail="patience: 3 rounds without progress"),
    SessionClosed(reason="ended", by="engine"),
    SessionClosed(reason="finished", by="ann", detail="gave up: no progress"),
)
GAVE_UP_1 = {"gave-up": "abandoned", "satisfied": "finished", "stopped": "tolerance"}
"""States of sessions that were closed before giving up was a separate reason."""


def test_schema_1_reads_as_it_was_meant() -> None:
    records = [from_jsonl(line) for line in lines("schema-1.jsonl")]
    assert tuple(record.event for record in records) == SCHEMA_1
    assert {record.schema for record in records} == {1}


def test_the_golden_log_has_every_kind_of_its_day() -> None:
    kinds = {
        from_jsonl(line).kind
        for name in (
            "schema-1.jsonl",
            "schema-1-changed-goals.jsonl",
            "schema-1-alerts.jsonl",
            "schema-1-records-lost.jsonl",
            "schema-1-records-late.jsonl",
            "schema-1-draft-dropped.jsonl",
            "schema-1-reviews.jsonl",
            "schema-1-studies.jsonl",
        )
        for line in lines(name)
    }
    first = {kind for kind, event in EVENTS.items() if event.schema == 1}
    assert first <= kinds


def test_schema_2_reads_as_it_was_meant() -> None:
    records = [from_jsonl(line) for line in lines("schema-2.jsonl")]
    closed = tuple(record for record in records if record.kind == "SessionClosed")
    assert tuple(record.event for record in closed) == CLOSED_2
    assert {record.schema for record in closed} == {2}


def test_who_gave_up_in_schema_1_is_read_as_having_abandoned_the_session() -> None:
    records = [from_jsonl(line) for line in lines("schema-1-gave-up.jsonl")]
    closed = {r.session: r.event for r in records if isinstance(r.event, SessionClosed)}
    assert {session: event.reason for session, event in closed.items()} == GAVE_UP_1
    assert closed["gave-up"].by == "ann"
    assert closed["gave-up"].detail == "gave up: no progress"


def test_changed_goals_read_as_they_were_meant() -> None:
    records = [from_jsonl(line) for line in lines("schema-1-changed-goals.jsonl")]
    effort = EffortObserved(actor="ann", until=5, reading=4.0, typing=2.5, inserted=9)
    assert records[-1].event == effort
    changed = [record.event for record in records if record.kind == "ProfileChanged"]
    wishes = {"wants": ["the sea", "no more than 3 days"]}
    assert changed == [ProfileChanged(owner="ann", profile=wishes, reason="saw the map \u2713")]


def test_lost_records_read_as_they_were_meant() -> None:
    [lost] = [from_jsonl(line) for line in lines("schema-1-records-lost.jsonl")]
    assert lost.event == RecordsLost(count=3, begin=1.5, end=2.5, why="the disk is full")


def test_late_records_read_as_they_were_meant() -> None:
    [late] = [from_jsonl(line) for line in lines("schema-1-records-late.jsonl")]
    assert late.event == RecordsLate(first=2, last=4, begin=1.5, end=2.5)


def test_dropped_drafts_read_as_they_were_meant() -> None:
    [dropped] = [from_jsonl(line) for line in lines("schema-1-draft-dropped.jsonl")]
    assert dropped.event == DraftDropped("And no fish, please.", ("search",), 8.0, 14.0)


def test_alerts_read_as_they_were_meant() -> None:
    [_, sent] = [from_jsonl(line) for line in lines("schema-1-alerts.jsonl")]
    error = "HTTP Error 503: Service Unavailable"
    assert sent.event == AlertSent("state=open", "retrying", 2, 1_800_000_000.5, error)
    assert sent.cause == "trace/1"


def test_reviews_read_as_they_were_meant() -> None:
    reviews = [from_jsonl(line) for line in lines("schema-1-reviews.jsonl")][2:]
    assert [one.event for one in reviews] == [
        TagAdded("wrong-goal", at=1_800_000_100.5),
        RatingGiven(2, round=1, at=1_800_000_101.0),
        CommentAdded("Never asked.", of=2, at=1_800_000_102.0),
        TagRemoved("wrong-goal", at=1_800_000_103.0),
    ]
    assert {(one.stream, one.actor, one.role) for one in reviews} == {("review", "anna", "scorer")}


def test_studies_read_as_they_were_meant() -> None:
    records = [from_jsonl(line) for line in lines("schema-1-studies.jsonl")]
    assert [record.event for record in records] == [
        ConsentGiven(study="trips", agreed=True, text="9f86d081884c7d65"),
        ConditionAssigned(study="trips", conditions=("a", "b"), instances=("0", "1")),
        ConditionBegun(place=1, condition="a", session="travel-0"),
        AnswersGiven(
            questionnaire="tlx", place=1, answers={"mental": 70, "comment": "saw it \u2713"}
        ),
        ParticipantWithdrew(study="trips"),
    ]
    assert {record.stream for record in records} == {"review"}


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.jsonl")))
async def test_a_golden_log_moves_through_a_store_unchanged(name: str, tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/a.db"):
        async with open_log(url) as log:
            imported = await import_jsonl(log, GOLDEN / name)
            assert (imported.problems, imported.lost) == ((), 0)
            out = io.BytesIO()
            await export_jsonl(log, out)
            assert out.getvalue().splitlines() == lines(name)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/a.db"])
async def test_the_list_shows_states_of_older_logs_as_they_are_read(
    url: str, tmp_path: Path
) -> None:
    async with open_log(url.format(tmp_path)) as log:
        await import_jsonl(log, GOLDEN / "schema-1-gave-up.jsonl")
        assert {s.session: s.state async for s in log.sessions()} == GAVE_UP_1
        assert not (await log.verify()).problems


def _folded_by_an_earlier_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET state = 'finished' WHERE session = 'gave-up'")
        connection.execute("DELETE FROM identity")  # as of a log that was begun in an older layout
        create_identity(connection, 100)
        connection.commit()


async def test_a_list_that_an_earlier_version_wrote_is_brought_up_to_date_when_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    async with open_log(str(path)) as log:
        await import_jsonl(log, GOLDEN / "schema-1-gave-up.jsonl")
        feedback = FeedbackGiven(thumbs="down")
        await log.append("gave-up", [Draft(feedback, "ann", "human", 9.0)])
    await anyio.to_thread.run_sync(_folded_by_an_earlier_version, path)
    async with open_log(str(path), create=False) as log:
        assert {s.session: s.state async for s in log.sessions()} == GAVE_UP_1
        assert (await log.summary("gave-up")).state == "abandoned"
        assert not (await log.verify()).problems
        await log.append("gave-up", [Draft(feedback, "ann", "human", 10.0)])
        assert (await log.summary("gave-up")).state == "abandoned"
        await log.forget("gave-up")
        assert (await log.summary("gave-up")).state == "forgotten"


def older(path: Path, layout: int) -> None:
    """Makes a log of some layout."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((GOLDEN / f"layout-{layout}.sql").read_text(encoding="utf-8"))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {layout}")


@pytest.mark.parametrize("layout", range(1, 1 + LAYOUT))
async def test_table_layouts_open(tmp_path: Path, layout: int) -> None:
    path = tmp_path / "old.db"
    older(path, layout)
    async with open_log(str(path), create=False) as log:
        records = [record async for record in log.read_all()]
        assert [_with_its_digest(record.event) for record in records] == list(SCHEMA_1)
        summary = await log.summary("golden")
        assert (summary.task, summary.state) == ("travel", "tolerance")
        assert await last_utility(log, "golden") == 0.5
        assert await log.checkpoint("copier", "1") == 5
        problems = [problem.what for problem in (await log.verify()).problems]
        made_up = ["the snapshot's digest is not that of its content"]
        assert problems == (made_up if layout == 1 else [])


@pytest.mark.parametrize("layout", range(1, LAYOUT))
async def test_what_is_forgotten_first_of_all_in_an_older_layout_is_gone(
    tmp_path: Path, layout: int
) -> None:
    path = tmp_path / "old.db"
    older(path, layout)
    async with open_log(str(path), create=False) as log:
        await log.forget("golden")
        assert [record.body async for record in log.read_all()] == [None] * len(SCHEMA_1)
        assert (await log.verify()).problems == ()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (LAYOUT,)


def _with_its_digest(event: Event | Unknown | Forgotten) -> Event | Unknown | Forgotten:
    """The event; the digest of the one snapshot in that file is made up."""
    if not isinstance(event, SnapshotTaken):
        return event
    return msgspec.structs.replace(event, digest=codec.digest(event.content))


def from_0(fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Schema 0 had words where schema 1 has one string."""
    words = fields["words"]
    assert isinstance(words, list)
    return {"kind": fields["kind"], "said": " ".join(str(word) for word in words)}


def from_1(fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Schema 1 called it something else than schema 2."""
    return {"kind": fields["kind"], "text": fields["said"]}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Duolog in which ``MessageSent`` has reached schema 2."""
    upcasters = {("MessageSent", 0): from_0, ("MessageSent", 1): from_1}
    monkeypatch.setattr(codec, "UPCASTERS", upcasters)
    monkeypatch.setitem(codec._schemas, "MessageSent", 2)


OLD = (
    Unknown("MessageSent", 0, b'{"kind":"MessageSent","words":["hello","there"]}'),
    Unknown("MessageSent", 1, b'{"kind":"MessageSent","said":"hello there"}'),
    Unknown("MessageSent", 2, b'{"kind":"MessageSent","text":"hello there"}'),
)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("event", OLD)
def test_older_schemas_are_brought_up_to_date_step_by_step(event: Unknown) -> None:
    decoded = codec.decode_body(event.kind, event.schema, event.body)
    assert decoded == MessageSent(text="hello there")


@pytest.mark.usefixtures("later")
def test_a_newer_schema_is_carried_along(tmp_path: Path) -> None:
    newer = Unknown("MessageSent", 3, b'{"kind":"MessageSent","voice":"..."}')
    assert codec.decode_body(newer.kind, newer.schema, newer.body) == newer


@pytest.mark.usefixtures("later")
def test_a_broken_older_body_is_told() -> None:
    with pytest.raises(CodecError, match="schema 0"):
        codec.decode_body("MessageSent", 0, b'{"kind":"MessageSent"}')


@pytest.mark.usefixtures("later")
async def test_the_store_keeps_older_bodies_as_they_are(tmp_path: Path) -> None:
    """Only readers see upgraded events; stored bytes stay."""
    log = open_log(f"sqlite:///{tmp_path}/a.db")
    data = b"".join(
        b'{"session":"s","stream":"trace","version":%d,"kind":"MessageSent","schema":%d,'
        b'"time":0.0,"actor":"a","role":"human","position":%d,"body":%s}\n'
        % (number, event.schema, number, event.body)
        for number, event in enumerate(OLD, 1)
    )
    async with log:
        await import_jsonl(log, io.BytesIO(data))
        records = [record async for record in log.read("s")]
        assert [record.event for record in records] == [MessageSent(text="hello there")] * 3
        assert [record.body for record in records] == [event.body for event in OLD]
        assert [record.schema for record in records] == [0, 1, 2]
        out = io.BytesIO()
        await export_jsonl(log, out)
        assert out.getvalue() == data
