"""Descriptions of records as HTML, and what belongs to them: differences, scores and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....engine.errors import CodecError
from ....engine.events import JSON
from ....engine.logger import get_logger
from ....engine.records import Record
from ....engine.text import quantity, text_of
from ....scoring.display.diff import ChangedLine
from ....scoring.display.records import Description, Passage
from ....scoring.display.texts import clean, one_line, shorten
from ..links import session_address
from .html import Html, Node, tag
from .text import plain, rich_text

__all__ = ("described", "diff_table", "facts", "unshown", "value_block")

_SHORT: Final = 120  # characters of a value that fits into a row
_INLINE: Final = 300  # characters of a text on the line of its record
_NAME: Final = 60  # characters of a name in a table
_FIRST: Final = 12  # lines of an output in a transcript
_LENGTH: Final = 2000  # characters of a line
_MARKS: Final = {"+": "ins", "-": "del"}


def described(told: Description, *more: Node) -> list[Node]:
    """A description as HTML.

    Args:
        told: the description.
        more: nodes to add at the end of its first line.
    """
    short = len(told.text) <= _INLINE and "\n" not in told.text
    inline = told.kind == "plain" and short and bool(told.does)
    folded = [plain(one.text) for one in told.details if one.depth != "open" and not one.title]
    if told.kind == "plain" and told.text and not inline:
        folded.insert(0, plain(told.text))
    if told.facts:
        folded.append(_parts(told.facts))
    head = [_does(told), _value(told), _text(told) if inline else None]
    call = tag("code", told.call) if told.call else None
    said = rich_text(told.text) if told.kind == "markdown" and told.text else None
    if told.does and call is not None:
        lines: list[Node] = [_line(head, *more), said, _folded(call, folded)]
    elif told.does or call is not None:
        lines = [_folded([call, *head, *more], folded), said]
    else:
        lines = [said, *folded]
    to = tag("p", f"to {one_line(', '.join(told.to))}", class_="to") if told.to else None
    details = [_passage(one) for one in told.details if one.depth == "open" or one.title]
    if told.origin is not None:
        session, version = told.origin
        link = tag("a", one_line(session), href=session_address(session))
        details.insert(0, _line("a fork of ", link, f" after version {version}"))
    problem = "failed" if told.failed else "problem" if told.tone == "warning" else None
    return [to, tag("div", lines, class_=problem) if problem else lines, *details]


def unshown(record: Record, error: Exception) -> Html:
    """A record that cannot be shown: its text, and a note. One record never ends a page or a stream."""
    if isinstance(error, CodecError):
        return tag("p", f"a damaged record: {error}", class_="problem")
    why = f"{type(error).__name__}: {one_line(str(error))}"
    get_logger("workbench").error(
        "a record cannot be shown", session=record.session, position=record.position, error=why
    )
    said = b"" if record.body is None else record.body
    note = f"This {one_line(record.kind)} cannot be shown. Its text:"
    return tag("div", tag("p", note, class_="problem"), plain(said.decode("utf-8", "replace")))


def _does(told: Description) -> Node:
    quiet = told.tone in ("quiet", "low", "note", "plain")
    return told.does if quiet or not told.does else tag("b", told.does)


def _value(told: Description) -> Node:
    if not told.value:
        return None
    low = "value low" if told.tone == "low" else "value"
    return [": ", tag("span", clean(told.value), class_=low)]


def _text(told: Description) -> Node:
    return [": ", tag("span", clean(told.text), dir="auto")] if told.text else None


def _line(*parts: Node) -> Html:
    return tag("p", *parts, class_="line")


def _folded(summary: Node, inside: Sequence[Html]) -> Html:
    return tag("details", tag("summary", summary), inside) if inside else _line(summary)


def _passage(passage: Passage) -> Html:
    if passage.title:
        block = _folded(passage.title, [plain(passage.text)])
        return tag("div", block, class_="private") if passage.private else block
    if passage.kind == "diff":
        return tag("div", diff_table(passage.lines[:_FIRST]), _rest(len(passage.lines)))
    lines = passage.text.splitlines()
    beginning = "\n".join(lines[:_FIRST])
    shown = rich_text(beginning) if passage.kind == "markdown" else plain(beginning)
    return tag("div", shown, _rest(len(lines)))


def _rest(lines: int) -> Html | None:
    left = lines - _FIRST
    return tag("p", f"… {quantity(left, 'more line')}", class_="left-out") if left > 0 else None


def diff_table(lines: Sequence[ChangedLine]) -> Html:
    """Lines that were added and taken out, with the lines around them."""
    return tag("div", [_changed(one) for one in lines], class_="diff", role="group")


def _changed(changed: ChangedLine) -> Html:
    if changed.mark == "…":
        return tag("div", clean(changed.text[:_LENGTH]) or "⋯", class_="gap", dir="auto")
    name = _MARKS.get(changed.mark)
    sign = tag("span", {"+": "+", "-": "−"}.get(changed.mark, " "), class_="sign")
    inner = tag(name or "span", clean(changed.text[:_LENGTH]), dir="auto")
    return tag("div", sign, inner, class_=f"line {name or ''}".strip())


def _parts(parts: Mapping[str, float | None]) -> Html:
    """The named parts of a score."""
    rows = [
        tag(
            "tr",
            tag("th", shorten(name, _NAME), scope="row", dir="auto"),
            tag("td", "missing" if value is None else f"{value:.3f}", class_="number"),
        )
        for name, value in parts.items()
    ]
    return tag("table", tag("tbody", rows), class_="parts")


def value_block(value: JSON) -> Html:
    """A value in full: a text as it is, anything else as JSON."""
    return plain(text_of(value))


def facts(value: JSON, depth: int = 3) -> Html:
    """A value for people to read: names with their values, lists as lists, and texts."""
    if isinstance(value, Mapping) and value and depth:
        rows = [
            (tag("dt", shorten(key.replace("_", " "), _NAME)), tag("dd", facts(one, depth - 1)))
            for key, one in value.items()
        ]
        return tag("dl", rows)
    if isinstance(value, list | tuple) and value and depth:
        return tag("ul", [tag("li", facts(one, depth - 1)) for one in value], class_="facts")
    if isinstance(value, str | int | float) and len(str(value)) <= _SHORT:
        return tag("span", shorten(str(value), _SHORT), dir="auto")
    return value_block(value)
