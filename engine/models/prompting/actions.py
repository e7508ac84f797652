"""The actions that a model-backed actor may take in one step, with one validation for all formats.

Models that can call tools get the actions as tools; others write them as text (ReAct: a thought,
then ``Action:`` and JSON). Both formats pass the same checks. Prose that only mentions an action
does not count as one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, final

from ...errors import InvalidInput, malformed
from ...events import JSON
from ...session.decisions import Act, Approve, Finish, Note, Say, Submit, Verb, Wait
from ...session.environment import ActionSpec
from ..protocol import Tool, ToolCall
from .json_schema import JsonSchema, compile_schema, describe_schema

__all__ = (
    "ActionSpace",
    "OfferedAction",
    "approve_action",
    "finish_action",
    "message_action",
    "note_action",
    "submit_action",
    "task_actions",
    "wait_action",
)

_LAST = ("wait", "finish")
"""Actions after which nothing can follow in the same step."""


@final
class OfferedAction(NamedTuple):
    """An action that an actor is offered.

    Attributes:
        spec: its name, description and arguments.
        verb: makes the verb, given arguments that fit.
    """

    spec: ActionSpec
    verb: Callable[[Mapping[str, JSON]], Verb]


@final
class ActionSpace:
    """All that an actor may do in one step.

    Args:
        actions: the actions that it may take.

    Raises:
        InvalidInput: two of one name, or one whose arguments have an invalid JSON Schema.
    """

    def __init__(self, actions: Iterable[OfferedAction]) -> None:
        self._actions: dict[str, OfferedAction] = {}
        self._schemas: dict[str, JsonSchema] = {}
        for action in actions:
            if action.spec.name in self._actions:
                raise InvalidInput(
                    f"there are two actions named {action.spec.name!r}; a task's actions need other "
                    "names than those that every actor has"
                )
            self._actions[action.spec.name] = action
            try:
                self._schemas[action.spec.name] = compile_schema(action.spec.parameters)
            except InvalidInput as error:
                raise InvalidInput(f"parameters of action {action.spec.name!r}: {error}") from error

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The actions as tools to call."""
        return tuple(
            Tool(
                name=action.spec.name,
                description=action.spec.description,
                parameters=action.spec.parameters or {"type": "object", "properties": {}},
            )
            for action in self._actions.values()
        )

    @property
    def description(self) -> str:
        """The actions in words, with their arguments, for models that write them as text."""
        return "\n".join(_described(action.spec) for action in self._actions.values())

    def read_calls(self, calls: Sequence[ToolCall]) -> tuple[Verb, ...]:
        """Decodes tool calls into verbs.

        Raises:
            InvalidInput: there is none, or one of them does not fit; then none of them counts.
        """
        if not calls:
            raise InvalidInput("no action was called: call one of the tools")
        return self._verbs([(call.name, _object(call.name, call.arguments)) for call in calls])

    def read_text(self, text: str) -> tuple[Verb, ...]:
        """Decodes a text into verbs: the JSON behind ``Action:`` at the start of a line.

        Raises:
            InvalidInput: there is no such line, more than one, or it cannot be read; then nothing
                in the text counts.
        """
        return self._verbs([_named(item) for item in _items(text)])

    def _verbs(self, taken: Sequence[tuple[str, Mapping[str, JSON]]]) -> tuple[Verb, ...]:
        for name, _ in taken[:-1]:
            if name in _LAST:
                raise InvalidInput(f"{name!r} comes last: nothing can follow it in the same step")
        return tuple(self._verb(name, arguments) for name, arguments in taken)

    def _verb(self, name: str, arguments: Mapping[str, JSON]) -> Verb:
        action = self._actions.get(name)
        if action is None:
            raise InvalidInput(f"unknown action {name!r}; choose from {', '.join(self._actions)}")
        wrong = self._schemas[name].errors(arguments)
        if wrong:
            raise InvalidInput(f"{name} was called wrongly: {'; '.join(wrong)}")
        return action.verb({key: _loggable(value) for key, value in arguments.items()})


# --- what every actor may do ---------------------------------------------------------------------


def task_actions(specs: Mapping[str, ActionSpec]) -> tuple[OfferedAction, ...]:
    """The actions of a task's environment."""
    return tuple(OfferedAction(spec, _acting(spec.name)) for spec in specs.values())


def submit_action(
    schema: Mapping[str, JSON], media_type: str, write: Callable[[JSON], JSON] | None = None
) -> OfferedAction:
    """Submits a new version of the shared output.

    Args:
        schema: the schema of its content; or of its parts, if these are given.
        media_type: the media type of its content.
        write: makes the content of the parts.
    """
    # References in the schema start at its root, so their targets move to the new root.
    moved = {key: schema[key] for key in _ROOT_KEYWORDS if key in schema}
    content = {key: value for key, value in schema.items() if key not in moved}
    about = "" if write is None else f" {content.get('description', '')}"
    content["description"] = f"The whole of it, not a part.{about}".strip()
    parameters = {**_parameters(content=content), **moved}
    what = "Put up a new version of the shared output. It takes the place of the one before."
    if write is not None:
        what += " Give its parts: its text is written from them."

    def submits(given: Mapping[str, JSON]) -> Verb:
        content = given["content"]
        return Submit(content if write is None else write(content), media_type)

    return OfferedAction(
        ActionSpec(name="submit", description=what, parameters=parameters), submits
    )


def message_action(teammates: str) -> OfferedAction:
    """The action that sends a message to the others; its description names them."""
    what = f"Send a message to {teammates}."
    return OfferedAction(
        ActionSpec(name="message", description=what, parameters=_parameters(text=_TEXT)),
        lambda given: Say(str(given["text"])),
    )


