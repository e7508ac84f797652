"""The search of a list of sessions: words of its query are looked for in contents, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ....engine.errors import InvalidInput
from ....engine.log.contract import SessionSummary
from ....scoring.index.query import SessionQuery
from ..state import Workbench
from .address import ListAddress

__all__ = ("Searched", "searched", "snippets_of")

_PATIENCE: Final = 1.0  # seconds for the contents of sessions that are new


class Searched(NamedTuple):
    """The query of a list after its search.

    Attributes:
        query: the query, which knows the sessions that hold its words.
        left: how many sessions could not be searched in time.
    """

    query: SessionQuery
    left: int = 0


async def searched(workbench: Workbench, address: ListAddress) -> Searched:
    """The query of a list, with the sessions whose contents hold its words.

    Raises:
        InvalidInput: the query is invalid.
        LogError: the log cannot be read.
    """
    query = address.query
    if not (text := _text(query)):
        return Searched(query)
    try:
        found = await workbench.contents.find(text, patience=_PATIENCE)
    except InvalidInput:  # a word without letters or digits occurs in no contents
        return Searched(query)
    return Searched(replace(query, contents=found.sessions), found.left)


async def snippets_of(
    workbench: Workbench, query: SessionQuery, sessions: Sequence[SessionSummary]
) -> Mapping[str, str]:
    """The text around the first match in each of some sessions; empty without a search.

    Raises:
        LogError: the log cannot be read.
    """
    if query.contents is None:
        return {}
    found = [one.session for one in sessions if one.session in query.contents]
    return await workbench.contents.snippets(_text(query), found)


def _text(query: SessionQuery) -> str:
    return " ".join(f'"{word}"' for word in query.words)
