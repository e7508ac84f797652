"""Conversations in files: which messages belong together, what they are called, what is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, Tokens
from ..anthropic.blocks import plain_text, tokens_of
from ..conversation.numbers import count_of
from ..json_files import Piece, decode, pieces_of
from ..json_sniff import Shape, shape_of
from ..protocol import Remark
from .steps import Item

__all__ = ("Conversation", "conversations_in", "is_item", "is_whole", "stamp_of", "usage_of")

_IDS: Final = ("conversation_id", "session_id", "thread_id", "id")
_STAMPS: Final = ("timestamp", "created_at", "created")
_HOLDERS: Final = frozenset({"messages", "input", "output", "choices"})
_SAYING: Final = frozenset({"content", "tool_calls", "function_call"})
_ITEM: Final = frozenset({"call_id", "content", "name"})
_ENDINGS: Final = (".json", ".jsonl")


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a file.

    Attributes:
        session: its id: its own, else one made from the file's name and the conversation's text.
        where: its place.
        items: messages and items in order.
        about: what stands beside them.
    """

    session: str
    where: str
    items: Sequence[Item]
    about: Mapping[str, JSON]


def is_item(shape: Shape) -> bool:
    """Whether the first object in a file is a message or an item."""
    keys = shape.keys
    if "summary" in keys and not keys & (_ITEM | {"id"}) and not shape.inner.get("summary"):
        return False  # a text, not a model's reasoning
    return ("role" in keys and bool(keys & _SAYING)) or (
        "type" in keys and bool(keys & (_ITEM | {"summary"}))
    )


def is_whole(shape: Shape) -> bool:
    """Whether the first object in a file holds a conversation."""
    if "messages" in shape.keys:
        return "role" in shape.inner.get("messages", {"role"})
    for holder in ("input", "output"):
        inner = shape.inner.get(holder, frozenset())
        if holder in shape.keys and inner & {"role", "type"}:
            return True
    return {"input", "model"} <= shape.keys


def conversations_in(source: Path) -> Iterator[Conversation | Remark]:
    """The conversations in a file, or in all files below a directory.

    Raises:
        InvalidInput: there are none, or a file cannot be read.
    """
    if not source.is_dir():
        yield from _in_file(source)
        return
    files = sorted(path for path in source.rglob("*") if path.suffix in _ENDINGS)
    if not files:
        raise InvalidInput(f"{source} holds no files that end in {' or '.join(_ENDINGS)}")
    for path in files:
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[Conversation | Remark]:
    shape = shape_of(path)
    if shape is None:
        raise InvalidInput(f"{path} holds no chat messages: it is no JSON")
    if shape.form != "object" and (is_item(shape) or not is_whole(shape)):
        yield from _one(path)
        return
    several = shape.form != "object"
    for piece in pieces_of(path):
        try:
            held = decode(piece.data, dict[str, JSON])
            items = _items(held)
        except InvalidInput as error:
            yield Remark("problem", f"no conversation: {error}", piece.where)
            continue
        name = f"{path.stem}-{piece.number}" if several else path.stem
        yield Conversation(
            session=_own_id(held) or _made_id(name, items),
            where=piece.where,
            items=items,
            about={key: value for key, value in held.items() if key not in _HOLDERS},
        )


def _one(path: Path) -> Iterator[Conversation | Remark]:
    """A file whose elements or lines are the messages of one conversation."""
    items: list[Item] = []
    for piece in pieces_of(path):
        found = _item(piece)
        if isinstance(found, Remark):
            yield found
        else:
            items.append(found)
    session = _made_id(path.stem, items)
    yield Conversation(session=session, where=str(path), items=items, about={})


def _item(piece: Piece) -> Item | Remark:
    try:
        return decode(piece.data, dict[str, JSON])
    except InvalidInput as error:
        return Remark("problem", f"no message: {error}", piece.where)


def _items(held: Mapping[str, JSON]) -> list[Item]:
    """The messages and items of an object that holds a conversation."""
    items: list[Item] = []
    for key in ("instructions", "system"):
        said = held.get(key)
        if text := plain_text(said):
            items.append({"role": "system", "content": text})
    found = False
    for key in ("messages", "input", "output"):
        listed = held.get(key)
        if listed is None:
            continue
        found = True
        if isinstance(listed, str):
            items.append({"role": "user" if key == "input" else "assistant", "content": listed})
            continue
        items += _listed(key, listed)
    choices = held.get("choices")
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        found = True
        items += _listed("choices", [choices[0].get("message")])
    if not found and not ("role" in held or "type" in held):
        raise InvalidInput("it has neither messages nor input nor output")
    return items if found else [held]


def _listed(key: str, listed: JSON) -> list[Item]:
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise InvalidInput(f"its {key} are no list")
    items: list[Item] = []
    for number, item in enumerate(listed, start=1):
        if not isinstance(item, Mapping):
            raise InvalidInput(f"{key}, element {number} is no object")
        items.append(item)
    return items


def _own_id(held: Mapping[str, JSON]) -> str | None:
    for key in _IDS:
        value = held.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return None


def _made_id(name: str, items: Sequence[Item]) -> str:
    return f"{name}-{codec.digest(items)[:12]}"


def stamp_of(item: Item) -> JSON:
    """When a message was sent, as it says; None where it does not."""
    for key in _STAMPS:
        stamp = item.get(key)
        if stamp is not None:
            return stamp
    return None


def usage_of(value: JSON) -> Tokens | None:
    """Tokens, as OpenAI's interfaces or Anthropic's count them; None where nothing is counted."""
    if not isinstance(value, Mapping):
        return None
    if "cache_read_input_tokens" in value:
        return tokens_of(value)
    tokens = Tokens(
        prompt=_count(value, "prompt_tokens", "input_tokens"),
        completion=_count(value, "completion_tokens", "output_tokens"),
        cached=_detail(value, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning=_detail(
            value, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
        ),
    )
    return None if tokens == Tokens() else tokens


def _count(value: Mapping[str, JSON], *keys: str) -> int | None:
    for key in keys:
        found = count_of(value.get(key))
        if found is not None:
            return found
    return None


def _detail(value: Mapping[str, JSON], keys: Sequence[str], what: str) -> int | None:
    for key in keys:
        found = value.get(key)
        if isinstance(found, Mapping):
            return _count(found, what)
    return None
