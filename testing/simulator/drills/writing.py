"""The answers of a log to appends, compared with a second, plain implementation of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple, final

from ....engine.errors import (
    CheckpointConflict,
    DuologError,
    DuplicateConflict,
    SessionClosedError,
    SessionNotFound,
    VersionConflict,
)
from ....engine.events import Event, FeedbackGiven, SessionClosed, SessionOpened, Unknown
from ....engine.log.contract import Advance, Derived, Store
from ....engine.records import TRACE, Draft, Record
from ...tools import collect, raises, require
from .ground import Ground, act, closing, feedback, measured, opening, said

__all__ = ("answer", "repeat")

_SESSIONS: Final = ("a", "b", "c", "d")
_STREAMS: Final = (TRACE, TRACE, TRACE, "judge@1")


class _Kept(NamedTuple):
    """A record as the rules have it."""

    session: str
    stream: str
    version: int
    draft: Draft
    event: Event | Unknown | None


@final
class _Rules:
    """The rules of a log, without any thought of speed."""

    def __init__(self) -> None:
        self.records: list[_Kept] = []
        self.moved: dict[str, int] = {}
        self.rows: dict[tuple[str, str], Derived] = {}
        self.forgotten: set[str] = set()

    def of(self, session: str, stream: str | None = None) -> list[int]:
        """The positions of a session, or of one of its streams."""
        return [
            at
            for at, kept in enumerate(self.records, 1)
            if kept.session == session and stream in (None, kept.stream)
        ]

    def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        stream: str,
        expected: int | None,
        move: Advance | None,
    ) -> list[int] | DuologError:
        """The positions that an append gets, or its error."""
        at = 0 if move is None else self.moved.get(move.consumer, 0)
        mine = {self.records[n - 1].draft.id: n for n in self.of(session)}
        there = [mine[draft.id] for draft in drafts if draft.id and draft.id in mine]
        if there:
            known = [self.records[n - 1] for n in there]
            alike = len(known) == len(drafts) and all(
                _same(kept, draft, stream) for kept, draft in zip(known, drafts, strict=True)
            )
            if not alike:
                return DuplicateConflict(session, "", "")
            if move is not None and at != move.position:
                if at != move.expected:
                    return CheckpointConflict(move.consumer, "1", move.expected, at)
                self.moved[move.consumer] = move.position
            return there
        if self._refuses(session, stream, drafts):
            return SessionClosedError(session)
        version = len(self.of(session, stream))
        if expected is not None and expected != version:
            return VersionConflict(session, stream, expected, version)
        if move is not None:
            if at != move.expected:
                return CheckpointConflict(move.consumer, "1", move.expected, at)
            self.moved[move.consumer] = move.position
        for draft in drafts:
            version += 1
            self.records.append(_Kept(session, stream, version, draft, draft.event))
        return list(range(len(self.records) - len(drafts) + 1, len(self.records) + 1))

    def _refuses(self, session: str, stream: str, drafts: Sequence[Draft]) -> bool:
        if not drafts:
            return False
        if session in self.forgotten:
            return True
        if stream != TRACE or all(isinstance(draft.event, FeedbackGiven) for draft in drafts):
            return False
        return any(
            isinstance(self.records[at - 1].event, SessionClosed) for at in self.of(session, TRACE)
        )

    def forget(self, sessions: Sequence[str]) -> set[str]:
        """The sessions that are forgotten with some: the forks, and the forks of those."""
        family, before = set(sessions), 0
        names = {kept.session for kept in self.records}
        while len(family) > before:
            before = len(family)
            family |= {name for name in names if self._origin(name) in family}
        for at, kept in enumerate(self.records):
            if kept.session in family:
                self.records[at] = kept._replace(event=None)
        self.rows = {key: row for key, row in self.rows.items() if row.session not in family}
        self.forgotten |= family
        return family

    def _origin(self, session: str) -> str | None:
        """The origin of a session, by its last opening that names one; None if it is not a fork."""
        found: str | None = None
        for at in self.of(session, TRACE):
            event = self.records[at - 1].draft.event
            if isinstance(event, SessionOpened) and event.forked_from is not None:
                found = event.forked_from.session
        return found

    def keep(self, rows: Sequence[Derived]) -> int:
        """How many rows are kept."""
        count = 0
        for row in rows:
            own, old = self.of(row.session), self.rows.get((row.session, row.kind))
            late = old is not None and old.version == row.version and old.position > row.position
            if own and row.session not in self.forgotten and row.position <= own[-1] and not late:
                self.rows[row.session, row.kind] = row
                count += 1
        return count


def _same(kept: _Kept, draft: Draft, stream: str) -> bool:
    old = kept.draft
    alike = (kept.stream, old.actor, old.role, old.cause) == (
        stream,
        draft.actor,
        draft.role,
        draft.cause,
    )
    body = kept.event is None or kept.event == draft.event
    return alike and body and type(old.event) is type(draft.event)


async def answer(ground: Ground) -> None:
    """Whatever is appended, forgotten or kept: a log answers as the rules say, also when opened again."""
    random, rules = Random(ground.draw), _Rules()
    for turn in range(1 if ground.directory is None else 3):
        async with ground.open("answers") as log:
            for number in range(14):
                await _ask(log, rules, random, turn * 100 + number)
            await _compare(log, rules, random)


async def _ask(log: Store, rules: _Rules, random: Random, number: int) -> None:
    session = random.choice(_SESSIONS)
    what = random.choices(
        ("append", "again", "close", "feedback", "fork", "move", "forget", "keep"),
        (10, 6, 1, 1, 2, 2, 1, 3),
    )[0]
    stream, move, expected = random.choice(_STREAMS), None, None
    if random.random() < 0.3:
        expected = len(rules.of(session, stream)) + random.choice((0, 0, 0, 1, -1))
        expected = max(0, expected)
    if random.random() < 0.3 or what == "move":
        consumer = random.choice(("one", "two"))
        at = rules.moved.get(consumer, 0)
        expects = at + random.choice((0, 0, 0, 1))
        to = at + random.choice((1, 2, 0))
        move = Advance(consumer=consumer, version="1", expected=expects, position=to)
    if what == "forget":
        if session in {kept.session for kept in rules.records}:
            names = [session, session]
            wanted = rules.forget(names)
            found = (await log.forget(names)).sessions
            require(set(found) == wanted, f"forgotten: {found}, not {wanted}")
            require(len(found) == len(wanted), f"each is forgotten once: {found}")
        else:
            await raises(SessionNotFound, log.forget(session))
        return
    if what == "keep":
        own = rules.of(session)
        row = Derived(
            session=session,
            kind=random.choice(("fold", "other")),
            version=random.choice((1, 1, 2)),
            position=random.randint(0, (own[-1] if own else 1) + 1),
            payload=str(number).encode(),
        )
        kept, found_rows = rules.keep([row]), await log.keep_derived([row])
        require(found_rows == kept, f"rows kept: {found_rows}, not {kept}, of {row}")
        return
    drafts = _drafts(rules, random, what, number, session)
    if any(isinstance(draft.event, SessionClosed) for draft in drafts[:-1]):
        return
    if what == "again" and drafts:
        stream = random.choice((stream, TRACE, "judge@1"))
    if not drafts and move is None:
        return
    wanted_answer = rules.append(session, drafts, stream, expected, move)
    await _check_append(log, rules, wanted_answer, session, drafts, stream, expected, move)


def _drafts(rules: _Rules, random: Random, what: str, number: int, session: str) -> list[Draft]:
    """The drafts of an append; those of ``again`` were appended before, perhaps with one change."""
    if what == "move":
        return []
    if what == "close":
        return [closing()]
    if what == "feedback":
        return [feedback(str(number), random.choice((None, f"f{number}")))]
    if what == "fork":
        return [opening(f"task {number}", random.choice(_SESSIONS)), said(f"fork {number}")]
    own = [rules.records[at - 1] for at in rules.of(session) if rules.records[at - 1].draft.id]
    if what == "again" and own:
        begin = random.randrange(len(own))
        some = [kept.draft for kept in own[begin : begin + random.randint(1, 3)]]
        change = random.randrange(6)
        if change == 0:
            some[0] = said(f"new {number}", some[0].id)
        elif change == 1:
            some.append(said(f"new {number}", f"new {number}"))
        elif change == 2:
            some.append(said(f"new {number}"))
        return some
    made = []
    for at in range(random.choice((1, 1, 2, 3, 5))):
        text = f"{number}.{at}"
        with_id = text if random.random() < 0.6 else None
        made.append(
            random.choice((said(text, with_id), act(text, with_id), measured(number / 9, with_id)))
        )
    return made


async def _check_append(
    log: Store,
    rules: _Rules,
    wanted: list[int] | DuologError,
    session: str,
    drafts: Sequence[Draft],
    stream: str,
    expected: int | None,
    move: Advance | None,
) -> None:
    what = f"an append of {len(drafts)} to {session}/{stream} at {expected} with {move}"
    try:
        got = await log.append(
            session, drafts, stream=stream, expected_version=expected, checkpoint=move
        )
    except DuologError as error:
        require(type(error) is type(wanted), f"{what} gives {wanted}, not {error!r}")
        for name in ("session", "stream", "consumer", "expected", "actual"):
            mine, theirs = getattr(wanted, name, None), getattr(error, name, None)
            require(mine == theirs, f"{what}: {name} is {mine}, not {theirs}")
        return
    require(isinstance(wanted, list), f"{what} is refused: {wanted!r}")
    assert isinstance(wanted, list)
    require([record.position for record in got] == wanted, f"{what} gives {wanted}, not {got}")
    for record in got:
        _check_record(record, rules.records[record.position - 1])


def _check_record(record: Record, kept: _Kept) -> None:
    where = (record.session, record.stream, record.version)
    require(where == kept[:3], f"a record is at {where}, not {kept[:3]}")
    if kept.event is None:
        require(record.body is None, f"a forgotten record has no body: {record}")
    else:
        require(record.event == kept.event, f"a record says {record.event}, not {kept.event}")
    draft = kept.draft
    mine = (draft.actor, draft.role, draft.time, draft.id, draft.cause, draft.seen)
    theirs = (
        record.actor,
        record.role,
        record.time,
        record.caller_id,
        record.cause,
        record.seen,
    )
    require(mine == theirs, f"an envelope is {theirs}, not {mine}")


async def _compare(log: Store, rules: _Rules, random: Random) -> None:
    found = await collect(log.read_all())
    require(len(found) == len(rules.records), f"{len(found)} records, not {len(rules.records)}")
    for record, kept in zip(found, rules.records, strict=True):
        _check_record(record, kept)
    names = list(dict.fromkeys(kept.session for kept in rules.records))
    for consumer in ("one", "two"):
        at, wanted = await log.checkpoint(consumer, "1"), rules.moved.get(consumer, 0)
        require(at == wanted, f"the checkpoint of {consumer} is at {at}, not {wanted}")
        require(await log.checkpoint(consumer, "2") == 0, "each version has its own checkpoint")
    listed = {about.session: about async for about in log.sessions()}
    require(list(listed) == names, f"sessions are listed by their first records: {list(listed)}")
    for name in names:
        about, own = listed[name], rules.of(name)
        trace = [rules.records[at - 1].draft for at in rules.of(name, TRACE)]
        require(about == await log.summary(name), "a summary is as in the list")
        counts = (about.events, about.version, about.position)
        wanted_counts = (len(own), len(trace), own[-1])
        require(counts == wanted_counts, f"{name} counts {counts}, not {wanted_counts}")
        times = (about.opened, about.last)
        wanted_times = (trace[0].time, trace[-1].time) if trace else (0.0, 0.0)
        require(times == wanted_times, f"{name} lasts from {times}, not {wanted_times}")
        gone = name in rules.forgotten
        closed = [d.event.reason for d in trace if isinstance(d.event, SessionClosed)]
        state = "forgotten" if gone else closed[-1] if closed else "open"
        require(about.state == state, f"{name} is {about.state}, not {state}")
        opened = [d.event for d in trace if isinstance(d.event, SessionOpened)]
        task = opened[-1].task if opened and not gone else ""
        require(about.task == task, f"{name} is about {about.task!r}, not {task!r}")
        agent = {"agent": task, "user": "u"} if task else {}
        require(dict(about.group) == agent, f"{name} has labels {about.group}")
        for stream in (TRACE, "judge@1"):
            positions = rules.of(name, stream)
            after = random.randint(0, len(positions) + 1)
            got = await collect(log.read(name, stream=stream, after_version=after))
            where = [record.position for record in got]
            require(where == positions[after:], f"read after {after} gives {where}")
        after = random.randint(0, len(found) + 1)
        got = await collect(log.read_all(session=name, after_position=after))
        later = [at for at in own if at > after]
        require([r.position for r in got] == later, f"read_all of {name} after {after}: {got}")
    for kind in ("fold", "other"):
        for version in (1, 2):
            rows = [
                row
                for name in names
                if (row := rules.rows.get((name, kind))) is not None and row.version == version
            ]
            got_rows = await collect(log.derived(kind, version))
            require(got_rows == rows, f"rows of {kind} {version}: {got_rows}, not {rows}")
    checked = await log.verify()
    require(not checked.problems, f"a log that was used has no problems: {checked.problems}")
    counts = (checked.events, checked.sessions, checked.forgotten)
    whole = (len(found), len(names), len(rules.forgotten))
    require(counts == whole, f"verify counts {counts}, not {whole}")
    stands = log.statistics()
    require(stands.position == len(found), f"a log is at {stands.position}, not {len(found)}")


async def repeat(ground: Ground) -> None:
    """A log takes many ids in one append, and knows each of them, also when it is opened again."""
    count = 70 + ground.draw % 70
    drafts = [said(str(at), f"id {at}") for at in range(count)]
    async with ground.open("repeated") as log:
        first = await log.append("s", drafts)
        require(
            [r.caller_id for r in first] == [d.id for d in drafts], "ids are as they were given"
        )
        require(await log.append("s", drafts) == first, "an append may be repeated whole")
        for at in (0, 63, 64, count - 1):
            require(await log.append("s", [drafts[at]]) == [first[at]], f"or in part: {at}")
        await raises(DuplicateConflict, log.append("s", [*drafts, said("new", "new")]))
        require(len(await collect(log.read_all())) == count, "and nothing is there twice")
    if ground.directory is not None:
        async with ground.open("repeated") as log:
            require(
                await log.append("s", drafts) == first, "a log knows ids when it is opened again"
            )
            [last] = await log.append("s", [said("last")])
            require((last.position, last.version) == (count + 1, count + 1), "and goes on")
