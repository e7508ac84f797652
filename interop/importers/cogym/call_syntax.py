"""Calls written as text, ``NAME(key=value, ...)``: read by rules, and never evaluated.

Values come with or without quotes, and may hold commas, brackets, quotes and line ends. Where the
parameters of a name are known, everything between them is their values; else values are told
apart by what looks like the next key outside of quotes and brackets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ("ActionCall", "Signatures", "parse_call", "unquoted")

Signatures = Mapping[str, Sequence[Sequence[str]]]
"""By name of a call, the parameters that it takes, in order; several where it has several forms."""

_BEGIN: Final = re.compile(r"\s*([A-Za-z_]\w*)\(")
_AMIDST: Final = re.compile(r"\b([A-Z][A-Z_]+)\(")
_KEY: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=")
_NEXT: Final = re.compile(r",\s*[A-Za-z_]\w*\s*=")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[ntr'\"\\])")
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r"}
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


class ActionCall(NamedTuple):
    """A call.

    Attributes:
        name: empty where the text is none.
        values: as they stand, by key, in order.
        readable: whether ``values`` says all there is in the text.
    """

    name: str
    values: Mapping[str, str]
    readable: bool

    @property
    def arguments(self) -> dict[str, str]:
        """The values without their quotes."""
        return {key: unquoted(value) for key, value in self.values.items()}


def parse_call(text: str, signatures: Signatures = {}) -> ActionCall:  # noqa: B006 (never changed)
    """Reads a call. Any text has an answer, if only that it is not readable.

    A call in the midst of prose is found where its name is in capitals, as agents that think aloud
    write it; it is not readable, since there is more in the text.
    """
    begin = _BEGIN.match(text)
    alone = begin is not None
    if begin is None:
        begin = _AMIDST.search(text)
    if begin is None:
        return ActionCall("", {}, readable=False)
    name, rest = begin.group(1), text[begin.end() :].rstrip()
    end = rest.rfind(")")
    if end < 0:
        return ActionCall(name, {}, readable=False)
    alone = alone and end == len(rest) - 1
    values = _values(rest[:end], signatures.get(name, ()))
    return ActionCall(name, values or {}, readable=alone and values is not None)


def unquoted(value: str) -> str:
    r"""A value without the quotes around it, and with what ``\n`` and the like stand for."""
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    if "\\" not in text:
        return text
    # Halves of a surrogate pair that were spelled out one by one belong together.
    plain = _ESCAPE.sub(_meant, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _meant(match: re.Match[str]) -> str:
    found = match.group(1)
    return chr(int(found[1:], 16)) if found[0] in "ux" else _PLAIN.get(found, found)


def _values(body: str, forms: Sequence[Sequence[str]]) -> dict[str, str] | None:
    for form in forms:
        found = _by_form(body, form)
        if found is not None:
            return found
    return {} if not body.strip() else _by_look(body)


def _by_form(body: str, form: Sequence[str]) -> dict[str, str] | None:
    """Values of known parameters; of a key that occurs twice, the last one counts, and what is
    before it belongs to the value before.
    """
    if not form:
        return None if body.strip() else {}
    values: dict[str, str] = {}
    for key in reversed(form[1:]):
        mark = f", {key}="
        at = body.rfind(mark)
        if at < 0:
            return None
        values[key] = body[at + len(mark) :]
        body = body[:at]
    mark = f"{form[0]}="
    if not body.startswith(mark):
        return None
    values[form[0]] = body[len(mark) :]
    return {key: values[key] for key in form}


def _by_look(body: str) -> dict[str, str] | None:
    values: dict[str, str] = {}
    at = 0
    while at < len(body):
        key = _KEY.match(body, at)
        if key is None or key.group(1) in values:
            return None
        end = _end_of_value(body, key.end())
        values[key.group(1)] = body[key.end() : end].strip()
        at = end + 1
    return values


def _end_of_value(body: str, start: int) -> int:
    """Where the next key begins, outside of quotes and brackets; else the end."""
    closing: list[str] = []
    quote = ""
    begun = False
    at = start
    while at < len(body):
        character = body[at]
        if character == "\\":
            at += 1
        elif quote:
            if character == quote:
                quote = ""
        elif character in "\"'" and not begun:
            quote = character  # one in the midst of a value is an apostrophe
        elif character in _OPENING:
            closing.append(_OPENING[character])
        elif closing and character == closing[-1]:
            closing.pop()
        elif character == "," and not closing and _NEXT.match(body, at):
            return at
        begun = begun or not character.isspace()
        at += 1
    if quote or closing:  # they were no quotes or brackets after all
        found = _NEXT.search(body, start)
        return found.start() if found else len(body)
    return len(body)
