"""A session's transcript as HTML: its records, the headings of rounds, and versions of its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import anyio.to_thread
import msgspec
from anyio.lowlevel import checkpoint

from ....engine.errors import CodecError, LogError
from ....engine.events import JSON, ActionResolved, SnapshotTaken, UtilityScored
from ....engine.files import output_text
from ....engine.log.contract import EventLog
from ....engine.records import TRACE, Record
from ....engine.rounds import is_unproductive
from ....engine.text import quantity
from ....scoring.display.diff import changes
from ....scoring.display.records import Context, Description, describe, edited_file
from ....scoring.display.texts import duration, is_virtual, moment, number, one_line
from ....scoring.display.updates import describe_update
from ....scoring.trajectory.updates import StopAdvice, StopWithdrawn, Update
from ..access.disclosure import Disclosure
from ..access.identity import Identity
from ..links import session_address
from ..markup.html import EMPTY, Html, Node, join, tag
from ..markup.records import described, diff_table, unshown
from ..markup.text import code_text, plain, rich_text
from .reading import RoundSeen, SessionReading

__all__ = ("Shape", "Transcript", "difference", "document")

Shape: TypeAlias = Literal["document", "changes"]

_LINES: Final = 4000  # lines of two versions that are compared at most
_CONTEXT: Final = 3  # lines around a change
_RUN: Final = 4  # calls in a row that are folded
_BACK: Final = 16  # versions that are looked through for the one before of a file
_PRIVATE: Final = frozenset({"DraftDropped", "NoteTaken", "ProfileChanged"})
_SLIM: Final = frozenset(
    {"ActionTaken", "DraftDropped", "NoteTaken", "ProfileChanged", "TurnYielded"}
)
"""Kinds that are shown small, as all are that no person or agent did."""
_AHEAD: Final = 20
"""Records after a part in which outcomes of its calls are looked for."""
_FULL: Final = frozenset({"ScorerFailed", "StopAdvised"})


def document(event: SnapshotTaken) -> Html:
    """A version as a document: Markdown as such, files by path, anything else as it is."""
    if event.files is not None and isinstance(event.content, Mapping):
        return join(_file(path, event.content.get(path)) for path in event.files)
    path = edited_file(event.content)
    if path is not None and isinstance(event.content, Mapping):
        return _file(path, event.content.get("text"))
    if isinstance(event.content, str) and event.media_type == "text/markdown":
        return rich_text(event.content)
    return plain(output_text(event))


def _file(path: str, text: JSON) -> Html:
    """A file under its path."""
    if not isinstance(text, str):
        return tag("p", one_line(path), ": its text is not in the log", class_="left-out")
    shown = rich_text(text) if path.endswith(".md") else code_text(text, path)
    name = tag(
        "summary", tag("code", one_line(path)), f" {quantity(len(text.splitlines()), 'line')}"
    )
    return tag("details", name, shown, open=True, class_="file")


async def difference(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    """The changes between two versions: all lines that differ."""
    return await anyio.to_thread.run_sync(_difference, before, after)


def _difference(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    old = [] if before is None else output_text(before).splitlines()
    new = output_text(after).splitlines()
    if len(old) + len(new) > _LINES:
        return tag("p", "these versions are too long to be compared here", class_="problem")
    changed = changes(old, new, context=_CONTEXT)
    return diff_table(changed) if changed else tag("p", "nothing changed", class_="line")


class _Shown(msgspec.Struct, kw_only=False):
    """An entry that is being made.

    Attributes:
        number: the number of its record.
        record: the record.
        told: its description; None if the record cannot be shown.
        body: its contents.
        result: the outcome of a call, in the entry of the call.
        merged: it is an outcome that is shown in the entry of its call.
        failed: it is an outcome, or a call with one, that failed.
    """

    number: int
    record: Record
    told: Description | None = None
    body: Html = EMPTY
    result: Html | None = None
    merged: bool = False
    failed: bool = False

    @property
    def in_run(self) -> bool:
        """Whether it is a call with its outcome, or such an outcome."""
        return self.merged or self.result is not None


def _join_call(calls: Mapping[int, _Shown], one: _Shown) -> None:
    """Moves the outcome of a call into the entry of the call, if both are in one part."""
    event = one.record.event
    call = calls.get(event.action) if isinstance(event, ActionResolved) else None
    if call is None or one.told is None:
        return
    told = msgspec.structs.replace(one.told, does=f"→ {one.told.value}".rstrip(), value="")
    call.result = tag("div", described(told), class_="result", data_i=one.number)
    one.merged, one.body = True, EMPTY
    call.failed = isinstance(event, ActionResolved) and event.outcome == "failed"


@final
class Transcript:
    """Makes the parts of a session's transcript.

    Args:
        log: the log.
        reading: the reading of the session.
        identity: the identity of the user.
    """

    def __init__(self, log: EventLog, reading: SessionReading, identity: Identity) -> None:
        self._log = log
        self._reading = reading
        self._identity = identity
        self._trace: dict[int, Record | None] = {}

    async def part(self, first: int, last: int) -> list[Html]:
        """The entries from one number to another, with the headings before them.

        Raises:
            LogError: the log cannot be read.
        """
        reading = self._reading
        first, last = max(first, 1), min(last, reading.count)
        records = await reading.window(first, last + _AHEAD)
        later = records[last - first + 1 :]
        records = records[: last - first + 1]
        shown = [_Shown(number, record) for number, record in enumerate(records, max(first, 1))]
        calls: dict[int, _Shown] = {}
        for one in shown:
            record = one.record
            if record.stream == TRACE:
                self._trace[record.version] = record
            try:
                one.told = await self._described(record)
                one.body = join(described(one.told, self._button(record)))
            except Exception as error:
                if isinstance(error, LogError):
                    raise
                one.told, one.body = None, unshown(record, error)
            if record.kind == "ActionTaken" and one.told is not None:
                calls[record.version] = one
            elif record.kind == "ActionResolved" and one.told is not None:
                _join_call(calls, one)
            await checkpoint()  # reading a text as Markdown may take a while
        for place, record in enumerate(later, last + 1):
            if record.kind == "ActionResolved":
                await self._join_later(calls, _Shown(place, record))
        return self._folded(shown)

    async def _join_later(self, calls: Mapping[int, _Shown], one: _Shown) -> None:
        """Shows an outcome that came after this part in the entry of its call, too."""
        try:
            event = one.record.event
            if isinstance(event, ActionResolved) and event.action in calls:
                one.told = await self._described(one.record)
                _join_call(calls, one)
        except CodecError:
            return  # the part that it belongs to says so

    def _folded(self, shown: Sequence[_Shown]) -> list[Html]:
        """The entries; a run of calls becomes one row that can be opened."""
        parts: list[Html] = []
        run: list[_Shown] = []
        for one in shown:
            round_ = self._reading.round_begins(one.number)
            if round_ is not None or not one.in_run:
                parts += self._run(run)
                run = []
            if round_ is not None:
                head = _round_head(round_, self._reading.round_seen(round_))
                parts.append(tag("h2", head, data_round=round_, data_i=one.number))
            if one.in_run:
                run.append(one)
            else:
                parts.append(self._entry(one))
        return parts + self._run(run)

    def _run(self, run: Sequence[_Shown]) -> list[Html]:
        entries = [self._entry(one) for one in run]
        calls = sum(not one.merged for one in run)
        if calls < _RUN:
            return entries
        failed = sum(one.failed for one in run)
        mark = tag("b", f", {failed} failed", class_="failed") if failed else None
        summary = tag("summary", f"{calls} calls", mark)
        first = run[0].number
        return [tag("details", summary, entries, class_="run", data_i=first, open=bool(failed))]

    async def snapshot(self, version: int) -> SnapshotTaken | None:
        """A version of the output, as it may be seen; None if there is none."""
        record = await self._record(version)
        event = None if record is None else record.event
        if not isinstance(event, SnapshotTaken) or event.files is None:
            return event if isinstance(event, SnapshotTaken) else None
        return msgspec.structs.replace(event, content=await self._texts(event, version))

    async def _texts(self, event: SnapshotTaken, version: int) -> dict[str, JSON]:
        """The texts of the files of a snapshot: those that it has, and of others the latest."""
        texts = dict(event.content) if isinstance(event.content, Mapping) else {}
        draft = self._reading.draft_before(version)
        while draft is not None and len(texts) < len(event.files or {}):
            record = await self._record(draft.version)
            found = None if record is None else record.event
            if isinstance(found, SnapshotTaken) and isinstance(found.content, Mapping):
                if found.files is None:
                    break
                for path in event.files or {}:
                    if path in found.content:
                        texts.setdefault(path, found.content[path])
            draft = self._reading.draft_before(draft.version)
        return {path: texts[path] for path in event.files or {} if path in texts}

    async def _described(self, record: Record) -> Description:
        event = record.event
        if isinstance(event, SnapshotTaken):
            before = await self._before(record, edited_file(event.content))
            base = None if event.base is None else self._reading.draft_number(event.base)
            context = Context(before=before, draft=base, most=_LINES)
            if event.files is not None and before is not None:
                earlier = before.event
                if isinstance(earlier, SnapshotTaken):
                    files = await self._texts(earlier, before.version)
                    context = context._replace(files=files)
            return await anyio.to_thread.run_sync(describe, record, context)
        if isinstance(event, ActionResolved):
            return describe(record, Context(action=await self._record(event.action)))
        if isinstance(event, UtilityScored) and event.snapshot is not None:
            return describe(record, Context(draft=self._reading.draft_number(event.snapshot)))
        return describe(record)

    async def _before(self, record: Record, path: str | None) -> Record | None:
        """The version before a version of the output, or of a file."""
        version = record.version
        for _ in range(_BACK):
            draft = self._reading.draft_before(version)
            if draft is None:
                return None
            version = draft.version
            try:
                found = await self.snapshot(version)
            except CodecError:
                return None
            if found is not None and edited_file(found.content) == path:
                return self._trace[version]
        return None

    async def _record(self, version: int) -> Record | None:
        """A record of the trace, as it may be seen."""
        if version not in self._trace:
            disclosure = Disclosure(self._identity)
            found: Record | None = None
            async for record in self._log.read(self._reading.session, after_version=version - 1):
                found = disclosure.see(record) if record.version == version else None
                break
            self._trace[version] = found
        return self._trace[version]

    def _button(self, record: Record) -> Node:
        """The button that shows a version of the output; None for other records."""
        if record.kind != "SnapshotTaken":
            return None
        show = f"Draft {self._reading.draft_number(record.version)}"
        return [" ", tag("button", show, type="button", data_draft=record.version)]

    def _entry(self, one: _Shown) -> Html:
        """The entry of a record."""
        record, place, body = one.record, one.number, one.body
        aside = one.told is not None and one.told.aside
        slim = record.kind in _SLIM or aside and record.kind not in _FULL
        private = " private" if record.kind in _PRIVATE else ""
        call = " merged" if one.merged else " call" if one.in_run else ""
        who = tag("span", one_line(record.actor), class_=f"who {record.role}", dir="auto")
        label = self._reading.label(place)
        link = tag(
            "a",
            f"#{label}",
            href=session_address(record.session, label),
            class_="number",
            title=f"{record.kind}, {record.stream} {record.version}, position {record.position}: "
            "go back to here",
        )
        opened = self._reading.opened_at
        whole = None if is_virtual(opened) else moment(record.time)
        time = tag("time", duration(record.time - opened), title=whole)
        advice = [_advice(update) for update in self._reading.advice.get(place, ())]
        return tag(
            "article",
            tag("header", who, time, link),
            tag("div", body, one.result, class_="body"),
            advice,
            class_=f"entry {'slim' if slim else 'full'} {record.role}{private}{call}",
            data_i=place,
            data_kind=record.kind,
        )


def _round_head(round_: int, seen: RoundSeen) -> list[Node]:
    """The number of the round, its times, failures, rating and utility."""
    point = seen.point
    parts: list[Node] = [f"Round {round_}"]
    if seen.lasted:
        parts.append(tag("small", f"from {duration(seen.begin)}, lasted {duration(seen.lasted)}"))
    if seen.failed:
        parts.append(tag("small", f"{seen.failed} failed", class_="failed"))
    if point is not None and point.rating is not None:
        low = is_unproductive(point.rating)
        marks = [tag("span", class_="on" if one < point.rating else None) for one in range(5)]
        parts.append(tag("span", marks, class_="rate low" if low else "rate", aria_hidden="true"))
        rated = f"rated {point.rating} of 5"
        parts.append(tag("small", rated, class_="failed" if low else None))
    if point is not None and point.utility is not None and point.value is not None:
        before = seen.before if seen.before != point.utility else None
        was = f"{number(before)} → " if before is not None else ""
        parts.append(tag("small", f"utility {was}{number(point.utility)}", class_="end"))
    return parts


def _advice(update: Update) -> Html:
    """The advice of scoring at a record."""
    told = describe_update(update)
    mark = {StopAdvice: "■ Stop advised: ", StopWithdrawn: "□ Advice withdrawn: "}
    text = "" if told is None else ": ".join(part for part in (told.does, told.text) if part)
    return tag("p", mark.get(type(update), "✗ "), one_line(text), class_="advice")
