"""The page with the list of sessions: its filters, its table, and the ways to its other pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace

from ....engine.text import quantity
from ....scoring.display.texts import shorten
from ....scoring.index.order import SORT_KEYS
from ....scoring.index.query import join_query
from ....scoring.index.sessions import SessionIndex
from ....scoring.trajectory.effort import MEASURES
from ..markup.html import Html, Node, tag
from ..menu import Export
from .address import ListAddress
from .rows import COLUMNS, Column, class_of, columns_of

__all__ = ("list_contents", "list_exports", "paged", "searching_note")

_CHOICES: Final = 200  # values that a choice offers
_HINT: Final = "Filter: agent=two-stage, utility=..0.3, tau=2; or search the messages"
_EXAMPLES: Final = (
    ("utility=..0.5", "utility of at most 0.5"),
    ("utility=none", "utility is missing"),
    ("rounds=5..", "five rounds or more"),
    ("tau", "some tolerance is used up"),
    ("tau=2", "a tolerance of 2 is used up"),
)
_VIEWS: Final = (
    ("All", "/sessions"),
    ("Open", "/sessions?state=open"),
    ("Given up", "/sessions?state=abandoned%2Ctolerance"),
    ("Failed", "/sessions?state=failed"),
)
"""Views for all users: the name and the address."""
_WAYS: Final = (
    (
        "Record your product",
        "A few calls record what people and your agent do.",
        'with duolog.open_sync("sqlite:///LOG") as log: …',
    ),
    (
        "Import what you have",
        "Logs of coding agents, traces, chats and benchmarks.",
        "duolog import FILE --log LOG",
    ),
    (
        "Simulate an agent",
        "A shipped agent with a simulated user. It needs no model.",
        "duolog run travel --agents two-stage --log LOG",
    ),
)
"""The ways to fill an empty log: what, about it, and the command."""


def list_contents(
    index: SessionIndex,
    address: ListAddress,
    rows: Sequence[Html],
    *,
    note: str,
    before: str | None,
    after: str | None,
    problem: str = "",
    typed: str = "",
    reviews: bool = False,
    complete: bool = True,
) -> list[Node]:
    """The contents of the page.

    Args:
        index: the sessions.
        address: the address of the list.
        rows: the rows of the sessions on this page.
        note: how many sessions there are, and the like.
        before: the address of the page before; None if there is none.
        after: where the page that follows begins.
        problem: why the address is invalid; empty if it is valid.
        typed: the invalid term.
        reviews: whether the user may tag and review sessions.
        complete: whether all sessions were looked at; else the script loads the page again.
    """
    heads = [_title(index, address, column) for column in columns_of(address)]
    every = tag("input", type="checkbox", id="every", aria_label="Select all that are shown")
    contents: list[Node] = [
        tag(
            "div",
            tag("h1", "Sessions"),
            _views(address),
            _choose_columns(address),
            tag(
                "a",
                "Compare these",
                href=f"/compare{str(address.first_page())[9:]}",
                class_="button",
            ),
            class_="list-head",
        ),
        _filters(index, address, typed),
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
                tag("tbody", rows, id="rows", data_complete=complete),
                class_="dense",
                data_descending=address.sort.startswith("-"),
            ),
            class_="wide",
            tabindex=0,
            role="region",
            aria_label="Sessions",
        ),
        _tag_dialog() if reviews else None,
        tag(
            "div",
            tag("span", note, id="count", role="status"),
            _selection(reviews),
            tag(
                "nav",
                tag("a", "← Earlier page", href=before, rel="prev", id="before")
                if before
                else None,
                tag("a", "Next page →", href=after, rel="next", id="after") if after else None,
                class_="pages",
                aria_label="Pages of the list",
            ),
            class_="list-foot",
        ),
    ]


def _selection(reviews: bool) -> Html:
    """What can be done with the selected sessions, in the foot, so that nothing moves or is covered."""
    return tag(
        "div",
        tag("b", "", id="selected", role="status"),
        tag("a", "Compare", id="compare-selected", href="/compare", class_="button primary"),
        tag("a", "Side by side", id="pair-selected", href="/pair", class_="button", hidden=True),
        tag("button", "Tag …", type="button", id="tag-selected", aria_haspopup="dialog")
        if reviews
        else None,
        tag("a", "Queue for review", id="queue-selected", href="/review", class_="button")
        if reviews
        else None,
        tag("a", "Export CSV", id="export-selected", href="/v1/export/sessions", class_="button"),
        tag("button", "Clear", type="button", id="clear"),
        id="selection",
        hidden=True,
    )


def list_exports(address: ListAddress) -> Sequence[Export]:
    """The whole list as files."""
    kept = [(key, one) for key, one in address.first_page().parameters() if key != "columns"]
    return [Export("All sessions of the list", "/v1/export/sessions", kept, ("csv", "json"))]


def _tag_dialog() -> Html:
    """The dialog that tags the selected sessions."""
    form = tag(
        "form",
        tag("h2", "Tag the selected sessions", id="tag-title"),
        tag("label", "Your name", for_="tag-by"),
        tag("input", id="tag-by", name="by", maxlength=60, required=True, autocomplete="name"),
        tag("label", "Tags, separated by spaces", for_="tag-tags"),
        tag("input", id="tag-tags", name="tags", required=True, list="known-tags"),
        tag("datalist", id="known-tags"),
        tag("p", "", id="tag-problem", class_="problem", role="alert"),
        tag("button", "Tag", type="submit", class_="primary"),
        " ",
        tag("button", "Cancel", type="button", id="tag-cancel"),
        id="tag-form",
    )
    return tag("dialog", form, id="tag-dialog", aria_labelledby="tag-title")


def _how_to_fill() -> Html:
    """The ways to fill an empty log."""
    ways = tag(
        "div",
        [
            tag("section", tag("h2", what), tag("p", about), tag("pre", command))
            for what, about, command in _WAYS
        ],
        class_="ways",
    )
    said = "Fill it in one of these ways; LOG is its file. The sessions appear here at once."
    return tag(
        "div", tag("h1", "This log has no sessions yet"), tag("p", said), ways, class_="empty"
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


def _title(index: SessionIndex, address: ListAddress, column: Column) -> Html:
    key, title, classes = column.key, column.title, class_of(column)
    if key not in (*SORT_KEYS, *index.labels):
        return tag("th", title, scope="col", class_=classes)
    now = {key: "ascending", f"-{key}": "descending"}.get(address.sort)
    mark = {"ascending": " ▲", "descending": " ▼"}.get(now or "", "")
    link = tag("a", f"{title}{mark}", href=str(address.sorted_by(key)))
    return tag("th", link, scope="col", aria_sort=now, class_=classes)


def _filters(index: SessionIndex, address: ListAddress, typed: str) -> Html:
    """One row: a chip for each condition, and a field that completes the next one."""
    chips = [_chip(term, str(rest)) for term, rest in address.terms()]
    kept = [(key, value) for key, value in address.first_page().parameters()]
    hidden = [tag("input", type="hidden", name=key, value=value) for key, value in kept]
    field = tag(
        "input",
        id="f-q",
        name="q",
        type="search",
        value=typed,
        list="completions",
        placeholder=_HINT,
        aria_label="Filter, or search",
        autocomplete="off",
        spellcheck="false",
    )
    options = [tag("option", about, value=term) for term, about in _completions(index)]
    return tag(
        "form",
        chips,
        hidden,
        field,
        tag("datalist", options, id="completions"),
        class_="filters",
        action="/sessions",
        id="filters",
        data_query=urlencode(address.parameters()),
    )


def _chip(term: str, rest: str) -> Html:
    """A condition, and the way to the list without it."""
    key, equals, value = term.partition("=")
    plain = equals and key and key[-1] not in "!<>"
    text: Node = shorten(term, 40)
    if plain:
        text = [f"{key} ", tag("b", tag("bdi", shorten(value, 40)))]
    away = tag("a", "×", href=rest, aria_label=f"Remove {shorten(term, 60)}", class_="away")
    return tag("span", tag("span", text, title=term[:200]), away, class_="chip")


def _completions(index: SessionIndex) -> Iterator[tuple[str, str]]:
    """Conditions to choose from, each with its meaning or its number of sessions."""
    yield from _EXAMPLES
    for key in ("state", "task", *index.labels):
        values = index.values(key)
        if len(values) > _CHOICES:
            yield f"{key}=", f"{len(values):,} values"
            continue
        for value, count in sorted(values.items()):
            if value and '"' not in value:
                yield join_query([f"{key}={value}"]), quantity(count, "session")


def _choose_columns(address: ListAddress) -> Html:
    """The chooser of columns and of the measure of effort."""
    shown = columns_of(address)
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name="columns", value=one.name, checked=one in shown),
            one.title,
        )
        for one in COLUMNS[1:]
    ]
    effort = tag("label", "Effort ", _efforts(address))
    return tag(
        "details",
        tag("summary", "Columns"),
        tag("form", boxes, effort, id="columns"),
        class_="chooser",
    )


def _views(address: ListAddress) -> Html:
    """Lists that are asked for often, and those that were saved in this browser."""
    links = [
        tag("a", name, href=to, aria_current="page" if to == str(address) else None)
        for name, to in _VIEWS
    ]
    save = tag("button", "Save this view", type="button", id="save-view", hidden=address.plain)
    return tag("nav", links, tag("span", id="views"), save, class_="views", aria_label="Views")


def _efforts(address: ListAddress) -> Html:
    options = [
        tag("option", name.replace("_", " "), value=name, selected=name == address.effort)
        for name in MEASURES
    ]
    return tag("select", options, id="f-effort", name="effort")


def paged(address: ListAddress, **keys: object) -> str:
    """The address of another page of a list."""
    return str(replace(address.first_page(), **keys))
