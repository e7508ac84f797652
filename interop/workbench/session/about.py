"""What a session is: who takes part, how it was set up, and how it is scored."""

from __future__ import annotations

from ....engine.display import shorten
from ....engine.log.contract import SessionSummary
from ....scoring.trajectory.options import Options
from ..links import session_address
from ..markup.html import Html, Node, join, tag
from .reading import SessionReading
from .values import value_block

__all__ = ("about_session",)

_TEXT = 200


def about_session(summary: SessionSummary, reading: SessionReading, options: Options) -> Html:
    """The facts of a session."""
    opened = reading.opened
    facts: list[tuple[str, Node]] = [("Session", summary.session), ("State", summary.state)]
    if opened is not None:
        facts += [
            ("Task", shorten(f"{opened.task} {opened.instance}", _TEXT)),
            ("Clock", opened.clock),
            ("Seed", "none" if opened.seed is None else str(opened.seed)),
            ("Recorded by", f"Duolog {opened.package}" if opened.package else "unknown"),
        ]
        if opened.forked_from is not None:
            origin = opened.forked_from
            link = tag("a", shorten(origin.session, _TEXT), href=session_address(origin.session))
            facts.append(("Fork of", [link, f" after version {origin.version}"]))
    facts += [(shorten(key, 40), shorten(value, _TEXT)) for key, value in summary.group.items()]
    facts.append(("Rounds by", options.rounds))
    if reading.problem:
        facts.append(("Problem", tag("span", shorten(reading.problem, _TEXT), class_="problem")))
    parts: list[Node] = [
        tag("dl", [[tag("dt", name), tag("dd", value, dir="auto")] for name, value in facts])
    ]
    if reading.participants:
        parts.append(_participants(reading))
    if opened is not None and opened.config:
        settings = tag("details", tag("summary", "Settings"), value_block(opened.config))
        parts.append(settings)
    return join(parts)


def _participants(reading: SessionReading) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", shorten(one.name, 60), scope="row", class_=f"who {one.role}", dir="auto"),
            tag("td", one.role),
            tag(
                "td",
                shorten(" ".join(part for part in (one.policy, one.persona) if part), 80)
                or "a person",
            ),
            tag("td", shorten(one.model or "–", 80)),
        )
        for one in reading.participants
    ]
    titles = ("Name", "Role", "By means of", "Model")
    head = tag("thead", tag("tr", [tag("th", title, scope="col") for title in titles]))
    return tag("table", tag("caption", "Participants"), head, tag("tbody", rows), class_="parts")
