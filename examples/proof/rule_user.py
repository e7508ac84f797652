"""The mathematician on rules: checks what matters, doubts, reconsiders, and works alone if need be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, final

from ...engine.events import JSON, ActionResolved, MessageSent, SnapshotTaken
from ...engine.session.decisions import Act, ChangeProfile, Decision, Submit
from ...engine.session.view import View
from ...tasks.views import asked_last, awaits_reaction, output_before, own_messages, turn_seed
from ...users.deferrals import say_deferral
from ...users.judgement import LIKELY, TOLD, Felt, compare, first_output, questioned
from ...users.manner import RETHOUGHT, mistaken
from ...users.personas import Persona
from .actions import reading_seconds
from .environment import OVERLOOKED
from .language.agent import Asked, Question, counterexamples_in, read_questions, taken_for_core
from .language.mathematician import (
    Heard,
    read_message,
    say,
    say_ambiguously,
    say_doubt,
    say_form,
    say_labels,
    say_lemma,
)
from .language.profiles import private_part, read_profile
from .proving.checker import check_section, cites
from .proving.claims import fails_at, holds, read_claim
from .proving.document import (
    Document,
    Section,
    read_document,
    render_document,
    render_section,
    section_key,
)
from .proving.lemmas import FAMILIES, family_of
from .proving.slips import draft
from .reading import stated_claims
from .utility import fits
from .wishes import Profile, Wishes, in_form

__all__ = ("TIME_AT_HAND", "Mathematician")

TIME_AT_HAND: Final = 2_100.0
"""Seconds that the mathematician has for the whole of it."""

Doubt = tuple[str, str]
"""The name of a step that looks wrong, and why."""


@final
class PersonState:
    """Folded from a view; see the attributes.

    Attributes:
        view: what they see.
        profile: their current profile.
        wishes: what they want now.
        stated: the claims as stated.
        document: the current output.
        read: what they, or the checker, found in a version of a section: doubts, or none.
        understood: the versions of sections that they have read with care themselves.
        mine: the versions of sections that they wrote themselves.
        fails: the claims that they know to fail, and where.
        tried: the claims of which they have tried small cases, as stated.
        told: what they have said so far, as one would understand it, with how often.
        found: how often they found an error in a section, by label.
        taken: the claims that the agent last said it takes to matter most.
        late: whether their time is over.
    """

    def __init__(self, view: View, profile: JSON) -> None:
        self.view = view
        self.profile = read_profile(profile) or _NONE
        self.wishes: Wishes = self.profile.now
        self.stated = stated_claims(view.request)
        self.document: Document = {}
        self.read: dict[str, tuple[Doubt, ...]] = {}
        self.understood: set[str] = set()
        self.mine: set[str] = set()
        self.fails: dict[str, int] = {}
        self.tried: set[str] = set()
        self.told: dict[Heard, int] = {}
        self.found: dict[str, int] = {}
        self.taken: tuple[str, ...] | None = None
        self.late = view.now >= TIME_AT_HAND
        for record in view.records:
            event = record.event
            if isinstance(event, SnapshotTaken):
                before, self.document = self.document, read_document(event.content)
                if record.actor == view.me:
                    fresh = {section_key(one) for one in self.document.values()}
                    self.mine |= fresh - {section_key(one) for one in before.values()}
                self._see_failures(
                    {s.label: s.fails for s in self.document.values() if s.fails is not None}
                )
            elif isinstance(event, MessageSent):
                self._message(record.actor, event.text)
            elif isinstance(event, ActionResolved) and event.outcome == "ok":
                action = view.actions.get(event.action)
                if action is not None:
                    self._outcome(action.name, action.arguments, event.observation)

    def doubts(self, label: str) -> tuple[Doubt, ...] | None:
        """Their doubts about the current section; None if they have not checked it."""
        section = self.document.get(label)
        return None if section is None else self.read.get(section_key(section))

    def is_understood(self, label: str) -> bool:
        """Whether they have read the current version of a section with care."""
        section = self.document.get(label)
        return section is not None and section_key(section) in self.understood

    def is_settled(self, label: str) -> bool:
        """Whether a claim is proved in the right form, as far as they know, and they have checked it."""
        section = self.document.get(label)
        return (
            section is not None
            and bool(section.steps)
            and self.is_fit(section)
            and self.read.get(section_key(section)) == ()
        )

    def is_open(self, label: str, document: Document) -> bool:
        """Whether they see something wrong with a section of an output, or miss it."""
        section = document.get(label)
        if section is None or not section.steps or not self.is_fit(section):
            return True
        return bool(self.read.get(section_key(section)))

    def is_fit(self, section: Section) -> bool:
        """Whether a section says what they want of the claim.

        Of a claim that they do not know to be false they want it as stated, or more.
        """
        return fits(section.claim, self.stated[section.label], self.wishes, section.label)

    def lemma_section(self) -> Section | None:
        """The lemma of the kind that is of use to them, if the output has it."""
        for section in self.document.values():
            family = family_of(section.claim) if section.kind == "Lemma" else None
            if family is not None and family.name == self.wishes.lemma:
                return section
        return None

    def has_lemma(self) -> bool:
        """Whether the lemma is there, cited in what matters, and checked, all as far as they know."""
        section = self.lemma_section()
        if section is None or self.read.get(section_key(section)) != ():
            return False
        return any(
            self.is_settled(label) and section.label in cites(self.document[label])
            for label in self.wanted
            if label in self.document
        )

    @property
    def wanted(self) -> tuple[str, ...]:
        """The labels of the claims that count, the most important first."""
        return (*self.wishes.core, *self.wishes.minor)

    def said(self, topic: str, label: str = "", value: str = "") -> int:
        """How often they have said something."""
        return sum(
            times
            for heard, times in self.told.items()
            if heard.topic == topic
            and (not label or label in heard.labels)
            and (not value or heard.value == value)
        )

    def turned(self) -> str | None:
        """The claim whose failure they have seen and that changes their mind; None if there is none."""
        if self.profile.later is None:
            return None
        return next((one for one in self.profile.turns if one in self.fails), None)

    # --- folding -----------------------------------------------------------------------------------

    def _message(self, actor: str, text: str) -> None:
        if actor != self.view.me:
            self._see_failures(counterexamples_in(text))
            taken = taken_for_core(text)
            self.taken = self.taken if taken is None else tuple(taken)
            return
        if text != self.view.request:
            for heard in read_message(text, tuple(self.stated)):
                self.told[heard] = self.told.get(heard, 0) + 1

    def _see_failures(self, failures: Mapping[str, int | None]) -> None:
        """Learns of reported counterexamples; they try each one and never believe a wrong one."""
        for label, n in failures.items():
            stated = self.stated.get(label)
            if n is not None and stated is not None and fails_at(read_claim(stated), n):
                self.fails[label] = n

    def _outcome(self, name: str, arguments: Mapping[str, JSON], observation: JSON) -> None:
        section = self.document.get(str(arguments.get("label"))) if name == "Accept" else None
        if section is not None:
            self.read[section_key(section)] = ()
            self.understood.add(section_key(section))
        if not isinstance(observation, Mapping):
            return
        if name == "FindCounterexample":
            claim, n = str(arguments.get("claim")), observation.get("n")
            self.tried.add(claim)
            if isinstance(n, int):
                self._see_failures({one: n for one, text in self.stated.items() if text == claim})
        elif name in ("Check", "Verify"):
            document = read_document(arguments.get("proof"))
            for label, faults in observation.items():
                if label in document and isinstance(faults, list | tuple):
                    doubts = tuple(
                        (str(one["step"]), str(one["why"]))
                        for one in faults
                        if isinstance(one, Mapping)
                    )
                    key = section_key(document[label])
                    self.read[key] = doubts
                    if name == "Check":
                        self.understood.add(key)
                    self.found[label] = self.found.get(label, 0) + bool(doubts)


_NONE: Final = Profile(now=Wishes(core=(), minor=(), forms={}, lemma=next(iter(FAMILIES))))


# --- the mathematician on rules -------------------------------------------------------------------


_REPEATS: Final = 2
"""How often they say the same thing."""

_OWN_SLIPS: Final = 0.08
"""Share of the steps that they get wrong when they write a proof themselves."""

_THINKING: Final = 220.0
"""Seconds that it takes them to find a proof."""

_TRYING: Final = 60.0
"""Seconds in which they make up their mind to try small cases of a claim, and write them down."""

_WRITING: Final = 60.0
"""Seconds that a step takes them to write down."""

_OWN_READING: Final = 0.4
"""Time they take to reread their own proof, as a share of a careful reader's."""

