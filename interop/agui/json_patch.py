"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901): applies changes to parts of a shared state.

The operations are those of the library ``jsonpatch``. Added are a limit on size, and one clear line
for each error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final

import msgspec
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from ...engine.errors import InvalidInput
from ...engine.events import JSON

__all__ = ("apply_patch", "parse_pointer", "set_at", "value_at", "without")

_LARGEST: Final = 1 << 24  # bytes: copies of copies would soon fill the memory
_SHOWN: Final = 120  # characters of an error, which may quote keys of the document


def apply_patch(document: JSON, patch: JSON) -> JSON:
    """Returns a document with a patch applied; the document itself stays as it is.

    Raises:
        InvalidInput: the patch is malformed, or does not fit the document, or makes it larger than
            16 MiB; says which operation, and why.
    """
    if not isinstance(patch, list):
        raise InvalidInput("a patch is a list of operations")
    changed = deepcopy(document)
    for number, operation in enumerate(patch, start=1):
        try:
            changed = _apply(changed, operation)
        except InvalidInput as error:
            raise InvalidInput(
                f"operation {number} of the patch{_place(operation)}: {error}"
            ) from error
    return changed


def parse_pointer(pointer: JSON) -> list[str]:
    """The reference tokens of a pointer; none for the pointer to the whole document.

    Raises:
        InvalidInput: it is no pointer.
    """
    if not isinstance(pointer, str):
        raise InvalidInput(f"{pointer!r} is no JSON Pointer: it is no text")
    try:
        return JsonPointer(pointer).parts
    except JsonPointerException as error:
        raise InvalidInput(f"{pointer!r} is no JSON Pointer: {error}") from None


def value_at(document: JSON, tokens: Sequence[str]) -> JSON:
    """The value at a place; None where there is none."""
    found: JSON | EndOfList = JsonPointer.from_parts(tokens).resolve(document, None)
    return None if isinstance(found, EndOfList) else found


def without(document: JSON, tokens: Sequence[str]) -> JSON:
    """A document without the value at a place, if there is one."""
    try:
        path = JsonPointer.from_parts(tokens).path
        return _apply(deepcopy(document), {"op": "remove", "path": path})
    except InvalidInput:
        return document


def set_at(document: JSON, tokens: Sequence[str], value: JSON) -> JSON:
    """A document with a value at a place, and the objects that lead there."""
    if not tokens:
        return value
    around = dict(document) if isinstance(document, Mapping) else {}
    around[tokens[0]] = set_at(around.get(tokens[0]), tokens[1:], value)
    return around


def _apply(document: JSON, operation: JSON) -> JSON:
    """Applies one operation to a document, in place where possible."""
    if not isinstance(operation, Mapping):
        raise InvalidInput("an operation is an object")
    name = operation.get("op")
    if name == "remove" and operation.get("path") == "":
        return None  # to RFC 6902 the whole is a value like any other; the library refuses
    try:
        changed: JSON = JsonPatch([operation]).apply(document, in_place=True)
    except JsonPatchTestFailed:
        raise InvalidInput("the document holds another value than the tested one") from None
    except (JsonPatchException, JsonPointerException) as error:
        raise InvalidInput(_described(error)) from None
    if name == "copy" and len(msgspec.json.encode(changed)) > _LARGEST:
        raise InvalidInput(f"it makes the document larger than {_LARGEST} bytes")
    return changed


def _place(operation: JSON) -> str:
    path = operation.get("path") if isinstance(operation, Mapping) else None
    return f" at {_cut(path)!r}" if isinstance(path, str) else ""


def _described(error: Exception) -> str:
    """An error of the library in one line, without the document that it quotes."""
    text, found, _ = str(error).partition(" not found in ")
    return _cut(" ".join((f"{text} not found" if found else text).split()))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
