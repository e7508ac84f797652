"""The environment of proof: actions whose duration depends on who takes them, and a fallible reader."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON, ActionResolved
from ...engine.session.environment import Action, ActionSpec, Outcome
from ...engine.text import suggestion
from ...tasks.actions import arguments_of, spec_of
from .actions import (
    Accept,
    Check,
    Expand,
    FindCounterexample,
    Residues,
    Verify,
    expand,
    faults_in,
    find_counterexample,
    reading_seconds,
    residues,
    sections_to_check,
    verifying_seconds,
)
from .proving.document import Section, section_key

__all__ = ("ACTIONS", "OVERLOOKED", "OVERLOOKED_DOUBTS", "ProofEnvironment")

OVERLOOKED: Final = 0.25
"""Share of the errors that a careful reader overlooks."""

OVERLOOKED_DOUBTS: Final = 0.05
"""Share of those that they overlook in a step that its author marked as doubtful."""

_AGAIN: Final = 5.0
_SHORT: Final = {"Expand": 3.0, "Residues": 4.0, "FindCounterexample": 8.0, "Accept": 2.0}
_PERSON: Final = 3.0
"""How many times longer a person takes for an action than the agent."""

_KINDS: Final = (Expand, Residues, FindCounterexample, Verify, Check, Accept)
_HUMAN: Final = frozenset({"Check", "Accept"})


def _described(kind: type[msgspec.Struct]) -> ActionSpec:
    spec = spec_of(kind, roles=("human",) if kind.__name__ in _HUMAN else ("human", "agent"))
    return msgspec.structs.replace(spec, description=" ".join(spec.description.split()))


ACTIONS: Final[Mapping[str, ActionSpec]] = {kind.__name__: _described(kind) for kind in _KINDS}
"""The actions, as actors are shown them."""


@final
class ProofEnvironment:
    """The actions of one session.

    It keeps which proofs are in the checker's form already, so that a second check takes seconds.

    Args:
        seed: of what a reader overlooks.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._formal: set[str] = set()

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """All actions, by name."""
        return ACTIONS

    async def perform(self, action: Action) -> Outcome:
        """Takes an action; the message of an error says how to continue."""
        name, by_human = action.name, action.role == "human"
        if name not in ACTIONS:
            raise InvalidInput(f"unknown action {name!r}{suggestion(name, ACTIONS)}")
        if name in _HUMAN and not by_human:
            raise InvalidInput(f"{name} is for people to do: use Verify to have a proof checked")
        seconds = _SHORT.get(name, 0.0) * (_PERSON if by_human and name != "Accept" else 1.0)
        match name:
            case "Expand":
                return Outcome(
                    observation=expand(arguments_of(Expand, action.arguments)), seconds=seconds
                )
            case "Residues":
                return Outcome(
                    observation=residues(arguments_of(Residues, action.arguments)), seconds=seconds
                )
            case "FindCounterexample":
                found = find_counterexample(arguments_of(FindCounterexample, action.arguments))
                return Outcome(observation=found, seconds=seconds)
            case "Verify":
                return self._verify(arguments_of(Verify, action.arguments), by_human=by_human)
            case "Check":
                return self._check(arguments_of(Check, action.arguments), action)
        arguments_of(Accept, action.arguments)
        return Outcome(observation="noted", seconds=seconds)

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """Takes over which proofs are in the checker's form."""
        if action.name == "Verify" and resolved.outcome == "ok":
            _, found = sections_to_check(arguments_of(Verify, action.arguments).proof)
            self._formal.update(section_key(section) for section in found)

    def _verify(self, wanted: Verify, *, by_human: bool) -> Outcome:
        document, found = sections_to_check(wanted.proof)
        seconds = 0.0
        for section in found:
            key = section_key(section)
            known = key in self._formal
            seconds += _AGAIN if known else verifying_seconds(section, by_human=by_human)
            self._formal.add(key)
        result: JSON = {
            label: [{"step": fault.step, "why": fault.why} for fault in faults]
            for label, faults in faults_in(document, found).items()
        }
        return Outcome(observation=result, seconds=seconds)

    def _check(self, wanted: Check, action: Action) -> Outcome:
        document, found = sections_to_check(wanted.proof)
        random = Random(f"{self._seed}/{action.version}/{codec.digest(wanted.proof)}")
        doubts: dict[str, JSON] = {}
        for section in found:
            marked = {step.name for step in section.steps if step.doubt}
            noticed: list[JSON] = []
            for fault in faults_in(document, (section,))[section.label]:
                missed = OVERLOOKED_DOUBTS if fault.step in marked else OVERLOOKED
                if random.random() >= missed:
                    noticed.append({"step": fault.step, "why": fault.why})
            doubts[section.label] = noticed
        return Outcome(observation=doubts, seconds=_reading(found))


def _reading(found: tuple[Section, ...]) -> float:
    return sum(reading_seconds(section) for section in found)
