"""Proof as a task: claims that matter to a mathematician, an agent that slips, and a checker."""

from __future__ import annotations

from typing import Final

import msgspec

from ...agents.rules_file import shipped_rules
from ...scoring.display.cards import Part
from ...tasks.kit import BestOutput, Case, KitTask, TaskScorer, TaskSpec, load_brief
from ...tasks.rule_agent import RuleAgent
from ...tasks.rule_user import HumanAlone, RuleUser, changing
from .environment import ProofEnvironment
from .generator import Instance, best_document, make_instance
from .language.profiles import private_part
from .proving.document import read_document, section_key
from .proving.parts import FORM
from .rule_agent import ProofPlanner
from .rule_user import Mathematician
from .utility import PROOF, judge, proof_utility

__all__ = ("SPEC", "proof_scorer", "proof_task")


def _case(name: str, seed: int) -> Case[Instance]:
    instance = make_instance(name, seed)
    return Case(
        request=instance.request,
        private=private_part(instance.profile),
        truth=msgspec.to_builtins(instance.profile.now),
        world=instance,
    )


def _best_output(name: str, seed: int) -> BestOutput:
    """The best output, once the mathematician has seen what they did not know, and checked all of it."""
    instance = make_instance(name, seed)
    document = read_document(best_document(instance))
    trust = {section_key(section): 1.0 for section in document.values()}
    wishes = instance.profile.later or instance.profile.now
    return BestOutput(judge(document, trust, instance.claims, wishes).value)


SPEC: Final = TaskSpec(
    name=PROOF,
    description="prove claims together: slips, counterexamples, lemmas, and what was checked counts",
    brief=load_brief(__package__, form=FORM),
    part=Part(
        role="You are a mathematician who needs proofs for a paper. An agent writes them with you.",
        goal="Proofs of the claims that matter, which you have checked yourself and stand by.",
    ),
    case=_case,
    environment=lambda instance: ProofEnvironment(instance.seed),
    utility=lambda instance: proof_utility(instance.claims),
    agent=lambda habits: RuleAgent(ProofPlanner(habits)),
    control=shipped_rules(__package__),
    user=lambda: RuleUser(Mathematician()),
    alone=lambda: HumanAlone(Mathematician()),
    best_output=_best_output,
    changing=lambda: changing(Mathematician()),
)
"""The parts of the task."""


def proof_task() -> KitTask[Instance]:
    """The task ``proof``."""
    return KitTask(SPEC)


def proof_scorer() -> TaskScorer:
    """The scorer of the task's recorded sessions."""
    return TaskScorer(proof_task())
