"""Importing a foreign log: once, in order, however often; and finding the importer that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from duolog.engine import codec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalGiven,
    Event,
    MessageSent,
    Participant,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import TRACE, Record
from duolog.engine.rounds import RoundProjector
from duolog.interop.importers import registry as finding
from duolog.interop.importers.cogym.runs import CogymImporter
from duolog.interop.importers.protocol import Diagnostic, Foreign, Found, Reading
from duolog.interop.importers.registry import find_importer, importer_names, recognise
from duolog.interop.importers.run import ImportResult, import_foreign, survey_foreign
from duolog.interop.importers.timestamps import seconds_of, zone_named
from duolog.interop.importers.trace_builder import TraceBuilder
from duolog.testing import by, check_importer, records_of
from foreign_logs import collaboration, write_lines, write_run
from hypothesis import given
from hypothesis import strategies as st
from log_measurements import last_utility
from scripted_importer import Scripted

OPENED = SessionOpened(task="t", instance="1", participants=(), clock="virtual")
REF = ScorerRef(name="judge", version="1", config="")


def said(*texts: str, session: str = "s", closed: bool = False) -> list[Found]:
    """A session in which a human says something."""
    drafts = [by("environment", OPENED), *(by("human", MessageSent(text=text)) for text in texts)]
    if closed:
        drafts.append(by("human", SessionClosed(reason="finished", by="human")))
    return [Foreign(session, TRACE, draft) for draft in drafts]


def scored(value: float, session: str = "s") -> Foreign:
    event = UtilityScored(scorer=REF, round=1, value=value)
    return Foreign(session, "judge@1", by("scorer", event))


async def take(log: MemoryLog, found: Sequence[Found], **options: bool) -> ImportResult:
    return await import_foreign(log, Path("source"), Scripted(found), **options)  # type: ignore[arg-type]


async def held(log: MemoryLog) -> list[Record]:
    return [record async for record in log.read_all()]


async def test_everything_comes_in_in_order() -> None:
    async with MemoryLog() as log:
        many = [str(number) for number in range(700)]
        first = [*said(*many, closed=True), scored(0.5)]
        taken = await take(log, [*first, *said("b", session="other"), scored(1.0, "other")])
        assert taken == ImportResult(sessions=2, records=706, known=0)
        records = await held(log)
        assert [r.version for r in records if r.session == "s"] == [*range(1, 703), 1]
        assert [(r.session, r.stream) for r in records[-3:]] == [
            ("other", TRACE), ("other", TRACE), ("other", "judge@1"),
        ]  # fmt: skip


async def test_again_adds_nothing() -> None:
    async with MemoryLog() as log:
        found = [*said("a", "b", closed=True), scored(0.5), *said("c", session="other")]
        await take(log, found)
        before = await held(log)
        assert await take(log, found) == ImportResult(sessions=2, records=0, known=7)
        assert await held(log) == before


async def test_a_session_that_has_grown_is_taken_on() -> None:
    async with MemoryLog() as log:
        await take(log, said("a", "b"))
        taken = await take(log, [*said("a", "b", "c", closed=True), scored(1.0)])
        assert (taken.records, taken.known) == (3, 3)
        assert [r.kind for r in await held(log)][-3:] == [
            "MessageSent", "SessionClosed", "UtilityScored",
        ]  # fmt: skip


@pytest.mark.parametrize("other", [said("a", "x"), said("a", "b", "c", closed=True)])
async def test_another_session_of_the_same_name_is_refused(other: list[Found]) -> None:
    async with MemoryLog() as log:
        await take(log, said("a", "b", closed=True))
        before = await held(log)
        with pytest.raises(InvalidInput, match="session 's': the log has another"):
            await take(log, other)
        assert await held(log) == before
        taken = await take(log, [*other, *said("fine", session="next")], keep_going=True)
        assert [(one.kind, one.session) for one in taken.diagnostics] == [("problem", "s")]
        assert {r.session for r in await held(log)} == {"s", "next"}


async def test_who_and_when_are_part_of_an_event() -> None:
    for other in (by("agent", MessageSent(text="a")), by("human", MessageSent(text="a"), time=1.0)):
        async with MemoryLog() as log:
            await take(log, said("a"))
            with pytest.raises(InvalidInput, match="another MessageSent at version 2"):
                await take(log, [said()[0], Foreign("s", TRACE, other)])


async def test_what_was_erased_stays_erased() -> None:
    async with MemoryLog() as log:
        await take(log, said("a", "b", closed=True))
        await log.forget("s")
        assert (await take(log, said("a", "b", closed=True))).records == 0
        assert all(record.body is None for record in await held(log))


async def test_a_problem_ends_the_import_before_anything_is_taken() -> None:
    problem = Diagnostic("problem", "no record", "line 9")
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="line 9: no record; nothing was imported"):
            await take(log, [*said("a"), problem])
        assert await held(log) == []
        with pytest.raises(InvalidInput, match="line 9: no record; stopped after 0 events"):
            await take(log, [*said("a"), problem, *said("b", session="x")], look_first=False)
        taken = await take(log, [*said("a"), problem], keep_going=True)
        assert taken.diagnostics == (problem,)
        assert len(await held(log)) == 2


async def test_an_event_that_no_log_can_hold_is_a_problem() -> None:
    odd = Foreign("s", TRACE, by("human", MessageSent(text="\ud800")))
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="session s: cannot write MessageSent"):
            await take(log, [*said("a"), odd])
        assert (await take(log, [*said("a"), odd], keep_going=True)).records == 2


async def test_what_was_left_out_is_left_out_again_and_the_rest_is_known() -> None:
    nested: JSON = json.loads("[" * 300 + "]" * 300)
    deep = Foreign("s", TRACE, by("agent", ActionTaken(name="go", arguments={"to": nested})))
    first, second = said("a"), said("b")[1:]
    async with MemoryLog() as log:
        begun = await take(log, [*first, deep, *second], keep_going=True)
        again = await take(log, [*first, deep, *second, *second], keep_going=True)
        more = await take(log, [*first, deep, *second, *second, deep], keep_going=True)
    assert [(one.records, one.known) for one in (begun, again, more)] == [(3, 0), (1, 3), (0, 4)]
    assert [len(one.diagnostics) for one in (begun, again, more)] == [1, 1, 2]


async def test_where_a_source_breaks_off_what_was_read_before_is_taken() -> None:
    class BreaksOff(Scripted):
        def read(self, source: Path, reading: Reading) -> Iterator[Found]:
            yield from super().read(source, reading)
            raise InvalidInput("line 9: cut off")

    importer = BreaksOff(said("a", "b"))
    async with MemoryLog() as log:
        with pytest.raises(InvalidInput, match="line 9: cut off"):
            await import_foreign(log, Path("s"), importer, look_first=False)
        assert await held(log) == []  # of a session that is not over yet
        for records, known in ((3, 0), (0, 3)):
            taken = await import_foreign(log, Path("s"), importer, keep_going=True)
            assert (taken.records, taken.known) == (records, known)
            assert [diagnostic.what for diagnostic in taken.diagnostics] == ["line 9: cut off"]
        with pytest.raises(InvalidInput, match="line 9: cut off"):
            await import_foreign(log, Path("s"), BreaksOff([]), keep_going=True)


async def test_differences_are_no_problem() -> None:
    difference = Diagnostic("difference", "counted otherwise", "round 1", "s")
    async with MemoryLog() as log:
        assert (await take(log, [*said("a"), difference])).diagnostics == (difference,)
        (empty,) = (await take(log, [])).diagnostics
        assert (empty.kind, empty.what) == ("difference", "nothing was said or done in it")


async def test_progress_is_told_and_how_much_there_is_is_known_before() -> None:
    told: list[int] = []
    looked: list[int] = []
    importer = Scripted(said(*map(str, range(600))))
    survey = await survey_foreign(Path("s"), importer, Reading(), progress=looked.append)
    async with MemoryLog() as log:
        await import_foreign(log, Path("s"), importer, survey=survey, progress=told.append)
    assert looked == sorted(looked)
    assert told == sorted(told)
    assert looked[-1] == survey.events == told[-1] == 601


async def test_a_result_of_collaborative_gym(tmp_path: Path) -> None:
    run = write_run(tmp_path / "arm" / "env_t_1", collaboration(), {"performance_rating": 0.5})
    async with MemoryLog() as log:
        first = await import_foreign(log, tmp_path, CogymImporter())
        again = await import_foreign(log, run / "event_log.jsonl", CogymImporter())
        assert (again.records, again.known) == (0, first.records)
        [summary] = [one async for one in log.sessions()]
        assert (summary.state, summary.task) == ("finished", "t")
        assert await last_utility(log, summary.session) == 0.5
        verified = await log.verify()
        assert verified.problems == ()


# --- the check of the contract ------------------------------------------------------------------------


def opened(*names: str) -> Foreign:
    people = tuple(Participant(name=name, role="human") for name in names)
    event = SessionOpened(task="t", instance="1", participants=people, clock="virtual")
    return Foreign("s", TRACE, by("environment", event))


def fact(role: Role, event: Event, session: str = "s", stream: str = TRACE) -> Foreign:
    return Foreign(session, stream, by(role, event))


TALK = [opened("human"), fact("human", MessageSent(text="x"))]
END = fact("human", SessionClosed(reason="finished", by="human"))


async def test_a_good_importer_passes() -> None:
    acted = [fact("human", ActionTaken(name="a"))]
    acted.append(fact("environment", ActionResolved(action=3, outcome="ok")))
    written = SnapshotTaken(content="x", digest=codec.digest("x"))
    scored = UtilityScored(scorer=REF, snapshot=5, value=1.0)
    found = [*TALK, *acted, fact("human", written), END, fact("scorer", scored, stream="judge@1")]
    await check_importer(Scripted(found), Path("source"))


@pytest.mark.parametrize(
    ("found", "promise"),
    [
        ([], "must hold a session"),
        (TALK[1:], "must be opened before anything else"),
        ([*TALK, TALK[0]], "must be opened once"),
        ([*TALK, END, TALK[1]], "must be closed once, at its end"),
        ([opened(), TALK[1]], "is no participant"),
        ([*TALK, *said("a", session="b"), TALK[1]], "must come in one piece"),
        ([*TALK, fact("human", ActionResolved(action=2, outcome="ok"))], "is no ActionTaken"),
        ([*TALK, fact("human", ActionResolved(action=9, outcome="ok"))], "is no ActionTaken"),
        ([*TALK, fact("human", ApprovalGiven(asked=1, approved=True))], "is no ApprovalAsked"),
        (
            [*TALK, fact("human", SnapshotTaken(content="x", digest="d"))],
            "is not that of its content",
        ),
        (
            [
                *TALK,
                fact("human", ActionTaken(name="a")),
                *[fact("environment", ActionResolved(action=3, outcome="ok"))] * 2,
            ],
            "action 3 is resolved twice",
        ),
        ([*TALK, fact("human", MessageSent(text="x"), stream="j@1")], "is a scorer's only"),
        (
            [*TALK, fact("scorer", UtilityScored(scorer=REF, snapshot=2, value=1.0), stream="j")],
            "is no SnapshotTaken",
        ),
    ],
)
async def test_an_importer_that_breaks_the_contract_is_told(
    found: list[Foreign], promise: str
) -> None:
    with pytest.raises(AssertionError, match=promise):
        await check_importer(Scripted(found), Path("source"))


async def test_an_importer_that_reads_otherwise_each_time_is_told() -> None:
    importer = Scripted(TALK)

    def read(source: Path, reading: Reading) -> Iterator[Found]:
        importer.found = [*importer.found, TALK[1]]
        yield from importer.found

    importer.read = read  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="must read the same each time"):
        await check_importer(importer, Path("source"))


# --- who reads what -------------------------------------------------------------------------------


def test_the_importers_that_ship() -> None:
    assert {"chat", "cogym", "tau"} <= set(importer_names())
    for name in importer_names():
        importer = find_importer(name)
        assert importer.name == name
        assert importer.about
    with pytest.raises(InvalidInput, match="unknown format 'csv'; choose from ag-ui"):
        find_importer("csv")


def test_a_source_is_recognised(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", collaboration())
    found = recognise(run)
    assert found is not None
    assert found.name == "cogym"
    chat = write_lines(tmp_path / "chat.jsonl", [{"role": "user", "content": "Hello"}])
    found = recognise(chat)
    assert found is not None
    assert found.name == "chat"
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert recognise(other) is None
    with pytest.raises(InvalidInput, match=r"cannot read .*none: No such file"):
        recognise(tmp_path / "none")


def test_names_are_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = "duolog.interop.importers.cogym.runs:CogymImporter"
    entries = [
        EntryPoint("one", target, finding.GROUP),
        EntryPoint("one", target, finding.GROUP),
        EntryPoint("two", target, finding.GROUP),
        EntryPoint("two", "duolog.interop.importers.chat:ChatImporter", finding.GROUP),
    ]
    monkeypatch.setattr(finding, "entry_points", lambda group: entries)
    assert find_importer("one").name == "cogym"
    with pytest.raises(InvalidInput, match="several packages offer an importer 'two'"):
        find_importer("two")
    entries[2:] = [EntryPoint("three", target, finding.GROUP)]
    write_run(tmp_path / "run", collaboration())
    with pytest.raises(InvalidInput, match="looks like cogym and cogym: say which, with --format"):
        recognise(tmp_path)


# --- times and versions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2026-03-01 12:00:00", 1_772_366_400.0 - 3600),
        ("2026-03-01T12:00:00.25", 1_772_366_400.25 - 3600),
        ("2026-03-01T12:00:00+00:00", 1_772_366_400.0),
        ("2026-03-01T12:00:00Z", 1_772_366_400.0),
        (" 2026-07-01 12:00:00 ", 1_782_900_000.0),
        (12, 12.0),
        (1.5, 1.5),
        (True, None),
        (float("nan"), None),
        ("t0", None),
        ("", None),
        (None, None),
        (["2026"], None),
        ("9999-99-99", None),
    ],
)
def test_time_stamps(stamp: object, seconds: float | None) -> None:
    assert seconds_of(stamp, zone_named("Europe/Berlin")) == seconds


def test_the_zone_of_this_machine() -> None:
    assert zone_named("local") is None
    assert seconds_of("2026-03-01T12:00:00+00:00", None) == 1_772_366_400.0
    assert seconds_of("2026-03-01 12:00:00", None) is not None
    for name in ("Mars/Olympus", "../etc/passwd", ""):
        with pytest.raises(InvalidInput, match="unknown time zone"):
            zone_named(name)


@given(st.lists(st.sampled_from(["human", "agent", "environment"])))
def test_a_trace_builder_counts_rounds_as_the_projector_does(roles: list[str]) -> None:
    builder = TraceBuilder("s")
    drafts = [builder.put(OPENED, "environment", "environment", 0.0)]
    drafts += [builder.put(MessageSent(text="x"), r, r, 0.0) for r in roles]  # type: ignore[arg-type]
    projector = RoundProjector()
    for record in records_of(*(one.draft for one in drafts)):
        projector.feed(record)
    assert builder.state.rounds.number == projector.number
    assert builder.state.rounds.current.last_act == projector.current.last_act
