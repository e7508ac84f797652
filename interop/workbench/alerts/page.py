"""The page of what alert rules have fired for: the rules, and each time that one fired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec

from ....engine.events import AlertSent
from ....engine.text import quantity
from ....scoring.display.texts import duration, is_virtual, moment, shorten
from ..links import session_address
from ..markup.html import Html, Node, join, tag
from .history import AlertHistory, Fired
from .rules import AlertRule, AlertRules

__all__ = ("alert_contents", "fired_row", "history_note", "rule_list")

_NAME: Final = 60
_RULE: Final = 200
_TITLES: Final = ("Session", "When", "Rule", "Webhook")


def alert_contents(rules: AlertRules, before: int | None, *, makes: bool) -> list[Node]:
    """The page's contents before its script fills it.

    Args:
        rules: the rules.
        before: the position of the log before which it shows what fired; None for the latest.
        makes: whether the user may add and remove rules.
    """
    form = _form() if makes else None
    if not rules.all:
        said = tag("p", "There are no rules yet.", class_="quiet")
        return [tag("h1", "Alerts"), said, form]
    head = tag("tr", [tag("th", title, scope="col") for title in _TITLES])
    table = tag(
        "table",
        tag("caption", "What fired, the latest first", class_="unseen"),
        tag("thead", head),
        tag("tbody", id="rows"),
        class_="sessions alerts",
    )
    return [
        tag("h1", "Alerts"),
        tag("div", id="rules"),
        form,
        tag("h2", "What fired", ", from here on back" if before is not None else None),
        tag("p", "Reading …", id="count", role="status", class_="note"),
        tag("div", table, class_="wide", tabindex=0, role="region", aria_label="What fired"),
        tag(
            "nav",
            tag("a", "← The latest", href="/alerts", rel="prev") if before is not None else None,
            tag("a", "Earlier →", href="/alerts", rel="next", id="after", hidden=True),
            class_="pages",
            aria_label="Pages of the list",
        ),
    ]


def _form() -> Html:
    """The form that adds a rule."""
    field = tag(
        "input",
        id="rule",
        name="rule",
        required=True,
        maxlength=400,
        placeholder="tau=2 agent=two-stage",
        autocomplete="off",
        spellcheck="false",
    )
    note = (
        "A rule is a filter, as in the list of sessions. Rules that you add here hold until the "
        "server stops; to keep one, start the workbench with "
    )
    return tag(
        "form",
        tag("label", "New rule ", field),
        " ",
        tag("button", "Add", type="submit"),
        tag("p", "", id="rule-problem", class_="problem", role="alert"),
        tag("p", note, tag("code", "--alert 'RULE'"), ".", class_="quiet"),
        id="rule-form",
    )


def rule_list(history: AlertHistory, added: Sequence[AlertRule] = ()) -> Html:
    """The rules, each with how many sessions meet it now; those that were added can be removed."""
    rows = [
        tag(
            "li",
            tag("code", shorten(rule.text, _RULE), dir="auto"),
            " ",
            tag(
                "a",
                f"{quantity(met, 'session')} now",
                href=f"/sessions?{urlencode({'q': rule.text})}",
            ),
            " ",
            tag("button", "Remove", type="button", data_remove=rule.text)
            if rule in added
            else None,
        )
        for rule, met in zip(history.rules, history.met, strict=True)
    ]
    return tag("ul", rows, class_="rules")


def history_note(history: AlertHistory, shown: int, total: int) -> str:
    """How many firings there are, and how far the log has been read."""
    note = quantity(history.count, "time") if history.count else "Nothing has fired yet"
    if shown < history.count:
        note += f"; {shown:,} shown"
    if not history.complete:
        note += f"; {history.looked:,} of {quantity(total, 'session')} read …"
    return note


def fired_row(fired: Fired, title: str = "") -> Html:
    """The row of a firing.

    Args:
        fired: the firing.
        title: the title of its session; empty for its id.
    """
    firing = fired.firing
    return tag(
        "tr",
        tag(
            "th",
            tag(
                "a",
                tag("bdi", title or shorten(firing.session, _NAME)),
                href=session_address(firing.session, firing.record),
                title=firing.session[:_RULE],
            ),
            tag("small", f"record {firing.record}"),
            scope="row",
        ),
        tag("td", _when(firing.time)),
        tag("td", tag("code", shorten(firing.rule, _NAME), title=firing.rule[:_RULE], dir="auto")),
        tag("td", _webhook(fired.sent)),
        data_key=msgspec.json.encode((firing.position, firing.rule)).decode(),
    )


def _when(time: float) -> Html:
    return tag(
        "time", f"{duration(time)} into the simulation" if is_virtual(time) else moment(time)
    )


def _webhook(sent: AlertSent | None) -> Node:
    if sent is None:
        return tag("span", "not called", class_="quiet")
    times = "" if sent.attempt == 1 else f" at attempt {sent.attempt}"
    error = tag("small", shorten(sent.error, _RULE), dir="auto") if sent.error else None
    match sent.outcome:
        case "delivered":
            said = tag("span", f"delivered{times}", class_="state finished")
            return join(said, tag("small", moment(sent.at)))
        case "failed":
            said = tag("span", f"failed after {quantity(sent.attempt, 'attempt')}")
            return tag("span", said, error, class_="state failed")
        case "retrying":
            return join(f"failed {quantity(sent.attempt, 'time')}, is tried again", error)
        case _:
            return f"is being sent{times}"
