"""Checks the contract of ``Store``, for the stores of Duolog and of others.

    async def test_my_store(tmp_path):
        await check_event_log(lambda: MyLog(tmp_path / uuid4().hex))

Each check gets a new log. A store that breaks a promise fails with an ``AssertionError`` that
says which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import anyio
import msgspec

from ...engine.codec import digest
from ...engine.errors import (
    CheckpointConflict,
    CodecError,
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    SessionClosedError,
    SessionNotFound,
    VersionConflict,
)
from ...engine.events import (
    ActionTaken,
    Event,
    FeedbackGiven,
    MessageSent,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Unknown,
    UtilityScored,
)
from ...engine.log.contract import Advance, Derived, EventLog, Store
from ...engine.log.derived import NUMBERS
from ...engine.records import TRACE, Draft, Record
from ..tools import appended, collect, message, raises, require
from .subscriptions import LIVE_CHECKS

__all__ = ("CHECKS", "Check", "check_event_log")

Check: TypeAlias = Callable[[Store], Awaitable[None]]
"""A check of one promise, on a new, open log."""

_SCORER = ScorerRef(name="judge", version="1", config="-")


async def check_event_log(factory: Callable[[], Store]) -> None:
    """Checks that the logs a factory makes keep the contract of ``Store``.

    Args:
        factory: returns a new, empty log, not entered yet, on each call.

    Raises:
        AssertionError: a promise is broken; says which.
    """
    for check in CHECKS:
        with anyio.fail_after(60):
            async with factory() as log:
                await check(log)
    log = factory()
    await check_closing(log)


async def check_order(log: EventLog) -> None:
    """Versions count from 1 in each stream, positions grow in commit order, reads give both."""
    require(await collect(log.read_all()) == [], "a new log must be empty")
    first = await appended(log, "a", 3)
    second = await log.append("b", [message("x")], stream=TRACE)
    third = await log.append("a", [message("y")], stream="judge@1")
    fourth = await appended(log, "a", 2)
    everything = [*first, *second, *third, *fourth]
    positions = [record.position for record in everything]
    require(positions == sorted(set(positions)), f"positions must grow: {positions}")
    require(positions[0] > 0, "positions begin after 0, where readers begin")
    require([r.version for r in first + fourth] == [1, 2, 3, 4, 5], "versions count from 1")
    require(third[0].version == 1, "each stream has versions of its own")
    require(await collect(log.read_all()) == everything, "read_all gives all, in order")
    scanned: list[Record] = []
    await log.scan(scanned.extend)
    require(scanned == everything, "scan hands over all, in order")
    require(await collect(log.read("a")) == first + fourth, "read gives one stream, in order")
    require(await collect(log.read("a", stream="judge@1")) == third, "read gives the stream named")
    require(
        await collect(log.read_all(session="a")) == first + third + fourth,
        "read_all of a session gives all of its streams by position",
    )
    require(await collect(log.read("a", after_version=3)) == fourth, "read begins after a version")
    for index, record in enumerate(everything):
        rest = await collect(log.read_all(after_position=record.position))
        require(rest == everything[index + 1 :], "read_all begins after a position")
        own = [r for r in everything[index + 1 :] if r.session == "a"]
        rest = await collect(log.read_all(session="a", after_position=record.position))
        require(rest == own, "read_all of a session begins after a position")
    require(await collect(log.read("nobody")) == [], "a session that is not there is empty")
    require(await collect(log.read("a", after_version=99)) == [], "beyond the end is nothing")


async def check_envelopes(log: EventLog) -> None:
    """A record equals the appended event: its whole envelope, and its body byte for byte."""
    drafts = [
        Draft(MessageSent(text="zażółć \U0001f600 \x00 \\"), "ann", "human", 1.25, "id-1"),
        Draft(
            ActionTaken(name="search", arguments={"q": [1, 2.5, None]}), "bot", "agent", 2, seen=1
        ),
        Draft(Unknown("Invented", 7, b'{"kind":"Invented","x": 1}'), "engine", "environment", 3.0),
        Draft(Unknown("MessageSent", 99, b'{"kind":"MessageSent"}'), "engine", "environment", 0.0),
        Draft(UtilityScored(scorer=_SCORER, value=0.5), "judge", "scorer", -4.5, cause="trace/1"),
    ]
    returned = await log.append("s", drafts)
    stored = await collect(log.read("s"))
    require(stored == returned, "read gives the records that append gave")
    for record, draft in zip(stored, drafts, strict=True):
        require(record.event == draft.event, f"the event must come back: {draft.event!r}")
        envelope = (record.actor, record.role, record.time, record.cause, record.seen)
        wanted = (draft.actor, draft.role, draft.time, draft.cause, draft.seen)
        require(envelope == wanted, f"the envelope must come back: {wanted}, not {envelope}")
        require(record.caller_id == draft.id, "the caller's id must come back")
    require(stored[2].body == b'{"kind":"Invented","x": 1}', "an unknown body stays byte for byte")
    require(isinstance(stored[3].event, Unknown), "a newer schema is unknown")
    require(stored[0].id == "id-1" and stored[1].id == "s/trace/2", "ids are as defined")


async def check_expected_version(log: EventLog) -> None:
    """An expected version that does not hold is a conflict that says both; nothing is written."""
    await appended(log, "s", 2, expected_version=0)
    await appended(log, "s", 1, expected_version=2)
    for wrong in (0, 2, 4):
        error = await raises(VersionConflict, appended(log, "s", 2, expected_version=wrong))
        require((error.expected, error.actual) == (wrong, 3), "the conflict says both versions")
        require((error.session, error.stream) == ("s", TRACE), "the conflict says where")
    error = await raises(
        VersionConflict, log.append("s", [message("x")], stream="other", expected_version=3)
    )
    require(error.actual == 0, "versions are compared in the stream appended to")
    await raises(VersionConflict, appended(log, "new", 1, expected_version=1))
    require(len(await collect(log.read_all())) == 3, "a conflict writes nothing")
    await raises(SessionNotFound, log.summary("new"))
    await appended(log, "s", 1, expected_version=3)


async def check_bad_input(log: EventLog) -> None:
    """A log refuses a whole batch that it cannot store, and nothing changes."""
    good = message("good")
    await raises(InvalidInput, log.append("", [good]))
    await raises(InvalidInput, log.append("s", [good], stream=""))
    await raises(InvalidInput, log.append("s", []))
    for time in (float("nan"), float("inf")):
        bad = Draft(MessageSent(text="x"), "ann", "human", time)
        await raises(InvalidInput, log.append("s", [good, bad]))
    lone = Draft(MessageSent(text="\ud800"), "ann", "human", 1.0)
    await raises(CodecError, log.append("s", [good, lone]))
    await raises(DuplicateConflict, log.append("s", [message("x", "i"), message("y", "i")]))
    require(await collect(log.read_all()) == [], "what is refused is refused whole")
    records = await log.append("s", [good])
    require(await collect(log.read_all()) == records, "and the log goes on")


async def check_idempotence(log: EventLog) -> None:
    """An append whose ids are all there gives the original records; anything between conflicts."""
    drafts = [message("one", "1"), message("two", "2")]
    original = await log.append("s", drafts, expected_version=0)
    later = [Draft(d.event, d.actor, d.role, d.time + 60, d.id) for d in drafts]
    for again in (drafts, later):
        records = await log.append("s", again, expected_version=0)
        require(records == original, "an append that is repeated gives the original records")
    require(await log.append("s", drafts[:1]) == original[:1], "so does a part of it")
    await raises(DuplicateConflict, log.append("s", [message("one", "1"), message("new", "3")]))
    await raises(DuplicateConflict, log.append("s", [message("one", "1"), message("no id")]))
    error = await raises(DuplicateConflict, log.append("s", [message("else", "1")]))
    require((error.session, error.event_id) == ("s", "1"), "the conflict says which id")
    await raises(DuplicateConflict, log.append("s", [message("one", "1")], stream="other"))
    one = drafts[0]
    for other in (
        Draft(one.event, "bob", one.role, one.time, "1"),
        Draft(one.event, one.actor, "agent", one.time, "1"),
        Draft(one.event, one.actor, one.role, one.time, "1", cause="s/trace/1"),
        Draft(FeedbackGiven(thumbs="up"), one.actor, one.role, one.time, "1"),
    ):
        await raises(DuplicateConflict, log.append("s", [other]))
    seen = Draft(one.event, one.actor, one.role, one.time, "1", seen=1)
    require(await log.append("s", [seen]) == original[:1], "what an actor had seen may differ")
    require(await collect(log.read_all()) == original, "nothing is recorded twice")
    elsewhere = await log.append("t", [message("one", "1")])
    require(elsewhere[0].session == "t", "ids are unique in a session, not across sessions")


async def check_checkpoints(log: EventLog) -> None:
    """Checkpoints move by compare-and-set, together with the append or not at all."""
    require(await log.checkpoint("c", "1") == 0, "a checkpoint begins at 0")
    move = Advance(consumer="c", version="1", expected=0, position=5)
    output = await log.append("s", [message("out", "o-1")], stream="c@1", checkpoint=move)
    require(await log.checkpoint("c", "1") == 5, "an append moves the checkpoint")
    require(await log.checkpoint("c", "2") == 0, "another version has its own checkpoint")
    error = await raises(
        CheckpointConflict, log.append("s", [message("more")], stream="c@1", checkpoint=move)
    )
    require((error.expected, error.actual) == (0, 5), "the conflict says both positions")
    require(await collect(log.read_all()) == output, "and nothing is written")
    again = await log.append("s", [message("out", "o-1")], stream="c@1", checkpoint=move)
    require(again == output, "a redelivery that had arrived gives the original records")
    lost = Advance(consumer="c", version="1", expected=5, position=6)
    again = await log.append("s", [message("out", "o-1")], stream="c@1", checkpoint=lost)
    require(again == output, "a redelivery with another checkpoint gives the original records")
    require(await log.checkpoint("c", "1") == 6, "and the checkpoint moves as the first would have")
    await raises(
        CheckpointConflict,
        log.append("s", [message("out", "o-1")], stream="c@1", checkpoint=move),
    )
    back = Advance(consumer="c", version="1", expected=6, position=5)
    await log.append("s", [], checkpoint=back)
    alone = Advance(consumer="c", version="1", expected=5, position=9)
    require(await log.append("s", [], checkpoint=alone) == [], "a checkpoint may move alone")
    require(await log.checkpoint("c", "1") == 9, "a checkpoint may move alone")
    late = Advance(consumer="c", version="1", expected=9, position=12)
    await raises(
        VersionConflict,
        log.append("s", [message("x")], stream="c@1", expected_version=7, checkpoint=late),
    )
    require(await log.checkpoint("c", "1") == 9, "a failed append moves no checkpoint")


async def check_closed_sessions(log: EventLog) -> None:
    """After ``SessionClosed`` the trace takes feedback only; scorers' streams stay open."""
    closing = Draft(SessionClosed(reason="finished", by="ann"), "ann", "human", 2.0)
    feedback = Draft(FeedbackGiven(thumbs="up"), "ann", "human", 3.0)
    await raises(SessionClosedError, log.append("s", [closing, message("late")]))
    await log.append("s", [message("hello"), closing, feedback])
    await raises(SessionClosedError, log.append("s", [message("late")]))
    await raises(SessionClosedError, log.append("s", [feedback, message("late")]))
    await log.append("s", [feedback])
    await log.append("s", [message("measured")], stream="judge@1")
    require((await log.summary("s")).version == 4, "refused events are not there")
    require((await log.summary("s")).state == "finished", "the state is the reason")
    await log.append("t", [message("other sessions stay open")])


