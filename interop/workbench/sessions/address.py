"""The address of a list of sessions: all that decides what it shows, so that a link leads back to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from ....engine.errors import InvalidInput
from ....scoring.index.lists import Key, parse_key
from ....scoring.index.order import SessionOrder, parse_order
from ....scoring.index.query import SessionQuery, join_query, parse_query, split_query
from ....scoring.trajectory.effort import MEASURES

__all__ = ("DEFAULT_SORT", "ListAddress", "parse_address")

DEFAULT_SORT: Final = "-written"
"""The latest record comes first."""

_PATH: Final = "/sessions"
_RESERVED: Final = frozenset(
    {"q", "sort", "effort", "after", "before", "since", "of", "agents", "columns"}
)
_MOST: Final = 4000  # characters of a query


class ListAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a list.

    Attributes:
        text: the query, as it was typed.
        conditions: further conditions, each a key and what it has to be.
        sort: what it is sorted by, see ``scoring.index.order``.
        effort: which measure of effort is shown.
        columns: the columns that are shown; the usual ones if there are none.
        after: the key behind which the page begins.
        before: the key before which it ends.
    """

    text: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    sort: str = DEFAULT_SORT
    effort: str = "seconds"
    columns: tuple[str, ...] = ()
    after: Key | None = None
    before: Key | None = None

    @property
    def query(self) -> SessionQuery:
        """The conditions on sessions. Raises InvalidInput if they are invalid."""
        terms = [*split_query(self.text)]
        for key, value in self.conditions:
            terms.append("tau" if (key, value) == ("tau", "any") else f"{key}={value}")
        return parse_query(terms)

    @property
    def order(self) -> SessionOrder:
        """The order. Raises InvalidInput if it names nothing."""
        return parse_order(self.sort)

    @property
    def plain(self) -> bool:
        """Whether it shows all sessions, the latest first, from the first page."""
        filtered = self.text.strip() or self.conditions
        paged = self.after is not None or self.before is not None
        return not filtered and not paged and self.sort == DEFAULT_SORT

    def condition(self, key: str) -> str:
        """The required value of a key; empty if any value will do."""
        return dict(self.conditions).get(key, "")

    def terms(self) -> list[tuple[str, ListAddress]]:
        """The terms that narrow the list down, each with the list without it."""
        typed, found = split_query(self.text), []
        for place, term in enumerate(typed):
            rest = join_query([*typed[:place], *typed[place + 1 :]])
            found.append((term, replace(self.first_page(), text=rest)))
        for place, (key, value) in enumerate(self.conditions):
            others = (*self.conditions[:place], *self.conditions[place + 1 :])
            found.append((f"{key}={value}", replace(self.first_page(), conditions=others)))
        return found

    def first_page(self) -> ListAddress:
        """The same list from its beginning."""
        return replace(self, after=None, before=None)

    def sorted_by(self, key: str) -> ListAddress:
        """The same sessions sorted by something; in reverse, if it is the present order."""
        sort = f"-{key}" if self.sort in (key, DEFAULT_SORT) and self.sort != f"-{key}" else key
        return replace(self.first_page(), sort=sort)

    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of the address; defaults are left out."""
        found = [("q", self.text)] if self.text else []
        found += self.conditions
        usual = ListAddress()
        found += [
            (name, getattr(self, name))
            for name in ("sort", "effort")
            if getattr(self, name) != getattr(usual, name)
        ]
        if self.columns:
            found.append(("columns", ",".join(self.columns)))
        for name in ("after", "before"):
            key = getattr(self, name)
            if key is not None:
                found.append((name, msgspec.json.encode(key).decode()))
        return found

    def __str__(self) -> str:
        parameters = urlencode(self.parameters())
        return f"{_PATH}?{parameters}" if parameters else _PATH


def parse_address(parameters: Iterable[tuple[str, str]]) -> ListAddress:
    """The list that an address asks for.

    Raises:
        InvalidInput: it is invalid.
    """
    given = [(key, value.strip()) for key, value in parameters if value.strip()]
    if sum(len(key) + len(value) for key, value in given) > _MOST:
        raise InvalidInput(f"a query has at most {_MOST:,} characters")
    named = {key: value for key, value in given if key in _RESERVED}
    if (effort := named.get("effort", "seconds")) not in MEASURES:
        raise InvalidInput(
            f"unknown measure of effort {effort!r}; choose from {', '.join(MEASURES)}"
        )
    address = ListAddress(
        text=" ".join(value for key, value in given if key == "q"),
        conditions=tuple((key, value) for key, value in given if key not in _RESERVED),
        sort=named.get("sort", DEFAULT_SORT),
        effort=effort,
        columns=tuple(one for one in named.get("columns", "").split(",") if one),
        after=parse_key(named["after"]) if "after" in named else None,
        before=parse_key(named["before"]) if "before" in named else None,
    )
    _ = address.query, address.order  # raise
    return address
