"""The table of typed actions: descriptions for actors, refusals, and durations."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, ActionResolved, Role
from duolog.engine.session.environment import Action
from duolog.tasks.actions import ActionTable, action
from jsonschema import Draft202012Validator, ValidationError


class Put(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Put a stone on the heap."""

    weight: int


class Weigh(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weigh the heap."""


def put(heap: list[int], asked: Put) -> JSON:
    if asked.weight <= 0:
        raise InvalidInput(f"a stone of {asked.weight} g is none: take a heavier one")
    heap.append(asked.weight)
    return len(heap)


TABLE = ActionTable(
    [
        action(Put, put, seconds=lambda asked: asked.weight / 10, roles=("human",), effect=True),
        action(Weigh, lambda heap, asked: sum(heap)),
    ]
)


def taken(name: str, role: Role = "human", **arguments: JSON) -> Action:
    return Action(version=1, actor="x", role=role, name=name, arguments=arguments)


def test_actors_are_shown_names_schemas_and_what_may_be_repeated() -> None:
    spec = TABLE.specs["Put"]
    assert spec.description == "Put a stone on the heap."
    assert spec.parameters["required"] == ["weight"]
    assert (spec.repeatable, TABLE.specs["Weigh"].repeatable) == (False, True)


def test_an_action_computes_and_lasts() -> None:
    heap: list[int] = []
    outcome = anyio.run(TABLE.environment(heap).perform, taken("Put", weight=20))
    assert (heap, outcome.observation, outcome.seconds) == ([20], 1, 2.0)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (taken("Putt"), "unknown action 'Putt'.*Put"),
        (taken("Put", "agent", weight=1), "Put is for the human to do, not for the agent"),
        (taken("Put", weight="much"), r"Put\(weight\) was called wrongly: .*int"),
        (taken("Put", size=1), r"Put\(weight\) was called wrongly"),
        (taken("Put", weight=0), "take a heavier one"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(asked: Action, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        anyio.run(TABLE.environment([]).perform, asked)
    assert "\n" not in str(refused.value)


def test_on_resuming_an_effect_is_applied_again_and_nothing_else() -> None:
    heap: list[int] = []
    environment = TABLE.environment(heap)
    environment.recall(taken("Put", weight=5), ActionResolved(action=1, outcome="ok"))
    environment.recall(taken("Put", weight=7), ActionResolved(action=1, outcome="failed"))
    environment.recall(taken("Weigh"), ActionResolved(action=1, outcome="ok"))
    assert heap == [5]


class Stone(msgspec.Struct, frozen=True):
    """A stone."""

    weight: int


class PutAll(msgspec.Struct, frozen=True):
    """Put several stones on the heap."""

    stones: tuple[Stone, ...]


def test_a_schema_holds_what_its_fields_are_made_of() -> None:
    table: ActionTable[list[int]] = ActionTable([action(PutAll, lambda heap, asked: None)])
    schema = dict(table.specs["PutAll"].parameters)
    Draft202012Validator(schema).validate({"stones": [{"weight": 3}]})
    with pytest.raises(ValidationError, match="heavy"):
        Draft202012Validator(schema).validate({"stones": [{"weight": "heavy"}]})
