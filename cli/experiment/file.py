"""Reads an experiment from a file in TOML. Errors name the file, the key and the value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import msgspec

from ...engine.errors import InvalidInput
from .spec import Experiment, ModelTable, key_of

__all__ = ("read_experiment",)

T = TypeVar("T", bound=msgspec.Struct)

_MODELS = "model"
_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "a text",
}
_LONGEST = 60


def read_experiment(path: str) -> Experiment:
    """The experiment in a file.

    Raises:
        InvalidInput: there is no such file, it is no TOML, or it has an unknown key or a value of
            the wrong type.
    """
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is no TOML: {error}") from error
    try:
        return _read((), content, Experiment)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _read(at: tuple[str, ...], given: object, kind: type[T]) -> T:
    """A table of the file, or the whole file."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{key_of(*at)} = {_shown(given)}: this is a table")
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in fields:
            raise InvalidInput(f"{key_of(*at, name)}: {_unknown(name, list(fields))}")
        values[name] = _value((*at, name), value, fields[name].type)
    missing = [name for name, field in fields.items() if field.required and name not in values]
    if missing:
        raise InvalidInput(f"{key_of(*at, missing[0])} is missing")
    return kind(**values)


def _value(at: tuple[str, ...], value: object, kind: object) -> object:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _read(at, value, kind)
    if at == (_MODELS,) and isinstance(value, Mapping):
        return {name: _read((*at, name), table, ModelTable) for name, table in value.items()}
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{key_of(*at)} = {_shown(value)}: {_reworded(str(error))}") from None


def _unknown(name: str, known: list[str]) -> str:
    """Why a key is refused. Its value is not shown: it may be a secret that does not belong there."""
    if name == "api_key":
        return "keys are read from the environment only"
    close = get_close_matches(name, known, n=1)
    return f"there is no such key; {'did you mean' if close else 'there are:'} " + (
        f"{close[0]}?" if close else ", ".join(known)
    )


def _shown(value: object) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _reworded(message: str) -> str:
    """An error message of msgspec, in the terms of TOML."""
    found = _EXPECTED.match(message)
    if found is None:
        return message
    expected, got = (
        [_WORDS.get(word, word) for word in words.split(" | ") if word != "null"]
        for words in found.groups()
    )
    inside = " in it" if "$[" in message else ""
    return f"{' or '.join(expected)} is expected, and {' or '.join(got)} is{inside or ' given'}"
