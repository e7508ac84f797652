"""The results of a session, in a line of cells above its transcript: the answer before the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from ....engine.log.contract import SessionSummary
from ....engine.text import quantity
from ....scoring.columns.rows import SessionRow
from ....scoring.display.texts import dollars, duration, number, shorten
from ....scoring.index.lines import SessionLine
from ....scoring.trajectory.points import Trajectory, counted
from ..links import session_link
from ..markup.html import Html, Node, tag
from ..sessions.rows import outcome
from .reading import SessionReading

__all__ = ("ForkLine", "session_strip")

_QUOTE: Final = 120
_NAME: Final = 60


class ForkLine(NamedTuple):
    """A fork of the session: its summary, and its line in lists."""

    summary: SessionSummary
    line: SessionLine


def session_strip(
    summary: SessionSummary,
    reading: SessionReading,
    line: SessionLine,
    forks: Sequence[ForkLine] = (),
    *,
    paired: bool = False,
) -> Html:
    """The cells: outcome, utility, the cost for the human and for the agent, leadership, stop advice, forks.

    Args:
        summary: the summary of the session.
        reading: the reading of the session, by who may see it.
        line: its line in lists.
        forks: the forks of the session.
        paired: the other session is shown next to it, so that its origin is not named.
    """
    now = reading.now()
    cells = [
        _cell("Outcome", outcome(summary, line), _why(reading), _last_words(reading)),
        _utility(now, line),
        _effort(now),
        _cost(now, line.row),
        _lead(now),
        _advice(now, reading),
        None if paired else _origin(now, reading),
        _forks(line, forks),
    ]
    return tag("dl", [one for one in cells if one is not None], class_="strip")


def _cell(title: str, big: Node, *small: Node) -> Html:
    texts = [tag("small", one) for one in small if one]
    return tag("div", tag("dt", title), tag("dd", tag("span", big, class_="big"), texts))


def _why(reading: SessionReading) -> Node:
    """The words with which it ended, or that a human said last."""
    closed, said = reading.words.closed, reading.words.said
    if closed is None:
        return f"last: “{shorten(said, _QUOTE)}”" if said else "nobody has said anything yet"
    if closed.reason == "tolerance":
        return f"by the engine, since users give up here: {shorten(closed.detail, _QUOTE)}"
    by = f"by {shorten(closed.by, _NAME)}"
    reason = closed.detail or (reading.words.failed if closed.reason == "failed" else "")
    if reason:
        return f"{by}: “{shorten(reason, _QUOTE)}”"
    return f"{by}, after “{shorten(said, _QUOTE)}”" if said else by


def _last_words(reading: SessionReading) -> Node:
    """The words of the human before they left, if the session says something else about its end."""
    closed, said = reading.words.closed, reading.words.said
    left = closed is not None and closed.detail and closed.reason in ("abandoned", "tolerance")
    return f"last: “{shorten(said, _QUOTE)}”" if left and said else None


def _utility(now: Trajectory, line: SessionLine) -> Html:
    if line.missing is not None:
        return _cell("Utility", "–", line.missing)
    first = next((point for point in counted(now) if point.value is not None), None)
    final = line.utility
    scorer = f"by {shorten(now.scorer, _NAME)}" if now.scorer else None
    if first is None or first.utility == final:
        return _cell("Utility", number(final), scorer)
    was = tag("span", f"{number(first.utility)} → ", class_="was")
    return _cell("Utility", [was, number(final)], scorer)


def _effort(now: Trajectory) -> Html:
    spent = now.points[-1].effort if now.points else {}
    seconds, read, written = (
        spent.get(key) for key in ("seconds", "tokens_read", "tokens_written")
    )
    parts = [
        f"{amount:,.0f} tokens {what}"
        for amount, what in ((written, "written"), (read, "read"))
        if amount is not None
    ]
    big = "–" if seconds is None else duration(seconds)
    rounds = quantity(len(now.points), "round")
    lost = f"{quantity(now.lost, 'event')} lost: incomplete" if now.lost else None
    return _cell("Human’s effort", big, ", ".join([rounds, *parts]), lost, _late(now))


def _late(now: Trajectory) -> Node:
    """The rounds with events that were written late, so that live updates had come without them."""
    if not now.late:
        return None
    numbers = ", ".join(map(str, now.late))
    return f"written late in part: round{'s' if len(now.late) > 1 else ''} {numbers}"


def _cost(now: Trajectory, row: SessionRow) -> Html:
    tokens = None if now.agent_tokens is None else f"{now.agent_tokens:,} tokens"
    price = None if row.cost is None else dollars(row.cost)
    notes = [
        tokens if price else None,
        "estimated" if tokens and now.estimated else None,
        f"{quantity(row.unpriced, 'call')} without a price" if price and row.unpriced else None,
        None if row.latency is None else f"median reply {duration(row.latency)}",
    ]
    return _cell("Agent’s cost", price or tokens or "–", ", ".join(one for one in notes if one))


def _lead(now: Trajectory) -> Html:
    led = now.points[-1].effort.get("rounds") if now.points else None
    if led is None:
        return _cell("Led by the human", "–")
    return _cell("Led by the human", f"{led:,.0f} of {quantity(len(now.points), 'round')}")


def _advice(now: Trajectory, reading: SessionReading) -> Html:
    stops = sorted(reading.stops.items())
    if stops:
        tau, round_ = stops[0]
        others = [f"τ = {one} after round {after}" for one, after in stops[1:]]
        return _cell("Stop advice", f"After round {round_}", "; ".join([f"τ = {tau}", *others]))
    if any(point.rating is not None for point in now.points):
        return _cell("Stop advice", "none")
    return _cell("Stop advice", "–", "no round was rated" if now.points else None)


def _compared(left: str, right: str) -> Html:
    return tag("a", "Side by side", href=f"/pair?{urlencode({'left': left, 'right': right})}")


def _origin(now: Trajectory, reading: SessionReading) -> Html | None:
    if (origin := now.forked_from) is None:
        return None
    link = session_link(origin.session, shorten(origin.session, _NAME))
    return _cell("Fork of", _compared(origin.session, reading.session), link)


def _forks(line: SessionLine, forks: Sequence[ForkLine]) -> Html | None:
    """The fork with the highest utility, and how many others there are."""
    if not forks:
        return None
    best = max(forks, key=lambda one: -1.0 if one.line.utility is None else one.line.utility)
    utility, own = best.line.utility, line.utility
    better = utility is not None and own is not None and utility > own
    agent = best.summary.group.get("agent")
    shown = " with ".join(one for one in (number(utility), agent and shorten(agent, _NAME)) if one)
    at = best.line.row.forked_at
    where = "" if at is None else f"From round {at}. "
    others = f", of {quantity(len(forks), 'fork')}" if len(forks) > 1 else ""
    link_to_both = _compared(line.row.session, best.summary.session)
    title = "A fork did better" if better else "Best fork"
    return _cell(title, session_link(best.summary.session, shown), [where, link_to_both, others])
