"""The rows of lists of sessions as HTML, with small curves: a value per round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ....engine.errors import InvalidInput
from ....engine.log.contract import SessionSummary
from ....engine.log.summary import FORGOTTEN
from ....engine.text import quantity, suggestion
from ....scoring.display.texts import (
    day_or_hour,
    dollars,
    duration,
    has_times,
    is_virtual,
    lasted,
    moment,
    number,
    shorten,
)
from ....scoring.index.lines import SessionLine
from ....scoring.index.lists import Key
from ..links import session_address
from ..markup.agents import AgentMarks
from ..markup.html import Html, Node, tag
from .address import ListAddress

__all__ = (
    "COLUMNS",
    "OUTCOMES",
    "Column",
    "class_of",
    "columns_of",
    "effort_text",
    "label_of",
    "outcome",
    "session_row",
    "session_title",
    "title_of",
    "utility_cell",
)


class Column(NamedTuple):
    """A column of a list.

    Attributes:
        name: by which it is chosen, and the class of its cells.
        title: its title.
        key: what it is sorted by; empty for nothing.
        number: it holds numbers.
        usual: it is shown if nothing else is chosen.
    """

    name: str
    title: str
    key: str = ""
    number: bool = False
    usual: bool = True


COLUMNS: Final = (
    Column("session", "Session", "session"),
    Column("agent", "Agent", "agent"),
    Column("user", "User", "user"),
    Column("model", "Model", "model"),
    Column("outcome", "Outcome", "state"),
    Column("utility", "Utility", "utility"),
    Column("effort", "Effort", number=True),
    Column("cost", "Cost", "cost", number=True),
    Column("latency", "Reply", "latency", number=True),
    Column("tokens", "Agent tokens", number=True, usual=False),
    Column("taus", "τ used up", usual=False),
    Column("rounds", "Rounds", "rounds", number=True),
    Column("records", "Records", "events", number=True, usual=False),
    Column("lasted", "Lasted", "lasted", number=True, usual=False),
    Column("found", "Found in", usual=False),
    Column("labels", "Labels"),
    Column("began", "Began", "opened"),
)
"""The columns that a list can have, in their order; the first one is always shown."""


def columns_of(address: ListAddress) -> list[Column]:
    """The columns that a list shows.

    Raises:
        InvalidInput: the address names one that there is not.
    """
    names = [one.name for one in COLUMNS]
    for name in address.columns:
        if name not in names:
            raise InvalidInput(f"unknown column {name!r}{suggestion(name, names)}")
    chosen = address.columns
    first, *others = COLUMNS
    shown = [one for one in others if (one.name in chosen if chosen else one.usual)]
    if address.text and address.query.words and not chosen:
        shown = [
            one for one in others if one.name == "found" or (one in shown and one.name not in _ROOM)
        ]
    return [first, *shown]


_NAME: Final = 60
_ROOM: Final = frozenset(
    {"taus", "labels", "lasted"}
)  # columns that make room for the matches of a search
_LABEL: Final = 40
_LABELS: Final = 2  # that a row shows; the others are counted
_OWN: Final = frozenset({"agent", "user"})  # labels that have a column
_WAITING: Final = "…"
_WIDTH: Final = 80.0
_HEIGHT: Final = 18.0
_MOST: Final = 80  # values that are drawn; of more, every so many
_FORK: Final = tag(
    "svg",
    tag("path", d="M2.5 9.5v-9M2.5 6.5h2a3 3 0 0 0 3-3v-3"),
    viewBox="0 0 10 10",
    role="img",
    aria_label="fork",
)
OUTCOMES: Final = {
    "open": "Open",
    "finished": "Finished",
    "abandoned": "Given up",
    "tolerance": "Stopped",
    "limit": "Limit reached",
    "stalled": "Stalled",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "ended": "Ended",
    FORGOTTEN: "Erased",
}
"""The states of sessions in words."""
_WITH_ROUND: Final = frozenset({"open", "abandoned", "tolerance"})


def session_row(
    summary: SessionSummary,
    address: ListAddress,
    key: Key | None,
    line: SessionLine | None,
    taus: Sequence[int],
    marks: AgentMarks,
    snippet: str = "",
) -> Html:
    """A session's row.

    Args:
        summary: the summary of the session.
        address: the address of the list.
        key: where it stands in the list; None if that is not known.
        line: what was measured of its rounds; None while that is not known.
        taus: the tolerances to show.
        marks: the marks of the agents.
        snippet: the text around the first match of a search.
    """
    agent, user, model = (label_of(summary, line, label) for label in ("agent", "user", "model"))
    tokens = None if line is None else line.row.agent_tokens
    cells: Mapping[str, Node] = {
        "session": [session_title(summary), _fork(line)],
        "agent": tag("span", marks.named(agent), title=agent[:200]) if agent else "–",
        "user": _name(user),
        "model": _name(model),
        "outcome": outcome(summary, line),
        "utility": _utility(line),
        "effort": _effort(line, address.effort),
        "cost": _cost(line),
        "latency": _latency(line),
        "tokens": _WAITING if line is None else "–" if tokens is None else f"{tokens:,}",
        "taus": _stops(line, taus),
        "rounds": _WAITING if line is None else line.rounds,
        "records": f"{summary.events:,}",
        "lasted": lasted(summary.opened, summary.last),
        "found": tag("span", tag("bdi", snippet), title=snippet),
        "labels": [_tags(line, address), _labels(summary.group, address)],
        "began": _began(summary),
    }
    first, *others = columns_of(address)
    name = shorten(summary.session, _NAME)
    box = tag("input", type="checkbox", aria_label=f"Select {name}", autocomplete="off")
    return tag(
        "tr",
        tag("td", box, class_="tick"),
        tag("th", cells[first.name], scope="row", class_=first.name),
        [tag("td", cells[one.name], class_=class_of(one)) for one in others],
        data_session=summary.session,
        data_key=None if key is None else msgspec.json.encode(key).decode(),
        data_position=summary.position,
        data_measured=line is not None,
    )


def label_of(summary: SessionSummary, line: SessionLine | None, label: str) -> str:
    """A label of a session; of one without it, what its participants say. Empty if neither is known."""
    return summary.group.get(label) or ("" if line is None else line.row.labels.get(label, ""))


def class_of(column: Column) -> str:
    """The classes of the cells of a column."""
    return f"{column.name} number" if column.number else column.name


def _name(text: str) -> Node:
    return tag("bdi", shorten(text, _NAME), title=text[:200]) if text else "–"


def title_of(summary: SessionSummary) -> str:
    """A short title of a session: its task and instance, or its id."""
    named = summary.task and summary.instance and len(summary.instance) <= _LABEL
    text = f"{summary.task} {summary.instance}" if named else summary.session
    return shorten(text, _NAME)


def session_title(summary: SessionSummary) -> Html:
    """A link to a session by its task and instance, or by its id; the id is shown on hover."""
    return tag(
        "a",
        tag("bdi", title_of(summary)),
        href=session_address(summary.session),
        title=summary.session[:200],
    )


def _fork(line: SessionLine | None) -> Node:
    origin = None if line is None else line.row.forked_from
    if line is None or origin is None:
        return None
    at = line.row.forked_at
    text = "fork" if at is None else f"from round {at}"
    return tag("span", _FORK, f" {text}", class_="fork", title=f"fork of {origin[:200]}")


def outcome(summary: SessionSummary, line: SessionLine | None) -> Html:
    """How a session ended, or that it is open or waits for a person."""
    state, waiting = (
        summary.state,
        line is not None and summary.state == "open" and line.row.waiting,
    )
    text = "Waiting for approval" if waiting else OUTCOMES.get(state, state)
    if line is not None and state in _WITH_ROUND and not waiting:
        text += f", round {line.rounds}" if line.rounds else ", empty"
    shown = "waiting" if waiting else state
    mark = None
    if line is not None and line.lost:
        title = f"{line.lost:,} events could not be recorded: rounds and effort are incomplete"
        mark = tag("abbr", " incomplete", title=title, class_="lost")
    return tag("span", text, mark, class_=f"state {shown}")


def _labels(group: Mapping[str, str], address: ListAddress) -> list[Node]:
    others = [(key, value) for key, value in group.items() if key not in _OWN]
    left = others[_LABELS:]
    more = "\n".join(f"{key}: {value[:200]}" for key, value in left)
    return [
        *(_label(key, value, address) for key, value in others[:_LABELS]),
        tag("span", f"+{len(left)}", class_="label more", title=more) if left else None,
    ]


def _tags(line: SessionLine | None, address: ListAddress) -> list[Node]:
    """The tags by reviewers, the first ones as links to the sessions with the same tag."""
    tags = () if line is None else line.row.tags
    left = tags[_LABELS:]
    return [
        *(_label("tag", one, address) for one in tags[:_LABELS]),
        tag("span", f"+{len(left)}", class_="label more", title="\n".join(left)) if left else None,
    ]


def _label(key: str, value: str, address: ListAddress) -> Html:
    conditions = tuple(one for one in address.conditions if one[0] != key)
    to = msgspec.structs.replace(address.first_page(), conditions=(*conditions, (key, value)))
    text = shorten(value, _LABEL)
    return tag("a", text, href=str(to), class_="label", title=f"{key}: {value[:200]}", dir="auto")


def _utility(line: SessionLine | None) -> Node:
    if line is None:
        return tag("span", _WAITING, class_="spark")
    if line.row.unreadable:
        return tag("abbr", "–", title=line.row.unreadable[:200])
    return utility_cell(line)


def utility_cell(line: SessionLine) -> list[Node]:
    """The utility after the last round, and its curve."""
    value = number(line.utility)
    if line.utility is None:
        shown = tag("abbr", value, class_="value", title=(line.missing or "")[:200])
    else:
        shown = tag("span", value, class_="value", title=f"by {line.row.scorer or 'nobody'}")
    return [shown, _spark_line(line.utilities, f"utility by round, at last {value}")]


def _effort(line: SessionLine | None, measure: str) -> Node:
    if line is None:
        return _WAITING
    efforts = line.efforts(measure)
    known = [value for value in efforts if value is not None]
    if not known:
        return "–"
    text = effort_text(sum(known), measure)
    return text


def _cost(line: SessionLine | None) -> Node:
    if line is None:
        return _WAITING
    row = line.row
    calls = f"{quantity(row.unpriced, 'call')} without a price"
    if row.cost is None:
        return tag("abbr", "–", title=calls) if row.unpriced else "–"
    text = dollars(row.cost)
    return tag("abbr", f"{text}+", title=f"{text}, and {calls}") if row.unpriced else text


def _latency(line: SessionLine | None) -> Node:
    if line is None:
        return _WAITING
    if line.latency is None:
        return "–"
    return tag("span", duration(line.latency), title="median time until the agent answers")


def _stops(line: SessionLine | None, taus: Sequence[int]) -> Node:
    if line is None:
        return _WAITING
    return [
        tag("span", f"τ{tau}", class_="tau", title=f"tolerance {tau} used up after round {number_}")
        for tau, number_ in sorted(line.stops(taus).items())
    ]


def effort_text(value: float, measure: str) -> str:
    """An effort as it is shown: a duration, or a number."""
    if measure == "seconds":
        return duration(value)
    return f"{value:,.2f}" if measure == "token_ratio" else f"{value:,.0f}"


def _began(summary: SessionSummary) -> Html:
    if not summary.version or not has_times(summary.opened, summary.last):
        return tag("span", "–")
    if is_virtual(summary.opened):
        return tag("span", "simulated", title=f"after {duration(summary.opened)} of simulated time")
    return tag("time", day_or_hour(summary.opened), title=moment(summary.opened))


# --- curves --------------------------------------------------------------------------------------


def _spark_line(values: Sequence[float | None], label: str) -> Html:
    """Utility by round, from 0 to 1; nothing before the first score."""
    points = _thinned(values)
    step = _WIDTH / max(len(points) - 1, 1)
    parts: list[str] = []
    for index, value in enumerate(points):
        if value is not None:
            y = (_HEIGHT - 2) * (1 - min(max(value, 0.0), 1.0)) + 1
            parts.append(f"{'L' if parts else 'M'}{index * step:.1f} {y:.1f}")
    if len(parts) == 1:
        parts.append("h1")
    return _svg(label, tag("path", d="".join(parts), class_="line"))


def _svg(label: str, path: Html) -> Html:
    return tag(
        "svg",
        path,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="spark",
        role="img",
        aria_label=label,
        preserveAspectRatio="none",
    )


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    if len(values) <= _MOST:
        return values
    return [values[(index + 1) * len(values) // _MOST - 1] for index in range(_MOST)]