def _story(index: int) -> list[Draft]:
    group = {"agent": f"a{index % 3}", "user": "u"}
    opened = SessionOpened(
        task="travel",
        instance=str(index),
        participants=(),
        clock="virtual",
        config={"group": group},
    )
    acts: Sequence[tuple[Event, Role]] = [
        (MessageSent(text="plan a trip"), "human"),
        (ActionTaken(name="search"), "agent"),
        (SnapshotTaken(content="v1", digest=digest("v1")), "agent"),
        (MessageSent(text="no"), "human"),
        (MessageSent(text="and cheaper"), "human"),
        (MessageSent(text="fine"), "agent"),
        (ActionTaken(name="edit"), "human"),
    ]
    greeted: Sequence[tuple[Event, Role]] = [
        (MessageSent(text="hello"), "agent"),
        (MessageSent(text="how can I help?"), "agent"),
        *acts[:4],
    ]
    drafts = [Draft(opened, "engine", "environment", 0.5)]
    for number, (event, role) in enumerate(acts[:index] if index < 8 else greeted[: index - 7], 1):
        drafts.append(Draft(event, role, role, number * 1.5))
    return drafts


async def check_summaries(log: EventLog) -> None:
    """The list of sessions equals a fold over all records."""
    names = [f"s{index}" for index in range(14)]
    for index, name in enumerate(names):
        for draft in _story(index):
            await log.append(name, [draft])
        scored = [
            UtilityScored(scorer=_SCORER, snapshot=4, value=value) for value in (0.25, 0.75, None)
        ]
        drafts = [Draft(event, "judge", "scorer", 1.0) for event in scored]
        await log.append(name, drafts[: index % 4], stream="judge@1") if index % 4 else None
    listed = await collect(log.sessions())
    require([line.session for line in listed] == names, "sessions come in order of first record")
    for index, line in enumerate(listed):
        records = await collect(log.read_all(session=line.session))
        trace = [record for record in records if record.stream == TRACE]
        require(line == await log.summary(line.session), "summary gives the line of the list")
        require(line.events == len(records) and line.version == len(trace), "counts are exact")
        require((line.task, line.instance) == ("travel", str(index)), "the task is named")
        require(line.group == {"agent": f"a{index % 3}", "user": "u"}, "labels are kept")
        require((line.opened, line.last) == (0.5, trace[-1].time), "times are of the trace")
        require(line.position == records[-1].position and line.state == "open", "and where it is")
    await raises(SessionNotFound, log.summary("nobody"))


