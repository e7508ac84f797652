"""Regular expressions that a user writes: those that could take forever are refused.

A repeated group that can match one text in several ways, such as ``(a+)+``, makes the search try each
combination of them: the time doubles with each character of a text. Such a text stops the program,
since nothing interrupts the search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Final, Protocol, TypeAlias, cast

from .errors import InvalidInput

__all__ = ("compiled",)

_MOST: Final = 100_000.0
"""Ways in which a repeated group may match one text."""

_MANY: Final = 300
"""What counts for a repetition without an end: two of them in a row are the most that pass."""

_ENOUGH: Final = 1e6

_REPEATED: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT"})  # and possessive ones try no second way

_CATEGORIES: Final = {
    f"CATEGORY_{name}{kind}": rf"\{letter.upper() if name else letter}"
    for kind, letter in (("WORD", "w"), ("DIGIT", "d"), ("SPACE", "s"))
    for name in ("", "NOT_")
}

Node: TypeAlias = "tuple[object, object]"
"""A part of a pattern as the parser reads it: an operation, and its arguments."""


class _Parser(Protocol):
    def parse(self, pattern: str) -> Iterable[Node]: ...


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression, compiled.

    The time that it takes may still grow with a power of the length of a text.

    Raises:
        InvalidInput: it is not a regular expression, or could take forever.
    """
    try:
        found = re.compile(pattern)
        nested = _is_nested(_parser().parse(pattern))
    except (re.error, RecursionError) as error:
        raise InvalidInput(f"{pattern!r} is not valid: {error}") from None
    if nested:
        raise InvalidInput(
            f"{pattern!r} repeats a group that can match one text in several ways, which could take "
            "forever; make what varies within the group possessive: a++ for a+, (?>a|b) for (?:a|b)"
        )
    return found


def _parser() -> _Parser:
    # The parser of ``re`` is the only one that surely reads a pattern as ``re`` does.
    return cast(_Parser, import_module("re._parser"))


def _is_nested(nodes: Iterable[Node]) -> bool:
    """Whether a repeated group can match one text in too many ways."""
    for node in nodes:
        inner = _within(node)
        if str(node[0]) in _REPEATED:
            _, most, body = cast("tuple[int, int, Iterable[Node]]", node[1])
            if _power(_ways(body), most) > _MOST and not _is_divided(list(body)):
                return True
        if any(map(_is_nested, inner)):
            return True
    return False


def _is_divided(body: Sequence[Node]) -> bool:
    """Whether a character that occurs only once in a repeated group marks the beginning of each turn, as
    the hyphen in ``(?:-[a-z]+)*``: then there is one way only.
    """
    while len(body) == 1 and str(body[0][0]) == "SUBPATTERN":
        body = list(_within(body[0])[0])
    varied = [node for node in body if str(node[0]) in _REPEATED]
    fixed = [cast("int", node[1]) for node in body if str(node[0]) == "LITERAL"]
    if len(varied) != 1 or len(varied) + len(fixed) < len(body):
        return False
    inner = list(_within(varied[0])[0])
    return len(inner) == 1 and any(not _matches(inner[0], chr(code)) for code in fixed)


def _matches(node: Node, character: str) -> bool:
    """Whether a part that is one character may be this one; also if it is not known."""
    name, argument = str(node[0]), node[1]
    either = (
        {ord(character.lower()), ord(character.upper())} if len(character.upper()) == 1 else set()
    )
    if name == "LITERAL":
        return argument in either or not either
    if name == "NOT_LITERAL":
        return argument not in either or not either
    if name == "IN":
        parts = cast("list[Node]", argument)
        if str(parts[0][0]) == "NEGATE":
            return not any(_matches(part, character) for part in parts[1:])
        return any(_matches(part, character) for part in parts)
    if name == "RANGE":
        first, last = cast("tuple[int, int]", argument)
        return any(first <= code <= last for code in either) or not either
    if name == "CATEGORY" and (letter := _CATEGORIES.get(str(argument))):
        return re.match(letter, character) is not None
    return True


def _ways(nodes: Iterable[Node]) -> float:
    """In how many ways a part can match one text, at most. It stops counting at ``_ENOUGH``."""
    found = 1.0
    for node in nodes:
        name = str(node[0])
        if name in _REPEATED:
            least, most, body = cast("tuple[int, int, Iterable[Node]]", node[1])
            spans = min(int(most), int(least) + _MANY - 1) - int(least) + 1
            found *= spans * _power(_ways(body), most)
        elif name in ("BRANCH", "GROUPREF_EXISTS"):
            found *= sum(map(_ways, _within(node)))
        elif name == "SUBPATTERN":
            found *= _ways(_within(node)[0])
        found = min(found, _ENOUGH)
    return found


def _power(ways: float, times: int) -> float:
    return min(ways ** min(int(times), 40), _ENOUGH)  # 2 to the 40th is too many already


def _within(node: Node) -> Sequence[Iterable[Node]]:
    """The parts that a part consists of."""
    name, arguments = str(node[0]), node[1]
    if name == "BRANCH":
        return cast("tuple[None, list[Iterable[Node]]]", arguments)[1]
    if name == "ATOMIC_GROUP":
        return [cast("Iterable[Node]", arguments)]
    if name == "GROUPREF_EXISTS":
        _, one, other = cast("tuple[int, Iterable[Node], Iterable[Node] | None]", arguments)
        return [one, other or ()]
    if name in _REPEATED or name in ("POSSESSIVE_REPEAT", "SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return [cast("tuple[Iterable[Node], ...]", arguments)[-1]]
    return ()
