"""Checks values against JSON Schema, with the library ``jsonschema``.

The draft is the one that ``$schema`` names, 2020-12 by default. ``$ref`` can point within the
schema and to the published meta-schemas; nothing is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from ...errors import InvalidInput
from ...events import JSON

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator
    from referencing import Specification
    from referencing.jsonschema import Schema, SchemaRegistry

__all__ = ("JsonSchema", "compile_schema", "describe_schema", "load_library")

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_SIZES: Final = ("minLength", "maxLength", "minItems", "maxItems")
_CHOICES: Final = ("anyOf", "oneOf")
_ANY: Final = "any value"
_SHOWN: Final = 60  # characters of a value
_LONGEST: Final = 300  # characters of an error


def load_library() -> None:
    """Imports the libraries, which takes a while, before an event loop would wait for that."""
    import jsonpointer  # noqa: F401
    import jsonschema  # noqa: F401


def compile_schema(schema: Mapping[str, JSON]) -> JsonSchema:
    """A schema ready to check values; compiled once for all schemas that read the same.

    Raises:
        InvalidInput: it is not a valid schema of its draft, the draft is unknown, or it refers to
            something outside of itself.
    """
    try:
        return _compile(json.dumps(schema, default=_as_plain))
    except RecursionError:
        raise InvalidInput("the JSON Schema is nested too deeply") from None


@final
class JsonSchema:
    """A compiled schema; made by ``compile_schema``."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator

    def errors(self, value: JSON) -> list[str]:
        """The errors in a value, one line for each place, with the path, the value and the rule.

        Args:
            value: as decoded from JSON.

        Raises:
            InvalidInput: the value or the schema is nested too deeply.
        """
        from jsonschema.exceptions import best_match

        try:
            lines: dict[str, None] = {}
            for error in _chosen(self._validator.iter_errors(value)):
                tag = _wrong_tag(error)
                lines[tag or _line(best_match([error]) or error)] = None
            return list(lines)
        except RecursionError:
            raise InvalidInput("the value or the JSON Schema is nested too deeply") from None


def describe_schema(
    schema: Mapping[str, JSON], root: Mapping[str, JSON] | None = None, *, depth: int = 4
) -> str:
    """A short description of a schema, for prompts.

    Args:
        schema: the schema, or a part of one.
        root: the whole schema, in which references are resolved; ``schema`` itself by default.
        depth: how many levels of references and lists to follow.
    """
    whole = schema if root is None else root
    if not depth:
        return _ANY
    target = _referred(schema.get("$ref"), whole)
    if target is not None:
        return describe_schema(target, whole, depth=depth - 1)
    choices = _options(schema)
    if choices:
        return " or ".join(describe_schema(option, whole, depth=depth - 1) for option in choices)
    allowed = _allowed(schema)
    if allowed is not None:
        return " or ".join(_short(one) for one in allowed) or "nothing"
    kinds = [kind for kind in _kinds(schema) if kind in _NAMES]
    items = schema.get("items")
    if kinds == ["array"] and isinstance(items, Mapping):
        return f"a list, each entry {describe_schema(items, whole, depth=depth - 1)}"
    return " or ".join(_NAMES[kind] for kind in kinds) or _ANY


