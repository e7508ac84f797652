"""Versions of the output as HTML: as a document, and as what changed since another version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import anyio.to_thread

from ....engine.diff import ChangedLine, changes, counts
from ....engine.display import clean
from ....engine.events import SnapshotTaken
from ....engine.text import lines_of, quantity, text_of
from ..markup.html import Html, Node, tag
from ..markup.text import plain, rich_text

__all__ = ("Shape", "change_summary", "difference", "document")

Shape: TypeAlias = Literal["document", "changes"]

_LINES: Final = 4000  # lines of two versions that are compared at most
_FIRST: Final = 12  # lines of a change that the transcript shows
_LENGTH: Final = 2000  # characters of a line
_MARKS: Final = {"+": "ins", "-": "del"}


def document(event: SnapshotTaken) -> Html:
    """A version as a document: Markdown as such, anything else as it is."""
    if isinstance(event.content, str) and event.media_type == "text/markdown":
        return rich_text(event.content)
    return plain(text_of(event.content))


async def difference(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    """What changed between two versions, all lines of them."""
    return await anyio.to_thread.run_sync(_difference, before, after)


def _difference(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    changed = _changed(before, after, 3)
    if changed is None:
        return tag("p", "these versions are too long to be compared here", class_="problem")
    return _table(changed) if changed else tag("p", "nothing changed", class_="line")


async def change_summary(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    """What a version changed, in brief: for the transcript."""
    return await anyio.to_thread.run_sync(_summary, before, after)


def _summary(before: SnapshotTaken | None, after: SnapshotTaken) -> Html:
    if before is None:
        lines = lines_of(after.content)
        first = [ChangedLine("+", line) for line in lines[:_FIRST]]
        about = f"the first version, {quantity(len(lines), 'line')}"
        return tag("div", tag("p", about, class_="line"), _table(first), _rest(len(lines)))
    changed = _changed(before, after, 1)
    if changed is None:
        return tag("p", "too long to be compared here", class_="line")
    if not changed:
        return tag("p", "unchanged", class_="line")
    added, gone = counts(changed)
    about = f"+{added} −{gone} {'line' if added + gone == 1 else 'lines'}"
    return tag("div", tag("p", about, class_="line"), _table(changed[:_FIRST]), _rest(len(changed)))


def _rest(lines: int) -> Html | None:
    left = lines - _FIRST
    return tag("p", f"… {quantity(left, 'more line')}", class_="left-out") if left > 0 else None


def _changed(
    before: SnapshotTaken | None, after: SnapshotTaken, context: int
) -> Sequence[ChangedLine] | None:
    """The lines that changed; None where they are too many to be compared."""
    old = [] if before is None else lines_of(before.content)
    new = lines_of(after.content)
    if len(old) + len(new) > _LINES:
        return None
    return changes(old, new, context=context)


def _table(changed: Sequence[ChangedLine]) -> Html:
    return tag("div", [_line(one) for one in changed], class_="diff", role="group")


def _line(changed: ChangedLine) -> Html:
    text: Node = clean(changed.text[:_LENGTH])
    name = _MARKS.get(changed.mark)
    if changed.mark == "…":
        return tag("div", "⋯", class_="gap")
    sign = tag("span", {"+": "+", "-": "−"}.get(changed.mark, " "), class_="sign")
    inner = tag(name, text, dir="auto") if name else tag("span", text, dir="auto")
    return tag("div", sign, inner, class_=f"line {name or ''}".strip())
