"""The page with the list of sessions: its filters, its table, and the ways to its other pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ....engine.text import quantity
from ....scoring.display.texts import shorten
from ....scoring.index.order import SORT_KEYS
from ....scoring.index.query import STATES
from ....scoring.index.sessions import SessionIndex
from ....scoring.trajectory.effort import MEASURES
from ..markup.html import Html, Node, tag
from .address import DEFAULT_SORT, ListAddress
from .rows import COLUMNS

__all__ = ("list_contents", "paged", "searching_note")

_CHOICES: Final = 200  # values that a choice offers
_TAUS: Final = ("any", "1", "2", "3")
_HINT: Final = "a text, or agent=two-stage utility=..0.3 rounds=5.. tau=2"


def list_contents(
    index: SessionIndex,
    address: ListAddress,
    rows: Sequence[Html],
    *,
    note: str,
    before: str | None,
    after: str | None,
    problem: str = "",
) -> list[Node]:
    """The contents of the page.

    Args:
        index: the sessions.
        address: of the list.
        rows: of the sessions on this page.
        note: how many sessions there are, and the like.
        before: the address of the page before; None where there is none.
        after: of the page that follows.
        problem: why the address makes no sense; empty where it does.
    """
    heads = [_title(index, address, *column) for column in COLUMNS]
    every = tag("input", type="checkbox", id="every", aria_label="Select all that are shown")
    contents: list[Node] = [
        tag(
            "div",
            tag("h1", "Sessions"),
            tag("span", note, id="count", role="status"),
            tag("a", "Show all", href="/sessions") if not address.plain else None,
            tag("a", "Compare these", href=f"/compare{str(address.first_page())[9:]}"),
            class_="list-head",
        ),
        _filters(index, address),
        tag("p", problem, class_="problem", role="alert") if problem else None,
    ]
    if index.loaded and not len(index):
        return [*contents, _how_to_fill()]
    return [
        *contents,
        tag(
            "div",
            tag(
                "table",
                tag("caption", "Sessions, with what was measured", class_="unseen"),
                tag("thead", tag("tr", tag("th", every, scope="col", class_="tick"), heads)),
                tag("tbody", rows, id="rows"),
                class_="dense",
                data_descending=address.sort.startswith("-"),
            ),
            class_="wide",
            tabindex=0,
            role="region",
            aria_label="Sessions",
        ),
        tag(
            "div",
            tag("b", "", id="selected", role="status"),
            tag("a", "Compare", id="compare-selected", href="/compare"),
            tag("button", "Clear", type="button", id="clear"),
            id="selection",
            hidden=True,
        ),
        tag(
            "nav",
            tag("a", "← Earlier page", href=before, rel="prev", id="before") if before else None,
            tag("a", "Next page →", href=after, rel="next", id="after") if after else None,
            class_="pages",
            aria_label="Pages of the list",
        ),
    ]


def _how_to_fill() -> Html:
    """The ways to fill an empty log."""
    return tag(
        "dl",
        [
            [tag("dt", what), tag("dd", tag("code", command))]
            for what, command in (
                ("Simulate an agent", "duolog run travel --agents two-stage --log LOG"),
                ("Import what was recorded elsewhere", "duolog import FILE --log LOG"),
                ("Talk to an agent yourself", "duolog chat travel --log LOG"),
            )
        ],
        class_="ways",
    )


def searching_note(found: int, total: int, looked: int, *, loaded: bool, complete: bool) -> str:
    """How many sessions a list holds, and how far it has come."""
    if not loaded and not looked:
        return f"the latest ones; reading the list: {quantity(total, 'session')} so far …"
    if not loaded:
        return f"{found:,} of {quantity(looked, 'session')} so far; reading the list …"
    if not complete:
        return f"{found:,} found in {looked:,} of {quantity(total, 'session')} …"
    return f"{found:,} of {quantity(total, 'session')}"


def _title(index: SessionIndex, address: ListAddress, key: str, title: str, classes: str) -> Html:
    if key not in (*SORT_KEYS, *index.labels):
        return tag("th", title, scope="col", class_=classes)
    now = {key: "ascending", f"-{key}": "descending"}.get(address.sort)
    mark = {"ascending": " ▲", "descending": " ▼"}.get(now or "", "")
    link = tag("a", f"{title}{mark}", href=str(address.sorted_by(key)))
    return tag("th", link, scope="col", aria_sort=now, class_=classes)


def _filters(index: SessionIndex, address: ListAddress) -> Html:
    labels = [key for key in index.labels if len(index.values(key)) <= _CHOICES]
    states = {state: index.values("state").get(state, 0) for state in STATES}
    values = {key: dict(index.values(key)) for key in ("task", *labels)}
    fields: list[Node] = [
        _field(
            "q",
            "Search",
            tag(
                "input",
                id="f-q",
                name="q",
                type="search",
                value=address.text,
                placeholder=_HINT,
                autocomplete="off",
                spellcheck="false",
            ),
        ),
        _choice("state", "State", {one: count for one, count in states.items() if count}, address),
    ]
    fields += [_choice(key, key.capitalize(), values[key], address) for key in values]
    fields += [
        _field("tau", "τ used up", _select("tau", dict.fromkeys(_TAUS), address)),
        _field("utility", "Utility", _range("utility", "0.5..0.8", address)),
        _field("rounds", "Rounds", _range("rounds", "5..", address)),
        _field("effort", "Effort", _efforts(address)),
    ]
    named = {"state", "tau", "utility", "rounds", *values}
    kept = [(key, value) for key, value in address.conditions if key not in named]
    if address.sort != DEFAULT_SORT:
        kept.append(("sort", address.sort))
    hidden = [tag("input", type="hidden", name=key, value=value) for key, value in kept]
    button = tag("button", "Apply", type="submit")
    return tag("form", fields, hidden, button, class_="filters", action="/sessions", id="filters")


def _field(name: str, title: str, control: Html) -> Html:
    return tag("div", tag("label", title, for_=f"f-{name}"), control, class_="field")


def _choice(name: str, title: str, values: Mapping[str, int], address: ListAddress) -> Html | None:
    if len(values) < 2 and not address.condition(name):
        return None
    return _field(name, title, _select(name, dict(sorted(values.items())), address))


def _select(name: str, values: Mapping[str, int | None], address: ListAddress) -> Html:
    chosen = address.condition(name)
    options = [tag("option", "any" if name != "tau" else "–", value="")]
    offered = dict(values)
    if chosen and chosen not in offered:
        offered[chosen] = None
    for value, count in offered.items():
        shown = shorten(value, 40) if count is None else f"{shorten(value, 40)} ({count:,})"
        options.append(tag("option", shown, value=value, selected=value == chosen))
    return tag("select", options, id=f"f-{name}", name=name)


def _range(name: str, hint: str, address: ListAddress) -> Html:
    return tag(
        "input",
        id=f"f-{name}",
        name=name,
        value=address.condition(name),
        placeholder=hint,
        size=8,
        autocomplete="off",
    )


def _efforts(address: ListAddress) -> Html:
    options = [
        tag("option", name.replace("_", " "), value=name, selected=name == address.effort)
        for name in MEASURES
    ]
    return tag("select", options, id="f-effort", name="effort")


def paged(address: ListAddress, **keys: object) -> str:
    """The address of another page of a list."""
    return str(replace(address.first_page(), **keys))
