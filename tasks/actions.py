"""An environment over a table of typed actions.

Each action has a frozen struct for its arguments, from which its description, its JSON schema and its
validation come, and a function that computes what comes of it. A refusal is an `InvalidInput` whose
message says how to continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar, final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON, ActionResolved, Role
from ..engine.session.environment import Action, ActionSpec, Outcome
from ..engine.task import OutputForm
from ..engine.text import suggestion

__all__ = ("ActionTable", "TypedAction", "action", "arguments_of", "spec_of", "typed_output")

W = TypeVar("W")
A = TypeVar("A", bound=msgspec.Struct)

_SECONDS = 1.5
_BOTH: tuple[Role, ...] = ("human", "agent")


class TypedAction(msgspec.Struct, Generic[W], frozen=True, kw_only=True):
    """One kind of action; made by `action`.

    Attributes:
        spec: describes it to actors.
        perform: computes its result from the world and the arguments as given.
        seconds: how long it takes, from the arguments as they were given.
        effect: whether it changes the world.
    """

    spec: ActionSpec
    perform: Callable[[W, Mapping[str, JSON]], JSON]
    seconds: Callable[[Mapping[str, JSON]], float]
    effect: bool = False


def action(
    kind: type[A],
    do: Callable[[W, A], JSON],
    *,
    seconds: float | Callable[[A], float] = _SECONDS,
    roles: tuple[Role, ...] = _BOTH,
    effect: bool = False,
    consequential: bool = False,
) -> TypedAction[W]:
    """A typed action.

    Args:
        kind: the struct of its arguments. Its name is the action's, its docstring says what the action
            does, and ``msgspec.Meta`` describes a field.
        do: computes the observation. It raises `InvalidInput` to refuse, and says how to continue.
        seconds: how long it takes, in session time; may depend on the arguments.
        roles: the roles that may take it.
        effect: whether it changes the world. Such an action has to be deterministic: when a session is
            resumed it is applied again.
        consequential: see ``ActionSpec``.
    """

    def lasts(raw: Mapping[str, JSON]) -> float:
        return seconds(arguments_of(kind, raw)) if callable(seconds) else seconds

    return TypedAction(
        spec=spec_of(kind, repeatable=not effect, consequential=consequential, roles=roles),
        perform=lambda world, raw: do(world, arguments_of(kind, raw)),
        seconds=lasts,
        effect=effect,
    )


def spec_of(
    kind: type[msgspec.Struct],
    *,
    repeatable: bool = True,
    consequential: bool = False,
    roles: tuple[Role, ...] = _BOTH,
) -> ActionSpec:
    """The description of an action for actors, made from the struct of its arguments."""
    schema = _schema_of(kind)
    return ActionSpec(
        name=kind.__name__,
        description=str(schema.pop("description", "")),
        parameters=schema,
        repeatable=repeatable,
        consequential=consequential,
        roles=roles,
    )


def typed_output(kind: type[A], write: Callable[[A], str], read: Callable[[str], A]) -> OutputForm:
    """The parts of an output for models: a struct, and how it becomes the text and is read from it.

    Args:
        kind: the struct of its parts.
        write: the text of the parts; `InvalidInput` says what to fix.
        read: the parts of a text.
    """

    def written(parts: JSON) -> str:
        if not isinstance(parts, Mapping):
            raise InvalidInput(f"an output has the parts {', '.join(kind.__struct_fields__)}")
        try:
            found = msgspec.convert(parts, kind)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the output does not fit: {error}") from None
        return write(found)

    return OutputForm(
        schema=_schema_of(kind), write=written, read=lambda text: msgspec.to_builtins(read(text))
    )


def _schema_of(kind: type[msgspec.Struct]) -> dict[str, JSON]:
    """The JSON Schema of a struct, which can be read by itself."""
    _, components = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    schema = dict(components.pop(kind.__name__))
    if components:  # what its fields are made of
        schema["$defs"] = components
    return schema


def arguments_of(kind: type[A], raw: Mapping[str, JSON]) -> A:
    """The arguments of an action, as they were given.

    Raises:
        InvalidInput: they do not fit.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        takes = ", ".join(kind.__struct_fields__)
        raise InvalidInput(f"{kind.__name__}({takes}) was called wrongly: {error}") from None


@final
class ActionTable(Generic[W]):
    """The actions of a task.

    Args:
        actions: at least one; their names differ.

    Attributes:
        specs: the descriptions for actors, by name.
    """

    def __init__(self, actions: Iterable[TypedAction[W]]) -> None:
        self._actions = {one.spec.name: one for one in actions}
        self.specs: Mapping[str, ActionSpec] = {n: one.spec for n, one in self._actions.items()}

    def find(self, name: str, role: Role = "agent") -> TypedAction[W]:
        """Returns the named action if this role may take it.

        Raises:
            InvalidInput: there is no such action, or this role may not take it.
        """
        found = self._actions.get(name)
        if found is None:
            raise InvalidInput(f"unknown action {name!r}{suggestion(name, self._actions)}")
        if role not in found.spec.roles:
            theirs = " or ".join(found.spec.roles)
            raise InvalidInput(f"{name} is for the {theirs} to do, not for the {role}")
        return found

    def perform(
        self, world: W, name: str, arguments: Mapping[str, JSON], role: Role = "agent"
    ) -> JSON:
        """Performs an action and returns its result.

        Raises:
            InvalidInput: there is no such action, it is not for this role, the arguments do not fit, or
                the action refuses.
        """
        return self.find(name, role).perform(world, arguments)

    def environment(self, world: W) -> _TableEnvironment[W]:
        """The environment of one session on a world; actions with an effect change this very object."""
        return _TableEnvironment(self, world)


@final
class _TableEnvironment(Generic[W]):
    def __init__(self, table: ActionTable[W], world: W) -> None:
        self._table = table
        self._world = world

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        return self._table.specs

    async def perform(self, action: Action) -> Outcome:
        found = self._table.find(action.name, action.role)
        observation = found.perform(self._world, action.arguments)
        return Outcome(observation=observation, seconds=found.seconds(action.arguments))

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        if resolved.outcome == "ok" and self._table.find(action.name, action.role).effect:
            self._table.perform(self._world, action.name, action.arguments, action.role)
