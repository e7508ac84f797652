"""The agent on rules: searches, drafts, verifies, asks and reports on claims.

It double-checks the claims it was told matter: it searches for counterexamples, and has each step
checked before it shows the proof. It writes the remaining proofs without checking them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, final

import msgspec

from ...agents.habits import Habits
from ...engine.events import JSON, ActionResolved, MessageSent, SnapshotTaken
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ...tasks.rule_agent import Question, Standing
from ...users.deferrals import is_deferral
from .algebra.polynomials import evaluated
from .language.agent import PHRASES, Asked, read_questions, taken_for_core
from .language.labels import spell_labels
from .language.mathematician import Heard, read_message
from .proving.claims import Claim, Divides, generalised, holds, read_claim
from .proving.document import (
    Document,
    Section,
    read_document,
    render_document,
    render_section,
    section_key,
)
from .proving.lemmas import FAMILIES
from .proving.prover import lemma_place
from .proving.slips import draft
from .reading import stated_claims
from .wishes import Form, in_form

__all__ = ("ProofPlanner",)

_REDRAWN: Final = 6
"""Times that a step is written again if the result is as wrong as before."""

_SEARCH_AFTER: Final = 2
"""Doubts about one claim after which the agent looks for a counterexample."""


@final
class Knowledge:
    """Folded from the records of one actor's view; see the attributes.

    Attributes:
        stated: the claims as stated, by label.
        core: the labels of the claims that are said to matter most; None until the human has said so.
        minor: those that are welcome too.
        forms: the forms in which claims are wanted.
        lemma: the family of the lemma that is wanted, or proposed; None for none.
        fails: the numbers at which claims are known to fail as stated.
        searched: texts of the claims for which a counterexample was searched.
        results: what the checker said of a version of a section: the steps that it refused.
        doubted: labels of the sections that the human has doubted.
        pressed: whether the human has asked for something better, without saying what.
        tries: how often steps were written again, by name.
        shown: whether the agent has shown an output and said so.
        reported: the versions of the sections that stood when the agent last spoke, by label, and
            whether they were checked by machine.
        said_core: what it last said to take for the core.
        theirs: the sections that the human wrote, by label, as long as nothing speaks against them.
        asked: what was asked, with the label that it was about.
    """

    def __init__(self, view: View) -> None:
        self.me = view.me
        self.seed = f"{view.trait_seed}/{view.me}"
        self.alone = all(one.role != "human" for one in view.participants)
        self.stated = stated_claims(view.request)
        self.core: tuple[str, ...] | None = None
        self.minor: tuple[str, ...] = ()
        self.forms: dict[str, Form] = {}
        self.lemma: str | None = None
        self.fails: dict[str, int] = {}
        self.searched: set[str] = set()
        self.results: dict[str, tuple[str, ...]] = {}
        self.doubted: set[str] = set()
        self.pressed = False
        self.tries: dict[str, int] = {}
        self.shown = False
        self.reported: dict[str, tuple[str, bool]] = {}
        self.said_core: tuple[str, ...] = ()
        self.theirs: dict[str, Section] = {}
        self.asked: set[tuple[Asked, str]] = set()
        self._sections: tuple[Section, ...] | None = None
        self._submitted = False
        self._document: Document = {}
        self._open: tuple[tuple[Asked, str], ...] = ()
        self._read = 0

    def catch_up(self, view: View) -> None:
        """Folds the records that the view has shown since the last time."""
        fresh = view.records[self._read :]
        self._read = len(view.records)
        if fresh:
            self._sections = None
        for record in fresh:
            event = record.event
            if isinstance(event, SnapshotTaken) and record.actor != view.me:
                self._document = read_document(event.content)
                self._take_over(self._document)
            elif isinstance(event, SnapshotTaken):
                self._document = read_document(event.content)
                self._submitted = True
            elif isinstance(event, MessageSent) and event.text != view.request:
                self._message(record.actor, event.text)
            elif isinstance(event, ActionResolved) and event.outcome == "ok":
                action = view.actions.get(event.action)
                if action is not None:
                    self._outcome(action.name, action.arguments, event.observation)

    # --- what follows from it ------------------------------------------------------------------------

    @property
    def targets(self) -> tuple[str, ...]:
        """The labels of the claims to prove."""
        if self.core is None:
            return tuple(self.stated)
        return tuple(one for one in self.stated if one in self.core or one in self.minor)

    def form(self, label: str) -> Form:
        """The form in which a claim is to be proved; as stated unless the human says otherwise."""
        return self.forms.get(label, "stated")

    def claim(self, label: str) -> Claim:
        """The claim to prove."""
        return in_form(self.stated[label], self.form(label))

    def open_forms(self) -> tuple[str, ...]:
        """The targets that are known to be false as stated, and for which no form is wanted yet."""
        return tuple(one for one in self.targets if one in self.fails and one not in self.forms)

    def general(self) -> Iterator[tuple[str, str]]:
        """The targets that hold for more n than stated, with the words for those n."""
        for label in self.targets:
            claim = read_claim(self.stated[label])
            if label in self.forms or not isinstance(claim, Divides) or not holds(claim):
                continue
            wide = generalised(claim)
            if wide is not None:
                yield label, wide.over.text

    def best_lemma(self) -> str | None:
        """The family of the lemma that serves most of the targets; None if no lemma serves any."""
        serves = {
            name: sum(self._serves(label, name) for label in self.targets) for name in FAMILIES
        }
        best = max(sorted(serves), key=lambda name: serves[name])
        return best if serves[best] else None

    def sections(self) -> tuple[Section, ...]:
        """The sections of the output as the agent would write it now."""
        if self._sections is None:
            self._sections = self._written()
        return self._sections

    def _written(self) -> tuple[Section, ...]:
        found = [self._lemma_section()] if self.lemma is not None else []
        found += [self._section(label) for label in self.targets]
        return tuple(one for one in found if one is not None)

    def proof_of(self, section: Section) -> str:
        """A section as it is given to the checker, with the first line of the lemma that it may cite."""
        if section.kind == "Lemma" or self.lemma is None:
            return render_section(section)
        family = FAMILIES[self.lemma]
        head = render_section(Section("Lemma", family.label, family.text))
        return f"{head}\n\n{render_section(section)}"

    def verdict(self, section: Section) -> tuple[str, ...] | None:
        """The steps that the checker refused in this version; None if it has not seen it."""
        return self.results.get(section_key(section))

    def attempts(self, label: str) -> int:
        """How many versions of a section the checker has refused."""
        return sum(1 for key, bad in self.results.items() if bad and _label(key) == label)

    def _serves(self, label: str, family: str) -> bool:
        claim = self.claim(label)
        if not isinstance(claim, Divides):
            return False
        return lemma_place(claim, FAMILIES[family].claim) is not None

    def _lemma_section(self) -> Section | None:
        if self.lemma is None or not any(self._serves(one, self.lemma) for one in self.targets):
            return None
        family = FAMILIES[self.lemma]
        steps = draft(family.label, family.claim, {}, seed=self.seed, tries=self.tries)
        return self._marked(Section("Lemma", family.label, family.text, steps=steps))

    def _section(self, label: str) -> Section:
        if label in self.theirs:
            return self._marked(self.theirs[label])
        fails = self.fails.get(label)
        if fails is not None and label not in self.forms:
            return Section("Claim", label, self.stated[label], fails)
        claim = self.claim(label)
        lemmas: Mapping[str, Divides] = {}
        if self.lemma is not None:
            family = FAMILIES[self.lemma]
            lemmas = {family.label: family.claim}
        steps = draft(label, claim, lemmas, seed=self.seed, tries=self.tries, opaque=self.alone)
        return self._marked(Section("Claim", label, claim.text, fails, steps))

    def _marked(self, section: Section) -> Section:
        """The section, marked with the checker's verdict instead of the agent's own doubts."""
        verdict = self.verdict(section)
        if verdict is None:
            return section
        steps = tuple(
            msgspec.structs.replace(step, doubt=step.name in verdict) for step in section.steps
        )
        return msgspec.structs.replace(section, steps=steps, machine=not verdict)

    # --- folding -----------------------------------------------------------------------------------

    def _take_over(self, document: Document) -> None:
        """Keeps the sections that the human has rewritten."""
        own = {section.label: section_key(section) for section in self._written()}
        for label, section in document.items():
            if label in self.stated and section.steps and own.get(label) != section_key(section):
                self.theirs[label] = section
                if section.fails is not None:
                    self.fails[label] = section.fails
                    self.forms.setdefault(label, _form_of(section, self.stated[label]))

    def _message(self, actor: str, text: str) -> None:
        if actor == self.me:
            self.shown = self.shown or self._submitted
            self.reported = {
                one.label: (section_key(one), one.machine) for one in self._document.values()
            }
            self.said_core = tuple(taken_for_core(text) or self.said_core)
            asked = tuple((one.about, one.label) for one in read_questions(text))
            self.asked.update(asked)
            self._open = asked
            return
        heard = read_message(text, tuple(self.stated))
        for one in heard:
            self._hear(one)
        if not any(one.topic != "doubt" for one in heard):
            self._decide_alone(deferred=is_deferral(text))
        self._open = ()

    def _hear(self, one: Heard) -> None:
        match one.topic:
            case "core":
                self.core = one.labels
                self.minor = tuple(label for label in self.minor if label not in one.labels)
            case "gained" | "missing":
                before = self.core if self.core is not None else ()
                self.core = (*before, *(label for label in one.labels if label not in before))
            case "minor":
                fresh = (label for label in one.labels if label not in (self.core or ()))
                self.minor = tuple(dict.fromkeys((*self.minor, *fresh)))
            case "later":
                self.minor = tuple(label for label in self.minor if label not in one.labels)
                if self.core is not None:
                    self.core = tuple(label for label in self.core if label not in one.labels)
            case "form" if one.value == "stated" and one.labels[0] in self.fails:
                pass  # that cannot be
            case "form":
                self.theirs.pop(one.labels[0], None)
                self.forms[one.labels[0]] = _form(one.value)
            case "again":
                self.pressed = True
            case "lemma":
                self.lemma = one.value
            case "doubt":
                label = one.value.split(".")[0]
                self.doubted.add(label)
                self.theirs.pop(label, None)
                self.tries[one.value] = self.tries.get(one.value, 0) + 1

    def _decide_alone(self, *, deferred: bool) -> None:
        """Takes an answer that says nothing as leave to decide what was asked."""
        for about, label in self._open:
            if about == "form" and label in self.stated:
                self.forms.setdefault(label, "restrict")
            elif about == "lemma" and deferred and self.lemma is None:
                self.lemma = self.best_lemma()

    def _outcome(self, name: str, arguments: Mapping[str, JSON], observation: JSON) -> None:
        if name == "FindCounterexample" and isinstance(observation, Mapping):
            claim, found = str(arguments.get("claim")), observation.get("n")
            self.searched.add(claim)
            for label, stated in self.stated.items():
                if isinstance(found, int) and read_claim(claim) == read_claim(stated):
                    self.fails[label] = found
        elif name == "Verify" and isinstance(observation, Mapping):
            document = read_document(arguments.get("proof"))
            for label, faults in observation.items():
                if label in document and isinstance(faults, list | tuple):
                    self._verified(document[label], faults)

    def _verified(self, section: Section, faults: object) -> None:
        found = faults if isinstance(faults, list | tuple) else ()
        steps = tuple(dict.fromkeys(str(one["step"]) for one in found if isinstance(one, Mapping)))
        self.results[section_key(section)] = steps
        if steps:
            self.theirs.pop(section.label, None)
        for _ in range(_REDRAWN):
            for step in steps:
                self.tries[step] = self.tries.get(step, 0) + 1
            written = self._lemma_section() if section.kind == "Lemma" else None
            written = written or (
                self._section(section.label) if section.label in self.stated else None
            )
            steps = (self.verdict(written) or ()) if written is not None else ()
            if not steps:
                return

    def suspicious(self) -> tuple[str, ...]:
        """Targets that were doubted or refused so often that they may be false."""
        return tuple(label for label in self.targets if self._rewrites(label) >= _SEARCH_AFTER)

    def _rewrites(self, label: str) -> int:
        return sum(times for step, times in self.tries.items() if step.split(".")[0] == label)


def _form_of(section: Section, stated: str) -> Form:
    """The form that a mended claim has."""
    forms: tuple[Form, ...] = ("restrict", "weaken")
    return next((one for one in forms if in_form(stated, one).text == section.claim), "restrict")


def _label(key: str) -> str:
    return key.split(":", 1)[0].rsplit(maxsplit=1)[-1]


def _form(value: str) -> Form:
    return next(one for one in ("restrict", "weaken", "general", "stated") if one == value)


# --- what an agent on rules does about claims -----------------------------------------------------


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
        self._known: tuple[View, str, Knowledge] | None = None

    def know(self, view: View) -> Knowledge:
        """Everything the agent knows so far; in one session, the same object each time."""
        held = self._known
        if held is None or held[0] is not view or held[1] != view.request:
            held = self._known = (view, view.request, Knowledge(view))
        held[2].catch_up(view)
        return held[2]

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
        """Reports which claims are checked, unchecked or false, and which the agent takes to matter."""
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
        """The labels of the sections worth checking: those that matter, those in doubt, and lemmas."""
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
        """Says at which n a claim fails, and why."""
        claim, n = read_claim(known.stated[label]), known.fails[label]
        if not isinstance(claim, Divides):
            return f"{label} fails at n = {n}."
        value = evaluated(claim.value, n)
        return PHRASES.say("fails", words, label=label, n=n, divisor=claim.divisor, value=value)


def _verify(known: Knowledge, section: Section) -> Decision:
    return Decision((Act("Verify", {"proof": known.proof_of(section)}),))
