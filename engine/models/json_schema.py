"""Checks values against the part of JSON Schema that describes an action's arguments.

Understood are ``type``, ``properties``, ``required``, ``additionalProperties``, ``items``, ``enum``,
``const``, ``anyOf``, ``oneOf``, ``minimum``, ``maximum``, ``minLength``, ``maxLength``, ``minItems``
and ``maxItems``; anything else is left to the action itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..events import JSON

__all__ = ("describe_schema", "problems")

_SHOWN = 60


def problems(value: JSON, schema: Mapping[str, JSON], at: str = "") -> Iterator[str]:
    """What is wrong with a value, one sentence each, in words that tell how to put it right.

    Args:
        value: as JSON was decoded.
        schema: what it should be.
        at: where the value stands, e.g. ``city``; empty for the whole.
    """
    place = at or "the value"
    choices = _options(schema)
    if choices:
        if not any(not list(problems(value, option, at)) for option in choices):
            yield f"{place} has to be {describe_schema(schema)}, not {_short(value)}"
        return
    kinds = _kinds(schema)
    if kinds and not any(_TYPES[kind](value) for kind in kinds if kind in _TYPES):
        yield f"{place} has to be {describe_schema(schema)}, not {_short(value)}"
        return
    allowed = _allowed(schema)
    if allowed is not None and not any(_same(value, one) for one in allowed):
        yield f"{place} has to be {describe_schema(schema)}, not {_short(value)}"
        return
    if isinstance(value, Mapping):
        yield from _of_object(value, schema, at)
    elif isinstance(value, str):
        yield from _of_size(len(value), schema, place, "Length", "characters")
    elif isinstance(value, Sequence):
        yield from _of_size(len(value), schema, place, "Items", "entries")
        items = schema.get("items")
        if isinstance(items, Mapping):
            for index, item in enumerate(value):
                yield from problems(item, items, f"{at}[{index}]")
    elif _is_number(value):
        yield from _of_number(value, schema, place)


def describe_schema(schema: Mapping[str, JSON]) -> str:
    """What a schema asks for, in a few words."""
    choices = _options(schema)
    if choices:
        return " or ".join(describe_schema(option) for option in choices)
    allowed = _allowed(schema)
    if allowed is not None:
        return " or ".join(_short(one) for one in allowed)
    kinds = [kind for kind in _kinds(schema) if kind in _NAMES]
    items = schema.get("items")
    if kinds == ["array"] and isinstance(items, Mapping):
        return f"a list, each entry {describe_schema(items)}"
    return " or ".join(_NAMES[kind] for kind in kinds) or "any value"


def _of_object(value: Mapping[str, JSON], schema: Mapping[str, JSON], at: str) -> Iterator[str]:
    known = schema.get("properties")
    properties = known if isinstance(known, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in value:
            yield f"{_join(at, str(name))} is missing"
    rest = schema.get("additionalProperties")
    for name, part in value.items():
        place = _join(at, name)
        part_schema = properties.get(name)
        if isinstance(part_schema, Mapping):
            yield from problems(part, part_schema, place)
        elif name in properties:
            continue
        elif rest is False:
            known_names = ", ".join(properties) or "none"
            yield f"{place} is unknown; there are: {known_names}"
        elif isinstance(rest, Mapping):
            yield from problems(part, rest, place)


def _of_size(
    size: int, schema: Mapping[str, JSON], place: str, what: str, unit: str
) -> Iterator[str]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if isinstance(least, int) and size < least:
        yield f"{place} needs at least {least} {unit}, and has {size}"
    if isinstance(most, int) and size > most:
        yield f"{place} may have at most {most} {unit}, and has {size}"


def _of_number(value: JSON, schema: Mapping[str, JSON], place: str) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if not isinstance(value, int | float):
        return
    if isinstance(least, int | float) and value < least:
        yield f"{place} has to be at least {least}, not {value}"
    if isinstance(most, int | float) and value > most:
        yield f"{place} may be at most {most}, not {value}"


def _options(schema: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list | tuple):
            return [option for option in options if isinstance(option, Mapping)]
    return []


def _allowed(schema: Mapping[str, JSON]) -> Sequence[JSON] | None:
    if "const" in schema:
        return (schema["const"],)
    values = schema.get("enum")
    return values if isinstance(values, list | tuple) else None


def _kinds(schema: Mapping[str, JSON]) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    return [str(one) for one in kind] if isinstance(kind, list | tuple) else []


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: JSON) -> bool:
    return _is_number(value) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )


_TYPES: Mapping[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": _is_whole,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
}
_NAMES: Mapping[str, str] = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}


def _same(one: JSON, other: JSON) -> bool:
    """Whether two values are the same in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _short(value: JSON) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
