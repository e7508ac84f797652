"""What an agent on rules does about claims: search, draft, verify, ask and report.

What it has not been told to matter it writes down as it comes. What it has been told to matter it looks at
twice: it searches for counterexamples, and has each step checked before it shows the proof.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

from ...agents.habits import Habits
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ..kit.rule_agent import Question, Standing
from .agent_knowledge import Knowledge
from .algebra.polynomials import evaluated
from .language.agent import PHRASES
from .language.labels import spell_labels
from .proving.claims import Divides, read_claim
from .proving.document import Section, render_document, section_key
from .proving.lemmas import FAMILIES

__all__ = ("ProofPlanner",)

_VERSIONS: Final = 4
"""Versions of a proof that the agent has checked before it shows what it has, and says so."""


@final
class ProofPlanner:
    """The ``Planner`` of proof; one for each session.

    Args:
        habits: ``assumptions``: its report says which claims it takes to matter; ``doubts``: and which
            proofs and steps it is not sure of; ``goals``: it asks what else is wanted once there is a
            proof; ``level``: it has checked what the mathematician has doubted, before it shows it.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits

    def know(self, view: View) -> Knowledge:
        """All that the agent knows by now."""
        return Knowledge(view)

    def work(self, known: Knowledge, view: View) -> Decision | None:
        """Searches and checks what matters, one proof at a time; then the output, if it has changed."""
        if not known.stated:
            return None
        careful = self._careful(known)
        searches = [
            Act("FindCounterexample", {"claim": known.stated[label]})
            for label in known.targets
            if (label in careful or label in known.suspicious())
            and label not in known.forms
            and known.stated[label] not in known.searched
            and not known.alone
        ]
        if searches:
            return Decision(tuple(searches))
        sections = known.sections()
        waiting = [
            section
            for section in sections
            if section.steps
            and section.label in careful
            and known.verdict(section) is None
            and known.attempts(section.label) < _VERSIONS
        ]
        if waiting and known.shown:
            return _verify(known, waiting[0])
        ready = [section for section in sections if section not in waiting]
        text = render_document(ready)
        fresh = text != view.snapshot_text and any(one.kind == "Claim" for one in ready)
        if waiting and not (fresh and any(one.machine for one in ready if one.kind == "Claim")):
            return _verify(known, waiting[0])
        return Decision((Submit(text),)) if fresh else None

    def question(self, known: Knowledge, words: Random) -> Question | None:
        """The next question: what matters, which lemma, then how to mend what is false."""
        if known.core is None and ("core", "") not in known.asked:
            return Question(PHRASES.say("core", words), first=True)
        if known.lemma is None and ("lemma", "") not in known.asked:
            return Question(PHRASES.say("lemma", words), first=True)
        for label in known.open_forms():
            if ("form", label) not in known.asked:
                fails = self._fails(known, label, words)
                text = PHRASES.say("form", words, label=label, fails=fails)
                return Question(text, first=True)
        if not self._habits.goals:
            return None
        for label, over in known.general():
            if known.core is not None and ("general", label) not in known.asked:
                return Question(PHRASES.say("general", words, label=label, over=over))
        if not known.minor and ("minor", "") not in known.asked:
            return Question(PHRASES.say("minor", words))
        if ("anything", "") not in known.asked:
            return Question(PHRASES.say("anything", words))
        return None

    def estimate(self, known: Knowledge) -> float:
        """By the share of the claims to prove that a machine has checked."""
        checked = sum(one.machine for one in known.sections() if one.kind == "Claim")
        return checked / max(len(known.targets), 1)

    def report(self, known: Knowledge, words: Random, standing: Standing) -> str:
        """What is checked, what is not, what is false, and what the agent takes to matter."""
        said = [PHRASES.say(standing, words)]
        if standing == "unchanged":
            return said[0]
        sections = [
            one
            for one in known.sections()
            if known.reported.get(one.label) != (section_key(one), one.machine)
        ]
        verified = [one.label for one in sections if one.machine]
        stuck = [one.label for one in sections if known.verdict(one)]
        loose = [one for one in sections if one.steps and known.verdict(one) is None]
        assumes, doubts = self._habits.assumptions, self._habits.doubts
        if assumes and known.core is not None and set(known.core) != set(known.said_core):
            said.append(PHRASES.say("taken", words, labels=spell_labels(known.core)))
        if verified:
            said.append(PHRASES.say("verified", words, labels=spell_labels(verified)))
        if stuck and doubts:
            said.append(PHRASES.say("stuck", words, labels=spell_labels(stuck)))
        if loose and doubts:
            labels = spell_labels(one.label for one in loose)
            said.append(PHRASES.say("unchecked", words, labels=labels))
        steps = [step.name for one in loose for step in one.steps if step.doubt]
        if steps and doubts:
            said.append(PHRASES.say("unsure", words, steps=spell_labels(steps)))
        asking = next((one for one in known.open_forms() if ("form", one) not in known.asked), "")
        new = {one.label for one in sections}
        said += [
            self._fails(known, one, words)
            for one in known.open_forms()
            if one != asking and one in new
        ]
        return " ".join(said)

    def _careful(self, known: Knowledge) -> frozenset[str]:
        """The labels of what is worth the time of a check: what matters, and what was doubted."""
        if known.alone:
            return frozenset()
        lemmas = {family.label for family in FAMILIES.values()}
        return frozenset(
            {
                *(known.targets if known.core is not None or known.pressed else ()),
                *(known.doubted if self._habits.level else ()),
                *lemmas,
            }
        )

    def _fails(self, known: Knowledge, label: str, words: Random) -> str:
        """Where a claim fails, and why."""
        claim, n = read_claim(known.stated[label]), known.fails[label]
        if not isinstance(claim, Divides):
            return f"{label} fails at n = {n}."
        value = evaluated(claim.value, n)
        return PHRASES.say("fails", words, label=label, n=n, divisor=claim.divisor, value=value)


def _verify(known: Knowledge, section: Section) -> Decision:
    return Decision((Act("Verify", {"proof": known.proof_of(section)}),))
