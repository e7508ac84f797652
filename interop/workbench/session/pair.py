"""Two sessions side by side, aligned by round: a fork and its origin, or any two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ....engine.log.contract import SessionSummary
from ....scoring.index.lines import SessionLine
from ..links import session_link
from ..markup.agents import AgentMarks
from ..markup.html import Html, Node, tag
from ..sessions.rows import title_of
from .reading import SessionReading
from .strip import session_strip

__all__ = ("Side", "pair_contents", "shared_rounds")

_MOST: Final = 1000  # rounds on a page


class Side(NamedTuple):
    """One of the two sessions.

    Attributes:
        summary: the summary of the session.
        reading: the reading of the session, by who may see it.
        line: its line in lists.
    """

    summary: SessionSummary
    reading: SessionReading
    line: SessionLine

    def rounds(self) -> list[tuple[int, int]]:
        """The first and the last record of each round; records before round 1 belong to it."""
        begins = [1, *self.reading.growth().rounds[1:]]
        ends = [begin - 1 for begin in begins[1:]] + [self.reading.count]
        return list(zip(begins, ends, strict=True))


def shared_rounds(left: Side, right: Side) -> int:
    """How many rounds a fork has in common with its origin; 0 for any other two sessions."""
    for one, other in ((left, right), (right, left)):
        row = one.line.row
        if row.forked_from == other.summary.session and row.forked_at is not None:
            return row.forked_at - 1
    return 0


def pair_contents(left: Side, right: Side, marks: AgentMarks) -> list[Node]:
    """The contents of the page, whose rounds its script fills."""
    sides = (left, right)
    shared = shared_rounds(left, right)
    rounds = [side.rounds() for side in sides]
    count = min(max(map(len, rounds)), _MOST)
    heads = [_head(side, marks) for side in sides]
    return [
        tag("h1", "Side by side"),
        tag("div", heads, class_="pair"),
        tag("p", _same(shared), class_="quiet") if shared else None,
        [
            tag(
                "section",
                tag("h2", f"Round {number + 1}"),
                tag(
                    "div",
                    [
                        _cell(side, mine, number, marks)
                        for side, mine in zip(sides, rounds, strict=True)
                    ],
                    class_="pair",
                ),
            )
            for number in range(shared, count)
        ],
    ]


def _same(shared: int) -> str:
    if shared == 1:
        return "Round 1 is the same in both."
    return f"Rounds 1 to {shared} are the same in both."


def _head(side: Side, marks: AgentMarks) -> Html:
    summary = side.summary
    agent = summary.group.get("agent", "")
    row = side.line.row
    return tag(
        "div",
        tag(
            "p",
            tag("b", session_link(summary.session, title_of(summary))),
            " ",
            marks.named(agent) if agent else None,
            tag("span", " fork", class_="quiet") if row.forked_from else None,
        ),
        session_strip(summary, side.reading, side.line, paired=True),
        data_open=summary.session if summary.state == "open" else None,
        data_position=side.reading.position,
    )


def _cell(side: Side, rounds: Sequence[tuple[int, int]], number: int, marks: AgentMarks) -> Html:
    if number >= len(rounds):
        return tag("div", tag("p", "It had ended.", class_="quiet"), class_="cell")
    first, last = rounds[number]
    return tag(
        "div",
        class_=f"cell {marks.colour(side.summary.group.get('agent', ''))}".rstrip(),
        data_session=side.summary.session,
        data_from=first,
        data_to=last,
    )