def _row(session: str, position: int, text: str = "", version: int = 1) -> Derived:
    return Derived(
        session=session,
        kind="fold/1",
        version=version,
        position=position,
        payload=text.encode(),
        numbers=(1.5, None, float(position)),
    )


async def check_derived(log: EventLog) -> None:
    """Derived rows can be read back by kind and version; older rows never replace newer ones."""
    require(await collect(log.derived("fold/1", 1)) == [], "a new log keeps nothing")
    ends = {name: (await appended(log, name, 3))[-1].position for name in ("b", "a", "c")}
    rows = [_row(name, ends[name], f"{name} \x00\xff") for name in ("c", "a", "b")]
    require(await log.keep_derived(rows) == 3, "rows are kept, and counted")
    rows.reverse()
    found = await collect(log.derived("fold/1", 1))
    require(found == [rows[0], rows[1], rows[2]], "rows come in order of first record, unchanged")
    chosen = await collect(log.derived("fold/1", 1, sessions=["c", "b", "nobody"]))
    require(chosen == [rows[0], rows[2]], "rows of some sessions come in the same order")
    require(await collect(log.derived("fold/1", 1, sessions=[])) == [], "no sessions, no rows")
    require(await collect(log.derived("fold/2", 1)) == [], "each kind has rows of its own")
    require(await collect(log.derived("fold/1", 2)) == [], "rows of another version are not given")
    other = msgspec.structs.replace(rows[0], kind="fold/2", numbers=())
    require(await log.keep_derived([other]) == 1, "a session has a row of each kind")
    require(await collect(log.derived("fold/2", 1)) == [other], "a row need not have numbers")
    late = _row("b", ends["b"] - 1, "seen less")
    require(await log.keep_derived([late]) == 0, "a lower position replaces no higher one")
    again = _row("b", ends["b"], "again")
    require(await log.keep_derived([again]) == 1, "an equal position replaces")
    require(await collect(log.derived("fold/1", 1, sessions=["b"])) == [again], "and is there")
    newer = _row("b", ends["b"] - 1, "newer fold", 2)
    require(await log.keep_derived([newer]) == 1, "another version replaces at any position")
    require(await collect(log.derived("fold/1", 2)) == [newer], "and is there")
    left = await collect(log.derived("fold/1", 1))
    require(left == rows[1:], "a session has one row of a kind")
    await log.drop_derived()
    require(await collect(log.derived("fold/1", 1)) == [], "all rows can be dropped")
    require(await log.keep_derived(rows) == 3, "and kept again")


