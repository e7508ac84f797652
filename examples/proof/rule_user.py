"""The mathematician on rules: checks what matters, doubts, reconsiders, and works alone if need be."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, final

from ...engine.events import JSON
from ...engine.session.decisions import Act, ChangeProfile, Decision, Rate, Submit
from ...engine.session.view import View
from ...users.personas import Persona
from ..kit.phrases import say_deferral
from ..kit.ratings import compare
from ..kit.views import asked_last, awaits_reaction, output_before, own_messages, turn_seed
from .actions import reading_seconds
from .environment import OVERLOOKED
from .language.agent import Question, read_questions
from .language.mathematician import (
    say,
    say_ambiguously,
    say_doubt,
    say_form,
    say_labels,
    say_lemma,
)
from .language.profiles import private_part
from .person_state import PersonState
from .proving.checker import check_section
from .proving.claims import holds, read_claim
from .proving.document import (
    Section,
    read_document,
    render_document,
    render_section,
    section_key,
)
from .proving.lemmas import FAMILIES
from .proving.slips import draft
from .wishes import Profile, in_form

__all__ = ("Mathematician",)

_REPEATS: Final = 2
"""How often they say the same thing."""

_OWN_SLIPS: Final = 0.08
"""Share of the steps that they get wrong when they write a proof themselves."""

_THINKING: Final = 220.0
"""Seconds that it takes them to find a proof."""

_WRITING: Final = 60.0
"""Seconds that a step takes them to write down."""

_OWN_READING: Final = 0.4
"""Share of the time of a careful reader that they take over a proof of their own."""

_TIRED: Final = 5
"""Messages, the request included, after which those who settle for less do."""

_MENDS: Final = 2
"""Errors in one section after which those who act mend it themselves."""


@final
class Mathematician:
    """The ``Person`` of proof; one for each session."""

    def see(self, view: View, profile: JSON) -> PersonState:
        """What they know and want now."""
        return PersonState(view, profile)

    def wrong(self, state: PersonState, output: str) -> float:
        """How many of the claims that matter are missing, in another form, or known to be flawed.

        A proof that neither they nor a machine has looked at counts half.
        """
        document = read_document(output)
        core = state.wishes.core
        open_ones = [label for label in core if state.is_open(label, document)]
        loose = [
            label
            for label in core
            if label not in open_ones
            and not document[label].machine
            and section_key(document[label]) not in state.read
        ]
        return len(open_ones) + 0.5 * len(loose)

    def change(self, state: PersonState) -> ChangeProfile | None:
        """Another mind, once the claim that they had built on is seen to fail."""
        label, later = state.turned(), state.profile.later
        if label is None or later is None:
            return None
        reason = f"saw that {label} fails at n = {state.fails[label]}"
        return ChangeProfile(private_part(Profile(now=later)), reason)

    # --- checking ------------------------------------------------------------------------------------

    def work(self, state: PersonState, persona: Persona, words: Random) -> Decision | None:
        """Checks what is new of what matters; reads on while the agent works, or nothing is left to say.

        What a machine has accepted they put to the checker again, which takes seconds, and read later.
        Those who act mend what was wrong twice.
        """
        if state.late or not state.document:
            return None
        if not any(state.doubts(label) for label in state.wanted):
            for section in self._to_check(state, persona):
                name = "Verify" if section.machine else "Check"
                return Decision((Act(name, {"proof": _with_lemmas(section, state)}),))
        if persona.acts:
            mended = self._mend(state, words)
            if mended is not None:
                return mended
        if persona.gives_feedback and self._has_time(state, persona, words):
            for label in state.wishes.core:
                if state.is_settled(label) and not state.is_understood(label):
                    proof = _with_lemmas(state.document[label], state)
                    return Decision((Act("Check", {"proof": proof}),))
        return None

    def _has_time(self, state: PersonState, persona: Persona, words: Random) -> bool:
        """Whether it is the agent's turn, or there is nothing to be said."""
        if awaits_reaction(state.view):
            return True
        asked = asked_last(state.view)
        return not asked and next(self._comments(state, persona, words), None) is None

    def _to_check(self, state: PersonState, persona: Persona) -> Iterator[Section]:
        """What they have not read yet of what matters, and is in the right form."""
        labels = state.wanted if persona.gives_feedback else state.wishes.core
        for label in labels:
            section = state.document.get(label)
            fit = section is not None and bool(section.steps) and state.is_fit(section)
            if section is not None and fit and state.doubts(label) is None:
                yield section
        lemma = state.lemma_section()
        if lemma is not None and state.doubts(lemma.label) is None:
            yield lemma

    def _mend(self, state: PersonState, words: Random) -> Decision | None:
        for label in state.wishes.core:
            if state.doubts(label) and state.found.get(label, 0) >= _MENDS:
                return self._prove(state, label, words)
        return None

    # --- talking -------------------------------------------------------------------------------------

    def comment(self, state: PersonState, persona: Persona, words: Random) -> str | None:
        """The next thing to say: an error, what is missing, another form, what nobody knows yet."""
        if state.view.snapshot is None:
            return say_labels("core", state.wishes.core, words)
        return next(self._comments(state, persona, words), None)

    def _comments(self, state: PersonState, persona: Persona, words: Random) -> Iterator[str]:
        for label in (*state.wanted, *state.document):
            for step, why in state.doubts(label) or ():
                yield say_doubt(step, why, words)
        core = state.wishes.core
        fresh = [label for label in core if label not in (state.taken or ())]
        if not state.said("core"):
            yield say_labels("core", core, words)
        elif len(fresh) == 1 and state.said("gained", fresh[0]) < _REPEATS:
            yield say_labels("gained", fresh, words)
        elif state.taken is not None and fresh and state.said("core") <= _REPEATS:
            yield say_labels("core", core, words)
        for label in core:
            yield from self._about(state, label, words)
        if not state.said("lemma") and not persona.untold:
            yield say_lemma(state.wishes.lemma, words)
        for label in state.wishes.minor:
            if (
                label not in state.document
                and not state.said("minor", label)
                and not persona.untold
            ):
                yield say_labels("minor", [label], words)
            elif label in state.document:
                yield from self._about(state, label, words)

    def _about(self, state: PersonState, label: str, words: Random) -> Iterator[str]:
        """What is to be said about one claim."""
        section = state.document.get(label)
        if section is None:
            if state.said("gained", label) + state.said("missing", label) < _REPEATS:
                yield say_labels("missing", [label], words)
        elif not state.is_fit(section) or not section.steps:
            form = state.wishes.form(label)
            known = label in state.fails or holds(read_claim(state.stated[label]))
            if known and state.said("form", label, form) < _REPEATS:
                yield say_form(label, form, words)

    def answer(self, state: PersonState, question: str, persona: Persona, words: Random) -> str:
        """What they answer; ambiguously at times, and at times to another question."""
        asked = read_questions(question)
        if not asked:
            return next(self._comments(state, persona, words), "") or say_deferral(words)
        about = asked[0]
        if words.random() < persona.mishears:
            about = Question("lemma" if about.about == "core" else "core")
        topic = about.about
        if topic in ("core", "form", "lemma") and words.random() < persona.ambiguous:
            return say_ambiguously(topic, words)
        if topic == "core":
            return say_labels("core", state.wishes.core, words)
        if topic == "lemma":
            return say_lemma(state.wishes.lemma, words)
        if topic in ("form", "general") and about.label in state.stated:
            if topic == "form" and about.label not in state.wanted:
                return say("later", words, labels=about.label)
            return say_form(about.label, state.wishes.form(about.label), words)
        if topic == "minor":
            missing = [one for one in state.wishes.minor if one not in state.document]
            return say_labels("minor", missing or state.wishes.minor, words)
        told = next(self._comments(state, persona, words), None)
        return told or "No, that is all. Thank you."

    # --- judging -------------------------------------------------------------------------------------

    def content(self, state: PersonState, persona: Persona) -> bool | str:
        """Whether enough is settled, or their time is over."""
        if state.late:
            return "out of time"
        core = state.wishes.core
        settled = sum(state.is_settled(label) for label in core)
        if persona.contentment < 1.0:
            tired = len(own_messages(state.view)) > _TIRED
            return bool(state.document) and (tired or settled >= persona.contentment * len(core))
        if settled < len(core) or not all(state.is_understood(label) for label in core):
            return False
        if persona.untold:
            return True
        return state.has_lemma() and all(state.is_settled(one) for one in state.wishes.minor)

    def rate(self, state: PersonState, view: View) -> Rate | None:
        """By what they see to be open in the output, before and after the agent's round."""
        before, after = output_before(view), view.snapshot_text
        if not after:
            asked = bool(read_questions(asked_last(view)))
            return Rate(3, "A fair question.") if asked else Rate(2, "Nothing that helps yet.")
        was = self.wrong(state, before) if before else float(len(state.wishes.core))
        complained = any(state.doubts(label) for label in state.wanted)
        return compare(
            was, self.wrong(state, after), changed=before != after, complained=complained
        )

    # --- alone ---------------------------------------------------------------------------------------

    def alone(self, state: PersonState, words: Random) -> Decision | None:
        """The next claim that matters, written and read over by themselves; None when done."""
        if state.late:
            return None
        for label in (*state.wishes.core, self._own_lemma(state), *state.wishes.minor):
            section = state.document.get(label)
            if section is None or not section.steps or state.doubts(label):
                return self._prove(state, label, words)
            if section_key(section) in state.mine and state.doubts(label) is None:
                return self._look_over(state, section, words)
            if state.doubts(label) is None:
                return Decision((Act("Check", {"proof": _with_lemmas(section, state)}),))
        return None

    def _look_over(self, state: PersonState, section: Section, words: Random) -> Decision:
        """Stands by a proof of their own, or writes it again: one reads that faster, and as blindly."""
        seconds = _OWN_READING * reading_seconds(section)
        faults = check_section(section, state.document)
        if all(words.random() < OVERLOOKED for _ in faults):
            return Decision((Act("Accept", {"label": section.label}),), seconds)
        again = _written(state, section.label, words)
        return Decision(again.verbs, seconds + _WRITING * len(faults))

    def _own_lemma(self, state: PersonState) -> str:
        return FAMILIES[state.wishes.lemma].label

    def _prove(self, state: PersonState, label: str, words: Random) -> Decision:
        """A proof; of a false claim, half of one, and the search for where it fails."""
        stated = state.stated.get(label)
        if stated is not None and not holds(in_form(stated, state.wishes.form(label))):
            search = Act("FindCounterexample", {"claim": stated})
            if label not in state.fails:
                return Decision((search,), _THINKING)
        return _written(state, label, words)


