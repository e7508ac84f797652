"""The outer form of a JSON file and the names of its first keys, without reading all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, final

import msgspec

from ...engine.errors import InvalidInput

__all__ = ("Shape", "shape_of", "shape_of_text")

_HEAD = 1 << 20  # bytes that are looked at

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|"', re.DOTALL)


@final
class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the beginning of a JSON file.

    Attributes:
        form: ``object``, ``array``, or ``lines``: several values, one after the other.
        keys: the keys of the first object: the object itself, or the first one in the array or the
            lines.
        inner: by key of that object, the keys of the first object inside the value, if any.
    """

    form: Literal["object", "array", "lines"]
    keys: frozenset[str] = frozenset()
    inner: dict[str, frozenset[str]] = {}


def shape_of(path: Path) -> Shape | None:
    """The shape of a file's beginning; None if it is not JSON.

    Raises:
        InvalidInput: it cannot be read.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InvalidInput(
            f"cannot read {path}: it is not a regular file, and import reads its source more than once"
        )
    try:
        with path.open("rb") as file:
            return shape_of_text(file.read(_HEAD))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error


def shape_of_text(head: bytes) -> Shape | None:
    """The same for the beginning of a text, which may end anywhere."""
    tokens = _TOKEN.finditer(head.removeprefix(b"\xef\xbb\xbf"))
    first = next(tokens, None)
    if first is None or first.group() not in (b"{", b"["):
        return None
    look = _Look(array=first.group() == b"[")
    try:
        several = look.over(match.group() for match in tokens)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not look.array and several:
        form: Literal["object", "array", "lines"] = "lines"
    else:
        form = "array" if look.array else "object"
    inner = {key: frozenset(keys) for key, keys in look.inner.items()}
    return Shape(form=form, keys=frozenset(look.keys), inner=inner)


@final
class _Look:
    """Walks over tokens, and keeps the keys of the first object and of the first inside it."""

    def __init__(self, *, array: bool) -> None:
        self.array = array
        self.keys: set[str] = set()
        self.inner: dict[str, set[str]] = {}
        self._stack = [b"[" if array else b"{"]
        self._first = 2 if array else 1  # how deep the keys of the first object lie
        self._key = ""
        self._inside = 0  # how deep those of the first object in its value lie; 0 for none (yet)
        self._over = False

    def over(self, tokens: Iterator[bytes]) -> bool:
        """Walks to the end; gives whether the first value is followed by another."""
        before = b""
        for token in tokens:
            if not self._stack:
                return True
            if token == b'"':  # a text that continues past the head
                break
            if token in (b"{", b"["):
                self._enter(token)
            elif token in (b"}", b"]"):
                self._leave(token)
            elif token == b":" and before[:1] == b'"' and not self._over:
                self._name(msgspec.json.decode(before, type=str))
            before = token
        return False

    def _enter(self, token: bytes) -> None:
        self._stack.append(token)
        deep = len(self._stack)
        if token == b"{" and deep > self._first and self._key not in self.inner:
            self.inner[self._key] = set()
            self._inside = deep

    def _leave(self, token: bytes) -> None:
        opened = self._stack.pop()
        if (opened == b"{") != (token == b"}"):
            raise msgspec.DecodeError("brackets do not match")
        left = len(self._stack) + 1
        if left == self._inside:
            self._inside = 0
        if left == self._first and opened == b"{":
            self._over = True

    def _name(self, name: str) -> None:
        deep = len(self._stack)
        if deep == self._first:
            self.keys.add(name)
            self._key = name
            self._inside = 0
        elif deep == self._inside:
            self.inner[self._key].add(name)
