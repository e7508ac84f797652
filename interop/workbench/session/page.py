"""The page of a session: the frame around the parts that its script fills."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ....engine.log.contract import SessionSummary
from ....engine.rounds import PRODUCTIVE
from ....engine.text import quantity
from ....scoring.display.texts import shorten
from ....scoring.trajectory.options import Options
from ..access.identity import Identity
from ..links import session_address
from ..markup.agents import AgentMarks
from ..markup.html import Html, Node, join, tag
from ..markup.records import value_block
from ..reviewing import review_panel
from ..sessions.rows import title_of
from ..state import Workbench
from .forking import Forking
from .reading import SessionReading

__all__ = ("about_session", "command_list", "commands", "session_contents")

_NAME = 120
_JUMPS = (
    ("failure-before", "Previous failure"),
    ("failure-after", "Next failure"),
    ("lowest", "Lowest rating"),
)
_TABS = (("output", "Output"), ("measures", "Measures"), ("review", "Review"), ("about", "About"))


def session_contents(
    workbench: Workbench, identity: Identity, summary: SessionSummary, forking: Forking
) -> list[Node]:
    """The page's contents before its script fills it."""
    agent, user = summary.group.get("agent", ""), summary.group.get("user", "")
    others = {key: one for key, one in summary.group.items() if key not in ("agent", "user")}
    marks = AgentMarks(workbench.sessions.values("agent"))
    head = tag(
        "div",
        tag("a", "‹", href="/sessions", aria_label="All sessions", class_="back-to"),
        tag("h1", tag("bdi", title_of(summary)), title=summary.session),
        marks.named(agent) if agent else None,
        ["with ", tag("bdi", shorten(user, _NAME))] if user else None,
        [
            tag("span", shorten(one, 40), class_="label", title=f"{key}: {one[:200]}", dir="auto")
            for key, one in others.items()
        ],
        tag("span", quantity(summary.version, "record"), id="records", class_="quiet"),
        class_="session-head",
    )
    strip = tag("div", id="strip")
    timeline = tag("div", id="timeline", class_=marks.colour(agent) or "a1")
    forks = workbench.forks is not None and identity.role == "operator"
    private = None
    if identity.role == "operator":
        box = tag("input", type="checkbox", id="private")
        private = tag("label", box, " private notes and profiles", class_="switch")
    moment = tag(
        "div",
        tag(
            "button",
            "|◀",
            type="button",
            id="first",
            title="to the beginning (Home)",
            aria_label="To the beginning",
        ),
        tag(
            "button",
            "◀",
            type="button",
            id="back",
            title="back by a record (←)",
            aria_label="Back by a record",
        ),
        tag(
            "input",
            type="range",
            id="slider",
            min=1,
            max=max(summary.events, 1),
            value=max(summary.events, 1),
            aria_label="Moment: after how many records",
        ),
        tag(
            "button",
            "▶",
            type="button",
            id="on",
            title="on by a record (→)",
            aria_label="On by a record",
        ),
        tag(
            "button",
            "▶|",
            type="button",
            id="follow",
            title="to what is going on (f)",
            aria_label="Follow what is going on",
            aria_pressed="true",
        ),
        tag("output", "", id="moment", for_="slider"),
        [
            tag("button", title, type="button", id=name, hidden=True, class_="jump")
            for name, title in _JUMPS
        ],
        tag(
            "input",
            type="search",
            id="find",
            placeholder="Find in this session",
            aria_label="Find in the session",
            autocomplete="off",
            spellcheck="false",
        ),
        tag("span", "", id="found", role="status", class_="quiet"),
        tag(
            "button",
            "Fork here",
            type="button",
            id="fork",
            aria_haspopup="dialog",
            disabled=bool(forking.refused),
            title=forking.refused
            or "Continue from here in a new session, with another agent, user or seed",
        )
        if forks
        else None,
        private,
        class_="moment",
        role="group",
        aria_label="Moment that is shown",
    )
    adds = identity.role == "operator" and not workbench.access.read_only
    tabs = [
        tag(
            "button",
            title,
            type="button",
            role="tab",
            id=f"tab-{name}",
            aria_controls=f"panel-{name}",
            aria_selected=str(name == "output").lower(),
            tabindex=0 if name == "output" else -1,
        )
        for name, title in _TABS
    ]
    panels = [
        tag(
            "div",
            review_panel(adds=adds) if name == "review" else None,
            id=f"panel-{name}",
            role="tabpanel",
            aria_labelledby=f"tab-{name}",
            tabindex=0,
            hidden=name != "output",
            class_=f"panel {name}",
            data_productive=PRODUCTIVE if name == "measures" else None,
        )
        for name, _ in _TABS
    ]
    transcript = tag(
        "section",
        tag("div", id="entries"),
        tag("p", "Reading …", id="waiting", class_="quiet"),
        id="transcript",
        tabindex=0,
        aria_label="Transcript",
    )
    side = tag(
        "section",
        tag("div", tabs, role="tablist", aria_label="Measures"),
        panels,
        class_="side",
        aria_label="Measures and output",
    )
    panes = tag("div", transcript, side, class_="panes")
    return [head, strip, timeline, moment, panes, _fork_dialog(forking) if forks else None]


def _fork_dialog(forking: Forking) -> Html:
    """The dialog before a fork begins."""

    def choice(name: str, title: str, kinds: Sequence[str]) -> Html:
        options = [tag("option", "the same", value=""), *[tag("option", kind) for kind in kinds]]
        return tag(
            "div",
            tag("label", title, for_=f"fork-{name}"),
            tag("select", options, id=f"fork-{name}", name=name),
            class_="field",
        )

    seed = tag(
        "div",
        tag("label", "Seed", for_="fork-seed"),
        tag("input", id="fork-seed", name="seed", type="number", min=0, placeholder="the same"),
        class_="field",
    )
    fields = [choice("agent", "Agent", forking.agents), choice("user", "User", forking.users), seed]
    form = tag(
        "form",
        tag("h2", "Fork here", id="fork-title"),
        tag("p", "", id="fork-where", class_="quiet"),
        fields,
        tag("p", "", id="fork-problem", class_="problem", role="alert"),
        tag("button", "Begin the fork", type="submit", class_="primary"),
        " ",
        tag("button", "Cancel", type="button", id="fork-cancel"),
        id="fork-form",
    )
    return tag("dialog", form, id="fork-dialog", aria_labelledby="fork-title")


def commands(workbench: Workbench, session: str, version: int) -> Sequence[tuple[str, str]]:
    """Commands that show or continue the same on the command line: purpose and command."""

    def line(*words: str) -> str:
        return shlex.join(["duolog", *words])

    log = workbench.name
    found = [
        ("this session as a text", line("show", log, session)),
        (
            "as it was live, up to here",
            line("replay", log, "--session", session, "--until", f"v{max(version, 1)}"),
        ),
        ("on the terminal", line("watch", log, "--session", session)),
    ]
    if version >= 2:
        forking = line("fork", log, session, "--at-version", str(version))
        found.append(("a fork from here on", forking))
    return found


def command_list(found: Sequence[tuple[str, str]]) -> Html:
    """Commands, each with a button that copies it."""
    return tag(
        "ul",
        [
            tag(
                "li",
                tag("span", what),
                tag("code", command),
                tag("button", "Copy", type="button", data_copy=command),
            )
            for what, command in found
        ],
        class_="commands",
    )


# --- what a session is ----------------------------------------------------------------------------


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
    facts.append(("Utility by", shorten(reading.scorer or "nobody", _TEXT)))
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
