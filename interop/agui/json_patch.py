"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901): applies changes to parts of a shared state.

The operations are those of the library ``jsonpatch``. Added are a limit on size, and one clear line
for each error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

from ...engine.errors import InvalidInput
from ...engine.events import JSON

__all__ = ("apply_patch", "parse_pointer", "set_at", "value_at", "without")

_LARGEST: Final = 1 << 24  # bytes
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_SHOWN: Final = 120  # characters of an error, which may quote keys of the document


def apply_patch(document: JSON, patch: JSON) -> JSON:
    """Returns a document with a patch applied; the document itself stays as it is.

    Raises:
        InvalidInput: the patch is malformed, or does not fit the document, or copies more than
            16 MiB within it; says which operation, and why.
    """
    if not isinstance(patch, list):
        raise InvalidInput("a patch is a list of operations")
    work = _Work(document)
    for number, operation in enumerate(patch, start=1):
        try:
            work.apply(operation)
        except InvalidInput as error:
            raise InvalidInput(
                f"operation {number} of the patch{_place(operation)}: {error}"
            ) from error
    return work.document


def parse_pointer(pointer: JSON) -> list[str]:
    """The reference tokens of a pointer; none for the pointer to the whole document.

    Raises:
        InvalidInput: it is not a pointer.
    """
    if not isinstance(pointer, str):
        raise InvalidInput(f"{pointer!r} is not a JSON Pointer: it is not text")
    try:
        return JsonPointer(pointer).parts
    except JsonPointerException as error:
        raise InvalidInput(f"{pointer!r} is not a JSON Pointer: {error}") from None


def value_at(document: JSON, tokens: Sequence[str]) -> JSON:
    """The value at a place; None if there is none."""
    found: JSON | EndOfList = JsonPointer.from_parts(tokens).resolve(document, None)
    return None if isinstance(found, EndOfList) else found


def without(document: JSON, tokens: Sequence[str]) -> JSON:
    """A document without the value at a place, if there is one."""
    work = _Work(document)
    try:
        work.apply({"op": "remove", "path": JsonPointer.from_parts(tokens).path})
    except InvalidInput:
        return document
    return work.document


def set_at(document: JSON, tokens: Sequence[str], value: JSON) -> JSON:
    """A document with a value at a place, and the objects that lead there."""
    if not tokens:
        return value
    around = dict(document) if isinstance(document, Mapping) else {}
    around[tokens[0]] = set_at(around.get(tokens[0]), tokens[1:], value)
    return around


@final
class _Work:
    """A document while operations are applied to it.

    Each operation first copies the path from the root to its target, and nothing else. So an
    operation costs no more than the lists and objects on that path.

    Attributes:
        document: as it is now.
    """

    def __init__(self, document: JSON) -> None:
        self.document = document
        self._own: dict[int, JSON] = {}  # by identity, lists and objects that are copies already
        self._copied = 0

    def apply(self, operation: JSON) -> None:
        """Applies an operation.

        Raises:
            InvalidInput: it does not fit, or copies too much.
        """
        if not isinstance(operation, Mapping):
            raise InvalidInput("an operation is an object")
        name = operation.get("op")
        if name == "remove" and operation.get("path") == "":
            self.document = None  # RFC 6902 treats it like any other value; the library refuses
            return
        if name != "test":
            self._open(operation.get("path"))
        if name == "move":
            self._open(operation.get("from"))
        if name == "copy":
            self._count(operation.get("from"))
        if name == "test":
            self._find(operation.get("path"))
        try:
            self.document = JsonPatch([operation]).apply(self.document, in_place=True)
        except JsonPatchTestFailed:
            raise InvalidInput("the document holds another value than the tested one") from None
        except (JsonPatchException, JsonPointerException) as error:
            raise InvalidInput(_described(error)) from None

    def _open(self, pointer: JSON) -> None:
        """Copies what lies on the way to a place, unless it is a copy already."""
        if not isinstance(pointer, str):
            return  # the library reports the problem
        tokens = _tokens(pointer)
        above: list[JSON] | dict[str, JSON] | None = None
        key: int | str = 0
        now = self.document
        for token in (*tokens[:-1], None) if tokens else ():
            if not isinstance(now, (list, dict)):
                return
            if id(now) not in self._own:
                now = now.copy()
                self._own[id(now)] = now
                if isinstance(above, list):
                    above[int(key)] = now
                elif isinstance(above, dict):
                    above[str(key)] = now
                else:
                    self.document = now
            if token is None:
                return
            above = now
            if isinstance(now, dict):
                if token not in now:
                    raise InvalidInput(f"member {_cut(token)!r} not found")
                key, now = token, now[token]
            else:
                if not _INDEX.fullmatch(token) or int(token) >= len(now):
                    return
                key, now = int(token), now[int(token)]

    def _find(self, pointer: JSON) -> JSON:
        """The value at a place, if the place makes sense. If a member is missing, the library's
        error would spell out all of the document.
        """
        now = self.document
        for token in _tokens(pointer) if isinstance(pointer, str) else ():
            if isinstance(now, dict):
                if token not in now:
                    raise InvalidInput(f"member {_cut(token)!r} not found")
                now = now[token]
            elif isinstance(now, list) and _INDEX.fullmatch(token) and int(token) < len(now):
                now = now[int(token)]
            else:
                return None
        return now

    def _count(self, pointer: JSON) -> None:
        """Counts the copies, since copies of copies would soon fill the memory."""
        self._copied += len(msgspec.json.encode(self._find(pointer)))
        if self._copied > _LARGEST:
            raise InvalidInput(
                f"it makes the document larger than {_LARGEST} bytes, all copies counted"
            )


def _tokens(pointer: str) -> list[str]:
    try:
        return JsonPointer(pointer).parts
    except JsonPointerException as error:
        raise InvalidInput(_described(error)) from None


def _place(operation: JSON) -> str:
    path = operation.get("path") if isinstance(operation, Mapping) else None
    return f" at {_cut(path)!r}" if isinstance(path, str) else ""


def _described(error: Exception) -> str:
    """An error of the library in one line, without the document that it quotes."""
    text, found, _ = str(error).partition(" not found in ")
    return _cut(" ".join((f"{text} not found" if found else text).split()))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