_TIRED: Final = 5
"""Messages, the request included, after which those who settle for less do."""

_MENDS: Final = 2
"""Errors in one section after which those who act mend it themselves."""


_TOPICS: Final[Mapping[Asked, str]] = {"core": "what matters most", "lemma": "the lemma"}
"""Their words for what they take a question to be about."""


@final
class Mathematician:
    """The ``Person`` of proof; one for each session."""

    def see(self, view: View, profile: JSON) -> PersonState:
        """Their current knowledge and wishes."""
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
        """The sections that matter, have the right form, and have not been read yet; and the lemma."""
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
        """The next thing to say: an error, a missing proof, another form, or an untold wish."""
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
            yield self._say_core(state, words)
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

    def _say_core(self, state: PersonState, words: Random) -> str:
        """What matters most; if they said otherwise before, that they have changed their mind."""
        core = state.wishes.core
        told = [heard.labels for heard in state.told if heard.topic == "core"]
        said = say_labels("core", core, words)
        changed = bool(told) and not any({*core} <= {*labels} for labels in told)
        return f"{words.choice(RETHOUGHT)} {said}" if changed else said

    def _about(self, state: PersonState, label: str, words: Random) -> Iterator[str]:
        """Their comments on one claim."""
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
        """Their answer, which may be ambiguous or to another question."""
        asked = read_questions(question)
        if not asked:
            return next(self._comments(state, persona, words), "") or say_deferral(words)
        about = asked[0]
        if words.random() < persona.mishears:
            other: Asked = "lemma" if about.about == "core" or state.said("core") else "core"
            if other != about.about:
                said = self._answered(state, Question(other), persona, words)
                return mistaken(_TOPICS[other], said, words)
        return self._answered(state, about, persona, words)

    def _answered(
        self, state: PersonState, about: Question, persona: Persona, words: Random
    ) -> str:
        topic = about.about
        if topic in ("core", "form", "lemma") and words.random() < persona.ambiguous:
            return say_ambiguously(topic, words)
        if topic == "core":
            return self._say_core(state, words)
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

    def rate(self, state: PersonState, view: View) -> Felt | None:
        """Judges by how likely each claim that matters is proved as they want, before and after the round."""
        before, after = output_before(view), view.snapshot_text
        asked = (_asked_about(one, state) for one in read_questions(asked_last(view)))
        about = next((name for name in asked if name), "")
        if not after:
            return questioned(about)
        now = self._met(state, after)
        if not before:
            return first_output(now)
        return compare(
            self._met(state, before),
            now,
            changed=before.strip() != after.strip(),
            about=about,
            complained=any(state.doubts(label) for label in state.wanted),
        )

    def _met(self, state: PersonState, output: str) -> dict[str, float]:
        """How likely each claim that matters is proved; an unread one may be."""
        document = read_document(output)
        met: dict[str, float] = {}
        for label in state.wishes.core:
            looked = label in document and (
                document[label].machine or section_key(document[label]) in state.read
            )
            likely = LIKELY if looked else TOLD
            met[label] = 0.0 if state.is_open(label, document) else likely
        return met

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
        """Accepts their own proof or rewrites it: they read it faster, and overlook errors as often."""
        seconds = _OWN_READING * reading_seconds(section)
        faults = check_section(section, state.document)
        if all(words.random() < OVERLOOKED for _ in faults):
            return Decision((Act("Accept", {"label": section.label}),), seconds)
        again = _written(state, section.label, words)
        return Decision(again.verbs, seconds + _WRITING * len(faults))

    def _own_lemma(self, state: PersonState) -> str:
        return FAMILIES[state.wishes.lemma].label

    def _prove(self, state: PersonState, label: str, words: Random) -> Decision:
        """Tries small cases, since they do not know which claims fail; then writes a proof."""
        stated = state.stated.get(label)
        if stated is not None and label not in state.fails and stated not in state.tried:
            return Decision((Act("FindCounterexample", {"claim": stated}),), _TRYING)
        return _written(state, label, words)


def _asked_about(question: Question, state: PersonState) -> str:
    """The subject of a question, in their words, if they care for it and have not told it; else empty."""
    label = question.label
    match question.about:
        case "core" if not state.said("core"):
            return "what matters most"
        case "lemma" if not state.said("lemma"):
            return "the lemma"
        case "minor" if state.wishes.minor and not state.said("minor"):
            return "the other claims"
        case "form" | "general" if label in state.wanted and not state.said("form", label):
            return f"the form of {label}"
    return ""


def _written(state: PersonState, label: str, words: Random) -> Decision:
    """The output with their own proof in it, and the time that writing takes."""
    family, seed = FAMILIES[state.wishes.lemma], turn_seed(state.view)
    if label == family.label:
        steps = draft(label, family.claim, {}, seed=seed, tries={}, rate=_OWN_SLIPS)
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
        lemma = draft(family.label, family.claim, {}, seed=seed, tries={}, rate=_OWN_SLIPS)
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