async def check_derived_input(log: EventLog) -> None:
    """Rows of unknown sessions and rows ahead of the log are dropped; rows that cannot be kept are refused."""
    end = (await appended(log, "s", 2))[-1].position
    require(await log.keep_derived([_row("s", end + 1)]) == 0, "rows that are ahead are dropped")
    rows = [_row("nobody", 1), _row("s", end)]
    require(await log.keep_derived(rows) == 1, "rows of unknown sessions are dropped")
    require(await collect(log.derived("fold/1", 1)) == rows[1:], "the others are kept")
    await raises(InvalidInput, log.keep_derived([rows[1], rows[1]]))
    require(await log.keep_derived([]) == 0, "nothing may be kept, too")
    for numbers in ((1.0,) * (NUMBERS + 1), (float("nan"),), (float("inf"),)):
        bad = msgspec.structs.replace(rows[1], numbers=numbers)
        await raises(InvalidInput, log.keep_derived([bad]))
    for change in ({"kind": ""}, {"version": -1}, {"position": 1 << 63}):
        bad = msgspec.structs.replace(rows[1], **change)
        await raises(InvalidInput, log.keep_derived([bad]))
    more = await appended(log, "s", 1)
    listed = await log.summary("s")
    require(listed.position == more[-1].position, "an append makes what was kept stale")
    [kept] = await collect(log.derived("fold/1", 1))
    require(kept.position < listed.position, "which its position says")


