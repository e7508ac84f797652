"""Files of settings, in TOML: read within a budget, and refused in one sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from .budget import Budget
from .errors import InvalidInput

__all__ = ("mismatch", "read_settings", "settings_in", "settings_text")

_BUDGET: Final = Budget(size=1 << 20, depth=32)
_LONGEST: Final = 1000  # characters of a number or a bare key; Python refuses longer numbers
_PHRASES: Final = (
    (re.compile(r"Object contains unknown field `(.+?)`"), "unknown key {0!r}"),
    (re.compile(r"Object missing required field `(.+?)`"), "the key {0!r} is missing"),
    (re.compile(r"Invalid enum value (.+)"), "unknown value {0}"),
)
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`| (.+))")
_TYPES: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "a string",
}
_TOKEN: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|[\[\]{}.=,\n]"
    r"|[\w+-]++",
    re.DOTALL,
)


def read_settings(path: str | Path) -> dict[str, Any]:
    """The settings in a file.

    Raises:
        InvalidInput: it cannot be read, is not TOML, or exceeds the limits of a file of settings.
    """
    return settings_in(settings_text(path), str(path))


def settings_text(path: str | Path) -> str:
    """The text of a file of settings.

    Raises:
        InvalidInput: it cannot be read, is not UTF-8, or is longer than 1 MiB.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_BUDGET.size + 1)  # some files, such as /dev/zero, never end
        _BUDGET.check_size(len(data))
        return data.decode()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise InvalidInput(f"cannot read {path}: it is not UTF-8") from None
    except InvalidInput:
        raise InvalidInput(f"{path} is longer than {_BUDGET.size:,} bytes") from None


def settings_in(text: str, name: str) -> dict[str, Any]:
    """The settings in a text.

    Args:
        text: in TOML.
        name: the name of its file, for messages.

    Raises:
        InvalidInput: it is not TOML, or exceeds the limits.
    """
    _check(text, name)
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{name} is not TOML: {error}") from error


def mismatch(error: msgspec.ValidationError, *, within: bool = True) -> str:
    """Why settings do not fit, in the terms of TOML: ``session.id: expected a string, got a number``.

    Args:
        error: the error of the conversion.
        within: put the key before it, if it is below the settings that were converted.
    """
    said, _, path = str(error).partition(" - at `")
    where = path.rstrip("`").removeprefix("$").lstrip(".")
    for pattern, phrase in _PHRASES:
        if (found := pattern.fullmatch(said)) is not None:
            said = phrase.format(found[1])
    if (found := _EXPECTED.fullmatch(said)) is not None:
        kind, got, bound = found.groups()
        said = f"expected {_named(kind)}" + (f", got {_named(got)}" if got else f" {bound}")
    return f"{where}: {said}" if where and within else said


def _named(types: str) -> str:
    """Msgspec's names of types, in words."""
    return " or ".join(_TYPES.get(one, one) for one in types.split(" | ") if one != "null")


def _check(text: str, name: str) -> None:
    """Bounds levels and names before the text is parsed.

    The parser recurses into lists, takes time by the square of the parts of a dotted key, and
    refuses a long number with an error that is not of TOML.
    """
    levels = dots = 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "[{":
            levels += 1
        elif token in "]}":
            levels = max(0, levels - 1)
        elif token == ".":
            dots += 1
        elif token in "=,\n":
            dots = 0
        elif len(token) > _LONGEST and token[0] not in "\"'#":
            line = text.count("\n", 0, found.start()) + 1
            raise InvalidInput(
                f"{name}, line {line}: a number or a key has more than {_LONGEST:,} characters"
            )
        if levels + dots > _BUDGET.depth:
            line = text.count("\n", 0, found.start()) + 1
            raise InvalidInput(f"{name}, line {line}: it nests deeper than {_BUDGET.depth} levels")
