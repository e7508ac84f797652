"""Phrases errors in the arguments of a command.

typer, Click and pydantic each phrase their errors in their own way. Duolog names the option, its
expectation, and the value that it got.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ("expected", "in_our_words")

_EXPECTED: Final = (
    (re.compile(r"greater than or equal to (\S+)"), r"at least \1"),
    (re.compile(r"greater than (\S+)"), r"more than \1"),
    (re.compile(r"less than or equal to (\S+)"), r"at most \1"),
    (re.compile(r"less than (\S+)"), r"less than \1"),
    (re.compile(r"a valid integer.*"), "a whole number"),
    (re.compile(r"a valid number.*"), "a number"),
    (re.compile(r"a finite number.*"), "a finite number"),
)
_PATH: Final = re.compile(r"(?:\w+ )?('.*') (does not exist|is a file|is a directory)\.?")
_SHOULD: Final = re.compile(r"Input should be (.+)", re.DOTALL)
_ONE_OF: Final = re.compile(r"(?P<value>'.*') is not one of (?P<known>'.+')\.?", re.DOTALL)


def expected(message: str, value: object) -> str:
    """An option's expectation and the value that it got, from typer's message.

    Args:
        message: typer's message, or pydantic's.
        value: the value that was given.
    """
    message = message.removeprefix("Value error, ")
    if (should := _SHOULD.fullmatch(message)) is not None:
        for pattern, text in _EXPECTED:
            if (found := pattern.fullmatch(should[1])) is not None:
                return f"expects {found.expand(text)}, got {value!r}"
    if (found := _PATH.fullmatch(message)) is not None:
        return f"{found[1]} {found[2]}"
    if (one := _ONE_OF.fullmatch(message)) is not None:
        return f"expects {_alternatives(one['known'])}, got {one['value']}"
    return message


def in_our_words(message: str) -> str:
    """An error in the arguments of a command, phrased as Duolog phrases its own.

    Args:
        message: what typer prints.
    """
    message = message.rstrip(".").replace("Value error, ", "")
    for pattern, say in _SENTENCES:
        if (found := pattern.fullmatch(message)) is not None:
            return say(found)
    return message


def _alternatives(listed: str) -> str:
    """``'a', 'b', 'c'`` as ``a, b or c``; options stay as they are."""
    from ..engine.text import one_of  # imported only on an error

    return one_of([name.strip().strip("'") for name in listed.split(",")])


def _of_value(found: re.Match[str]) -> str:
    said = found["said"]
    joint = " " if said.startswith("expects ") else ": "
    return f"{found['option'].replace(chr(39), '')}{joint}{said}"


def _unknown(found: re.Match[str]) -> str:
    near = found["near"] or found["many"]
    hint = f"; did you mean {_alternatives(near)}?" if near else ""
    return f"unknown {found['what']} {found['name']}{hint}"


_Say = Callable[[re.Match[str]], str]
_SENTENCES: Final[tuple[tuple[re.Pattern[str], _Say], ...]] = (
    (re.compile(r"Invalid value for (?P<option>'.+?'): (?P<said>.+)", re.DOTALL), _of_value),
    (
        re.compile(
            r"No such (?P<what>command|option):? (?P<name>\S+?)\.?"
            r"(?: Did you mean:? (?P<near>[^?]+)\?| \(Possible options: (?P<many>.+)\))?"
        ),
        _unknown,
    ),
    (
        re.compile(r"Option '(?P<option>.+)' requires an argument"),
        lambda found: f"{found['option']} needs a value",
    ),
    (
        re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<more>.+)\)", re.DOTALL),
        lambda found: f"unexpected argument {found['more']!r}",
    ),
    (
        re.compile(r"Missing (?P<what>argument|option) '(?P<name>.+)'"),
        lambda found: f"missing {found['what']} {found['name']}",
    ),
)
