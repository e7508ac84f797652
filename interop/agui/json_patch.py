"""JSON Patch (RFC 6902) on JSON Pointers (RFC 6901): what changes a state by parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON

__all__ = ("apply_patch", "placed", "tokens_of", "value_at", "without")


_LARGEST: Final = 1 << 24  # bytes: copies of copies would soon fill the memory


def apply_patch(document: JSON, patch: JSON) -> JSON:
    """A document with a patch applied; the document itself stays as it is.

    Raises:
        InvalidInput: the patch is none, or does not fit the document; says which operation, and why.
    """
    if not isinstance(patch, list):
        raise InvalidInput("a patch is a list of operations")
    changed = deepcopy(document)
    for number, operation in enumerate(patch, start=1):
        try:
            changed = _apply(changed, operation)
        except InvalidInput as error:
            raise InvalidInput(f"operation {number} of the patch: {error}") from error
    return changed


def tokens_of(pointer: JSON) -> list[str]:
    """The reference tokens of a pointer; none of the one that means the whole document.

    Raises:
        InvalidInput: it is no pointer.
    """
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise InvalidInput(f"{pointer!r} is no JSON Pointer: it is empty, or begins with /")
    if "~" in pointer.replace("~0", "").replace("~1", ""):
        raise InvalidInput(f"{pointer!r} is no JSON Pointer: ~ stands before 0 or 1")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def value_at(document: JSON, tokens: Sequence[str]) -> JSON:
    """What stands at a place; None where there is nothing."""
    try:
        return _get(document, tokens)
    except InvalidInput:
        return None


def without(document: JSON, tokens: Sequence[str]) -> JSON:
    """A document without what stands at a place, if there is anything."""
    try:
        return _remove(deepcopy(document), tokens)
    except InvalidInput:
        return document


def placed(document: JSON, tokens: Sequence[str], value: JSON) -> JSON:
    """A document with a value at a place, and the objects that lead there."""
    if not tokens:
        return value
    around = dict(document) if isinstance(document, Mapping) else {}
    around[tokens[0]] = placed(around.get(tokens[0]), tokens[1:], value)
    return around


def _apply(document: JSON, operation: JSON) -> JSON:
    if not isinstance(operation, Mapping):
        raise InvalidInput("it is no object")
    name = operation.get("op")
    apply = _OPERATIONS.get(name) if isinstance(name, str) else None
    if apply is None:
        raise InvalidInput(f"there is no op {name!r}; there are {', '.join(_OPERATIONS)}")
    return apply(document, operation)


def _value(operation: Mapping[str, JSON]) -> JSON:
    if "value" not in operation:
        raise InvalidInput("it has no value")
    return deepcopy(operation["value"])


def _get(document: JSON, tokens: Sequence[str]) -> JSON:
    found = document
    for depth, token in enumerate(tokens):
        if isinstance(found, dict) and token in found:
            found = found[token]
        elif isinstance(found, list):
            found = found[_index(token, len(found) - 1)]
        else:
            raise InvalidInput(f"there is nothing at /{'/'.join(tokens[: depth + 1])}")
    return found


def _index(token: str, last: int) -> int:
    if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0"):
        raise InvalidInput(f"{token!r} is no index of a list")
    if len(token) > 9 or int(token) > last:
        raise InvalidInput(f"a list has no index {token}")
    return int(token)


def _put(document: JSON, tokens: Sequence[str], value: JSON) -> JSON:
    if not tokens:
        return value
    around = _get(document, tokens[:-1])
    token = tokens[-1]
    if isinstance(around, dict):
        around[token] = value
    elif isinstance(around, list):
        around.insert(len(around) if token == "-" else _index(token, len(around)), value)
    else:
        raise InvalidInput(f"/{'/'.join(tokens[:-1])} is neither an object nor a list")
    return document


def _remove(document: JSON, tokens: Sequence[str]) -> JSON:
    if not tokens:
        return None
    around = _get(document, tokens[:-1])
    _get(around, tokens[-1:])
    if isinstance(around, dict):
        del around[tokens[-1]]
    elif isinstance(around, list):
        del around[int(tokens[-1])]
    return document


def _add(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    return _put(document, tokens_of(operation.get("path")), _value(operation))


def _take_away(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    return _remove(document, tokens_of(operation.get("path")))


def _replace(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    tokens, value = tokens_of(operation.get("path")), _value(operation)
    _get(document, tokens)
    if not tokens:
        return value
    around = _get(document, tokens[:-1])
    if isinstance(around, list):
        around[int(tokens[-1])] = value
    elif isinstance(around, dict):
        around[tokens[-1]] = value
    return document


def _move(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    source, target = tokens_of(operation.get("from")), tokens_of(operation.get("path"))
    if source == target:
        _get(document, source)
        return document
    if target[: len(source)] == source:
        raise InvalidInput("it moves a value into itself")
    value = _get(document, source)
    return _put(_remove(document, source), target, value)


def _copy(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    value = deepcopy(_get(document, tokens_of(operation.get("from"))))
    changed = _put(document, tokens_of(operation.get("path")), value)
    if len(msgspec.json.encode(changed)) > _LARGEST:
        raise InvalidInput(f"it makes the document larger than {_LARGEST} bytes")
    return changed


def _test(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    path, expected = operation.get("path"), _value(operation)
    found = _get(document, tokens_of(path))
    if _plain(found) != _plain(expected):
        raise InvalidInput(f"{path} is another value than it says")
    return document


def _plain(value: JSON) -> bytes:
    """A value so that equal ones are alike: to Python, 1 and true are equal."""
    return msgspec.json.encode(_whole(value), order="sorted")


def _whole(value: JSON) -> JSON:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return value


_OPERATIONS: Final[Mapping[str, Callable[[JSON, Mapping[str, JSON]], JSON]]] = {
    "add": _add,
    "remove": _take_away,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