async def check_many_derived(log: EventLog) -> None:
    """Many rows, kept by several tasks at once, all come back in order."""
    ends = [(await appended(log, f"s{number}", 1))[-1].position for number in range(700)]
    rows = [_row(f"s{number}", end, "x" * (number % 50)) for number, end in enumerate(ends)]
    async with anyio.create_task_group() as tasks:
        for start in range(4):
            tasks.start_soon(log.keep_derived, rows[start::4])
    require(await collect(log.derived("fold/1", 1)) == rows, "all rows are there")
    names = [row.session for row in rows[::-1]]
    require(await collect(log.derived("fold/1", 1, sessions=names)) == rows, "named ones, too")


async def check_forgotten_derived(log: Store) -> None:
    """Forgetting a session drops its rows, and a fold that was under way leaves none."""
    ends = {name: (await appended(log, name, 3))[-1].position for name in ("a", "b")}
    rows = [_row(name, end) for name, end in ends.items()]
    await log.keep_derived(rows)
    await log.forget("a")
    require(await collect(log.derived("fold/1", 1)) == rows[1:], "forgetting drops rows")
    require(await log.keep_derived(rows) == 1, "rows of forgotten sessions are not kept")
    require(await collect(log.derived("fold/1", 1)) == rows[1:], "and are not there")
    for turn in range(5):
        name = f"raced {turn}"
        row = _row(name, (await appended(log, name, 2))[-1].position)
        async with anyio.create_task_group() as tasks:
            for _ in range(turn + 1):
                tasks.start_soon(log.keep_derived, [row])
            tasks.start_soon(log.forget, name)
            for _ in range(4):
                tasks.start_soon(log.keep_derived, [row])
        found = await collect(log.derived("fold/1", 1, sessions=[name]))
        require(found == [], "a fold that races with forgetting leaves nothing")
    require(not (await log.verify()).problems, "and the log is whole")


async def check_closing(log: EventLog) -> None:
    """A log is used between enter and exit; closing wakes its subscribers, and is idempotent.

    Unlike the other checks, this one gets a log that is not entered.
    """
    await raises(LogClosed, log.append("s", [message("early")]))
    async with log:
        await appended(log, "s", 3)
        subscription, tap = log.subscribe(), log.tap()
        reading = log.read_all()
        ended: list[str] = []

        async def follow(records: object, name: str) -> None:
            await raises(LogClosed, _exhaust(records))
            ended.append(name)

        async with subscription, tap, anyio.create_task_group() as tasks:
            tasks.start_soon(follow, subscription, "subscription")
            tasks.start_soon(follow, tap, "tap")
            await anyio.wait_all_tasks_blocked()
            await log.aclose()
        require(sorted(ended) == ["subscription", "tap"], "closing wakes those who follow")
        await raises(LogClosed, collect(reading))
        await raises(LogClosed, log.append("s", [message("late")]))
        await raises(LogClosed, log.summary("s"))
        await raises(LogClosed, log.checkpoint("c", "1"))
        await raises(LogClosed, log.scan(len))
        await raises(LogClosed, log.keep_derived([_row("s", 1)]))
        await raises(LogClosed, log.drop_derived())
        for use in (
            log.subscribe,
            log.tap,
            log.sessions,
            log.read_all,
            lambda: log.read("s"),
            lambda: log.derived("fold/1", 1),
        ):
            await raises(LogClosed, _use(use))
        await log.aclose()
    await log.aclose()


async def _exhaust(records: object) -> None:
    async for _ in records:  # type: ignore[attr-defined]
        pass


async def _use(use: Callable[[], object]) -> None:
    found = use()
    if hasattr(found, "__anext__") and not hasattr(found, "__aenter__"):
        await _exhaust(found)


CHECKS: Final[tuple[Check, ...]] = (
    check_order,
    check_envelopes,
    check_expected_version,
    check_bad_input,
    check_idempotence,
    check_checkpoints,
    check_closed_sessions,
    check_summaries,
    check_derived,
    check_derived_input,
    check_many_derived,
    check_forgotten_derived,
    *LIVE_CHECKS,
)
"""All checks of an open log, one promise each."""
