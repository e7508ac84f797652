"""A mapping: where sessions, messages, calls, outputs and times are, in JSONPath (RFC 9535)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import msgspec

from ....engine.errors import InvalidInput, MissingExtra
from ....engine.events import JSON

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

__all__ = (
    "CallMapping",
    "MappingSpec",
    "MessageMapping",
    "OutputMapping",
    "SessionMapping",
    "Side",
    "all_found",
    "found",
    "load_mapping",
    "query",
)

Side: TypeAlias = Literal["human", "agent", "system", "result", "skip"]
"""What a role in the source is: a person, an agent, the environment, the result of a call, or
nothing that is imported."""


class SessionMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where sessions are; all but ``each`` looked up in a session.

    Attributes:
        each: the sessions in a document; the document itself unless said. Lines, and the elements of
            an array, are documents of their own.
        id: the session's own id.
        task: name of the task.
        instance: of the task.
        agent: who the agent was, to group by.
        model: that the agent ran on.
        utility: a score in [0, 1].
    """

    each: str = "$"
    id: str | None = None
    task: str | None = None
    instance: str | None = None
    agent: str | None = None
    model: str | None = None
    utility: str | None = None


class MessageMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where messages are; all but ``each`` looked up in a message.

    Attributes:
        each: the messages in a session, in order.
        role: who speaks, one of the names in ``roles``.
        text: what is said.
        name: of the speaker, where several have one role.
        time: ISO 8601, or seconds since the epoch.
        call: for a result, the id of its call.
        input_tokens: of the model call behind the message.
        output_tokens: likewise.
    """

    each: str
    role: str
    text: str
    name: str | None = None
    time: str | None = None
    call: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None


class CallMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where tool calls are; all but ``each`` looked up in a call.

    Attributes:
        each: the calls in a message, in order.
        name: of the tool.
        id: of the call.
        arguments: an object, or JSON in a text.
        result: what the tool gave.
        error: why it failed; no error where it is missing, null, false or empty.
    """

    each: str
    name: str
    id: str | None = None
    arguments: str | None = None
    result: str | None = None
    error: str | None = None


class OutputMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the shared output stands in a message, as it is after it.

    Attributes:
        content: text, or structure.
        media_type: of the content.
    """

    content: str
    media_type: str = "text/plain"


class MappingSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping.

    Attributes:
        session: where sessions are.
        message: where messages are in a session.
        roles: what each role is; a role that is not named is a problem.
        call: where calls are in a message; None for no calls.
        output: where the shared output is in a message; None for none.
    """

    message: MessageMapping
    roles: Mapping[str, Side]
    session: SessionMapping = SessionMapping()
    call: CallMapping | None = None
    output: OutputMapping | None = None


def load_mapping(path: Path) -> MappingSpec:
    """The mapping in a TOML file.

    Raises:
        InvalidInput: it cannot be read, is no mapping, or has a path that is none.
        MissingExtra: there is nothing to evaluate JSONPath with.
    """
    try:
        spec = msgspec.toml.decode(path.read_bytes(), type=MappingSpec)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is no mapping: {error}") from error
    for table, part in msgspec.structs.asdict(spec).items():
        if isinstance(part, msgspec.Struct):
            for name, held in msgspec.structs.asdict(part).items():
                if isinstance(held, str) and name != "media_type":
                    query(held, f"{path}: {table}.{name}")
    return spec


def query(text: str, where: str) -> JSONPathQuery:
    """A JSONPath, compiled.

    Raises:
        InvalidInput: it is none.
        MissingExtra: there is nothing to evaluate it with.
    """
    try:
        import jsonpath_rfc9535
    except ModuleNotFoundError as error:
        raise MissingExtra("mapping", "a mapping") from error
    try:
        return jsonpath_rfc9535.compile(text)
    except jsonpath_rfc9535.JSONPathError as error:
        raise InvalidInput(f"{where}: {text!r} is no JSONPath: {error}") from error


def found(path: JSONPathQuery | None, value: JSON) -> JSON:
    """The first value that a path finds; None where it finds none."""
    return next(iter(all_found(path, value)), None) if path is not None else None


def all_found(path: JSONPathQuery | None, value: JSON) -> list[JSON]:
    """All values that a path finds, in order.

    Raises:
        InvalidInput: it cannot be followed in this value.
    """
    if path is None or not isinstance(value, (dict, list)):
        return [value] if path is not None and str(path) == "$" else []
    from jsonpath_rfc9535 import JSONPathError

    try:
        return [cast("JSON", node.value) for node in path.find(value)]
    except JSONPathError as error:
        raise InvalidInput(f"{str(path)!r} cannot be followed: {error}") from error
