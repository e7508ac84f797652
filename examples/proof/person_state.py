"""What the mathematician knows and wants at one moment, folded from their view and their profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ...engine.events import JSON, ActionResolved, MessageSent, SnapshotTaken
from ...engine.session.view import View
from .language.agent import counterexamples_in, taken_for_core
from .language.mathematician import Heard, read_message
from .language.profiles import read_profile
from .proving.checker import cites
from .proving.claims import fails_at, read_claim
from .proving.document import Document, Section, read_document, section_key
from .proving.lemmas import FAMILIES, family_of
from .reading import stated_claims
from .utility import fits
from .wishes import Profile, Wishes

__all__ = ("TIME_AT_HAND", "Doubt", "PersonState")

TIME_AT_HAND: Final = 2_100.0
"""Seconds that the mathematician has for the whole of it."""

Doubt = tuple[str, str]
"""The name of a step that looks wrong, and why."""


@final
class PersonState:
    """Folded from a view; see the attributes.

    Attributes:
        view: what they see.
        profile: theirs, as it stands.
        wishes: what they want now.
        stated: the claims as stated.
        document: the output as it stands.
        read: what they, or the checker, found in a version of a section: doubts, or none.
        understood: the versions of sections that they have read with care themselves.
        mine: the versions of sections that they wrote themselves.
        fails: the claims that they know to fail, and where.
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
        """What they found in a section as it stands; None if they have not checked it."""
        section = self.document.get(label)
        return None if section is None else self.read.get(section_key(section))

    def is_understood(self, label: str) -> bool:
        """Whether they have read a section as it stands with care."""
        section = self.document.get(label)
        return section is not None and section_key(section) in self.understood

    def is_settled(self, label: str, document: Document | None = None) -> bool:
        """Whether a claim is proved in the right form, as far as they know, and they have checked it."""
        section = (self.document if document is None else document).get(label)
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
        """The labels of what counts, what matters most first."""
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
        """Takes in where claims are said to fail; they try it out, and believe no wrong one."""
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
