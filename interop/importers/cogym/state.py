"""What a record of Collaborative Gym says of the state: the editor, what a member found, the chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..json_files import decode
from .files import ChatLine, Row

__all__ = ("State",)

_EDITOR: Final = "editor"
_PLACES: Final = {"DISTANCE_MATRIX": "distance_matrix_output"}
_SEARCHES: Final = "_SEARCH"
_SEARCH_PLACE: Final = "search_output"


class _Observation(msgspec.Struct):
    public: Mapping[str, msgspec.Raw] = {}
    private: Mapping[str, Mapping[str, msgspec.Raw]] = {}


@final
class State:
    """Follows the state from record to record; each holds all of it, and all of the chat.

    Attributes:
        editor: text of the shared editor; None where the log does not say.
        news: messages that have come into the chat since the record before.
    """

    def __init__(self) -> None:
        self.editor: str | None = None
        self.news: Sequence[ChatLine] = ()
        self._said = 0
        self._seen: dict[str, dict[str, bytes]] = {}
        self._changed: dict[str, dict[str, bytes]] = {}

    def take(self, row: Row) -> None:
        """Takes the next record."""
        chat = _chat(row)
        self.news = chat[self._said :]
        self._said = max(self._said, len(chat))
        observation = _observation(row)
        editors = [raw for name, raw in observation.public.items() if name.endswith(_EDITOR)]
        self.editor = _text(editors[0]) if len(editors) == 1 else None
        self._changed = {}
        shared = {name: raw for name, raw in observation.public.items() if _EDITOR not in name}
        for member, seen in {"": shared, **observation.private}.items():
            now = {name: bytes(raw) for name, raw in seen.items()}
            before = self._seen.get(member, {})
            self._changed[member] = {n: raw for n, raw in now.items() if before.get(n) != raw}
            self._seen[member] = now

    def found(self, role: str, action: str) -> JSON:
        """What a member found by an action that succeeded: what has changed for it, or what stands
        where such an action puts its results, since a search may find the same again.
        """
        changed = {**self._changed.get("", {}), **self._changed.get(role, {})}
        if not changed:
            place = _PLACES.get(action, _SEARCH_PLACE if action.endswith(_SEARCHES) else None)
            held = self._seen.get(role, {}).get(place) if place is not None else None
            return None if held is None else _result(held)
        if len(changed) == 1:
            return _result(next(iter(changed.values())))
        return {name: _result(raw) for name, raw in changed.items()}


def _chat(row: Row) -> Sequence[ChatLine]:
    try:
        return decode(row.current_chat_history, list[ChatLine] | None) or ()  # type: ignore[arg-type]
    except InvalidInput:
        return ()


def _observation(row: Row) -> _Observation:
    try:
        found = decode(row.current_observation, _Observation | None)  # type: ignore[arg-type]
    except InvalidInput:  # of another kind of environment
        found = None
    return found if isinstance(found, _Observation) else _Observation()


def _text(raw: msgspec.Raw) -> str | None:
    value = decode(raw, object)
    return value if isinstance(value, str) else None


def _result(raw: bytes) -> JSON:
    """A result without its query, which is in the action's arguments."""
    value: JSON = msgspec.json.decode(raw)
    if isinstance(value, dict) and set(value) == {"query", "output"}:
        output: JSON = value["output"]
        return output
    return value or None