def _referred(reference: JSON, root: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """The schema that a JSON Pointer into the whole leads to; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    from jsonpointer import JsonPointer, JsonPointerException

    try:
        found = JsonPointer(reference[1:]).resolve(root, None)
    except JsonPointerException:
        return None
    return found if isinstance(found, Mapping) else None


@lru_cache(maxsize=256)
def _compile(text: str) -> JsonSchema:
    from jsonschema.validators import validator_for
    from referencing.jsonschema import UnknownDialect, specification_with

    schema = json.loads(text)
    draft = schema.get("$schema", _DRAFT)
    try:
        specification = specification_with(str(draft))
    except UnknownDialect:
        raise InvalidInput(f"{_short(draft)} is not a known draft of JSON Schema") from None
    kind = validator_for({"$schema": str(draft)})
    _check(schema, specification, kind)
    return JsonSchema(kind(schema, registry=_registry()))


def _registry() -> SchemaRegistry:
    """The published meta-schemas; the registry cannot fetch anything else."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    registry: SchemaRegistry = REGISTRY
    return registry


def _check(schema: Schema, specification: Specification[Schema], kind: type[Validator]) -> None:
    """Checks a schema, and everything that it refers to, against the meta-schema of its draft.

    Raises:
        InvalidInput: it is invalid, or a reference leads nowhere within it.
    """
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    root = specification.create_resource(schema)
    checked = set[int]()
    waiting = [(root, _registry().resolver_with_root(root), True)]
    while waiting:
        resource, resolver, stands_alone = waiting.pop()
        contents = resource.contents
        if id(contents) in checked:
            continue
        checked.add(id(contents))
        if stands_alone:  # the parts of a schema were checked with the whole
            try:
                kind.check_schema(contents)  # type: ignore[arg-type]
            except SchemaError as error:
                raise InvalidInput(f"not a valid JSON Schema: {_line(error)}") from None
        keywords = contents if isinstance(contents, Mapping) else {}
        for reference in (keywords[name] for name in _REFERENCES if name in keywords):
            try:
                found = resolver.lookup(reference)
            except Unresolvable:
                raise InvalidInput(
                    f"not a valid JSON Schema: the reference {_short(reference)} leads nowhere "
                    "within it, and nothing is fetched from elsewhere"
                ) from None
            target = specification.create_resource(found.contents)
            waiting.append((target, found.resolver, True))
        parts = resource.subresources()
        waiting += [(part, resolver.in_subresource(part), False) for part in parts]


def _chosen(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Errors, with those of a tagged union replaced by those of the member that the value's tag names."""
    for error in errors:
        name, members = _tags(error)
        value = error.instance
        member = members.get(str(value.get(name))) if isinstance(value, Mapping) else None
        options = _options(error.schema) if member and isinstance(error.schema, Mapping) else []
        own = [at for at, one in enumerate(options) if one.get("$ref") == member]
        if own:
            yield from _chosen(one for one in error.context or () if one.schema_path[0] == own[0])
        else:
            yield error


def _wrong_tag(error: ValidationError) -> str | None:
    """One line about a value that is of no member of a tagged union; None for other errors."""
    name, members = _tags(error)
    if not members:
        return None
    choices, place = ", ".join(members), _path(error.absolute_path)
    if not isinstance(error.instance, Mapping):
        return f"{place}: {_short(error.instance)} is not an object with {name!r}, one of {choices}"
    if name not in error.instance:
        return f"{place}: {name!r} is missing; choose from {choices}"
    return f"{place}.{name}: {_short(error.instance[name])} is unknown; choose from {choices}"


def _tags(error: ValidationError) -> tuple[str, Mapping[str, str]]:
    """The property that names the member of a tagged union, and the reference to each member; empty if it is not one."""
    schema = error.schema
    if error.validator not in _CHOICES or not isinstance(schema, Mapping):
        return "", {}
    found = schema.get("discriminator")
    if not isinstance(found, Mapping) or not isinstance(found.get("mapping"), Mapping):
        return "", {}
    return str(found.get("propertyName")), found["mapping"]


def _line(error: ValidationError | SchemaError) -> str:
    """One line about an error: its path, the value and the problem."""
    rule, value = error.validator, _short(error.instance)
    message = error.message.replace(repr(error.instance), value, 1)
    if rule == "const":
        message = f"{value} is not {_short(error.validator_value)}"
    elif rule in _SIZES:
        message = f"{message} ({rule} is {error.validator_value})"
    elif rule == "additionalProperties" and isinstance(error.schema, Mapping):
        known = ", ".join(error.schema.get("properties", {})) or "none"
        message = f"{message}; choose from {known}"
    elif rule in _CHOICES and isinstance(error.schema, Mapping):
        expected = describe_schema(error.schema)
        message = message if _ANY in expected else f"{value} is not {expected}"
    place = _path(error.absolute_path)
    return " ".join(_cut(f"{place}: {message}" if place else message, _LONGEST).split())


def _path(parts: Iterable[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def _as_plain(value: object) -> JSON:
    """A mapping of another type than ``dict`` as one, for the encoder."""
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidInput(f"a JSON Schema cannot hold a {type(value).__name__}")


def _options(schema: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    for key in _CHOICES:
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


_NAMES: Final[Mapping[str, str]] = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _cut(repr(value), _SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