def _written(state: PersonState, label: str, words: Random) -> Decision:
    """The output with a proof of one's own in it, and the time that it takes to write that."""
    family, seed = FAMILIES[state.wishes.lemma], turn_seed(state.view)
    if label == family.label:
        steps = draft(label, family.claim, {}, seed=seed, tries={}, rate=0.0)
        section = Section("Lemma", label, family.text, steps=steps)
    else:
        claim = in_form(state.stated[label], state.wishes.form(label))
        steps = draft(
            label,
            claim,
            {family.label: family.claim},
            seed=seed,
            tries={},
            rate=_OWN_SLIPS,
        )
        section = Section("Claim", label, claim.text, state.fails.get(label), steps)
    sections = {**state.document, label: section}
    if family.label not in sections and any(step.reason.startswith("L") for step in steps):
        lemma = draft(family.label, family.claim, {}, seed=seed, tries={}, rate=0.0)
        sections[family.label] = Section("Lemma", family.label, family.text, steps=lemma)
    text = render_document([sections[one] for one in sorted(sections, key=_order)])
    return Decision(
        (Submit(text),), _THINKING + _WRITING * len(section.steps) * words.uniform(0.8, 1.2)
    )


def _order(label: str) -> tuple[bool, str]:
    return (not label.startswith("L"), label)


def _with_lemmas(section: Section, state: PersonState) -> str:
    """A section with the first lines of the lemmas in the output above it."""
    heads = [
        render_section(Section("Lemma", one.label, one.claim))
        for one in state.document.values()
        if one.kind == "Lemma" and one.label != section.label
    ]
    return "\n\n".join((*heads, render_section(section)))