def note_action() -> OfferedAction:
    """Writes into the actor's own memory."""
    what = "Write something into your scratchpad, to remember it. Nobody else sees it."
    return OfferedAction(
        ActionSpec(name="note", description=what, parameters=_parameters(text=_TEXT)),
        lambda given: Note(str(given["text"])),
    )


def wait_action() -> OfferedAction:
    """Leaves the turn to the others."""
    what = "Do nothing until somebody else has done or said something."
    return OfferedAction(
        ActionSpec(name="wait", description=what, parameters=_NOTHING), lambda given: Wait()
    )


def finish_action() -> OfferedAction:
    """Ends the session."""
    what = "End the work: the task is done, and the shared output is final."
    return OfferedAction(
        ActionSpec(name="finish", description=what, parameters=_NOTHING), lambda given: Finish()
    )


def approve_action(asked: int) -> OfferedAction:
    """Gives or denies the approval that was asked for at a trace version."""
    parameters = _parameters(
        approved={"type": "boolean", "description": "Whether you allow it."},
        comment={"type": "string", "description": "What you say to it; may be empty."},
    )
    what = f"Allow or forbid what you were asked for in [{asked}]."
    return OfferedAction(
        ActionSpec(name="approve", description=what, parameters=parameters),
        lambda given: Approve(asked, given["approved"] is True, str(given["comment"])),
    )


_ROOT_KEYWORDS = ("$schema", "$defs", "definitions")
_TEXT: Mapping[str, JSON] = {"type": "string", "minLength": 1, "description": "What to write."}
_NOTHING: Mapping[str, JSON] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


def _parameters(**properties: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _acting(name: str) -> Callable[[Mapping[str, JSON]], Verb]:
    return lambda given: Act(name, given)


def _described(spec: ActionSpec) -> str:
    """One action in words: a line, and a line for each argument."""
    lines = [f"- {spec.name}: {spec.description}"]
    properties = spec.parameters.get("properties")
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(schema, Mapping):
            continue
        about = schema.get("description")
        optional = "" if name in needed else ", may be left out"
        lines.append(
            f"    {name} ({describe_schema(schema, spec.parameters)}{optional}){f': {about}' * bool(about)}"
        )
    if len(lines) == 1:
        lines.append("    (takes no arguments)")
    return "\n".join(lines)


# --- reading -------------------------------------------------------------------------------------

_ACTION = re.compile(r"^[ \t]*[*_#]*action[*_]*[ \t]*:[*_]*[ \t]*", re.IGNORECASE | re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*[*_#]*observation[*_]*[ \t]*:", re.IGNORECASE | re.MULTILINE)
_OPENING = re.compile(r"\s*(?:```[a-z]*\s*|`)?")
_HOW = (
    'write one line that begins with "Action:", followed by JSON such as '
    'Action: {"name": "...", "arguments": {...}}'
)
_MOST = 2**63  # the bound for integers in a log


def _refuse(constant: str) -> JSON:
    raise InvalidInput(f"{constant} is not a JSON value")


# Models break lines inside texts, which is not strict JSON.
_decoder = json.JSONDecoder(strict=False, parse_constant=_refuse)


def _items(text: str) -> list[JSON]:
    """The JSON behind ``Action:``: one action, or a list of several.

    An observation that the model invents after it does not belong to the action.
    """
    found = _ACTION.search(text)
    if found is None:
        raise InvalidInput(f"this contains no action: {_HOW}")
    opening = _OPENING.match(text, found.end())
    start = opening.end() if opening else found.end()
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits
        why = error.msg if isinstance(error, json.JSONDecodeError) else malformed(error)
        raise InvalidInput(f"the text after Action: is not JSON ({why}): {_HOW}") from None
    rest = text[end:]
    made_up = _OBSERVATION.search(rest)
    rest = rest[: made_up.start()] if made_up else rest
    if rest.split("\n", 1)[0].strip("`*_ \t\r."):
        raise InvalidInput("nothing may follow the JSON of an action on the same line")
    if _ACTION.search(rest):
        raise InvalidInput("there is more than one Action: choose one, or write them as one list")
    items: list[JSON] = list(value) if isinstance(value, list) else [value]
    if not items:
        raise InvalidInput(f"the list of actions is empty: {_HOW}")
    return items


def _named(item: JSON) -> tuple[str, Mapping[str, JSON]]:
    """Name and arguments of an action that was written as JSON."""
    if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
        raise InvalidInput(f"an action is an object with a name and arguments: {_HOW}")
    strange = [key for key in item if key not in ("name", "arguments")]
    if strange:
        raise InvalidInput(
            f"an action has a name and arguments, and no {strange[0]!r}: arguments go into "
            '"arguments"'
        )
    arguments = item.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise InvalidInput(f'"arguments" of {item["name"]!r} must be an object')
    return str(item["name"]), arguments


def _object(name: str, arguments: str) -> Mapping[str, JSON]:
    """The arguments of a tool call."""
    if not arguments.strip():
        return {}
    try:
        value: JSON = _decoder.decode(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the arguments of {name!r} are not JSON: {malformed(error)}") from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"the arguments of {name!r} must be an object")
    return value


def _loggable(value: JSON) -> JSON:
    """A value as a log can hold it: half a surrogate pair is spelled out.

    Raises:
        InvalidInput: a number that is too large.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {str(_loggable(key)): _loggable(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [_loggable(part) for part in value]
    if isinstance(value, int) and not -_MOST <= value < _MOST:
        raise InvalidInput("a number in the arguments is too large")
    return value
