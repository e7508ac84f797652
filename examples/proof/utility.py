"""The utility of proofs: the important claims that are proved and checked, and useful lemmas.

It is measured at the end of each round, for the mathematician's wishes at that time. A claim has weight
3 if the paper rests on it, 1 if it is welcome, and 0 otherwise. A claim scores:

- 1 if its proof holds, it has the wanted form, and the human has read and accepted this very version;
- 0.8 of that if the human has only had the checker run over it, and so does not understand it yet;
- 0.4 of that as long as the human has done neither;
- half of it if it is another form of the claim than the one that is wanted;
- 0.2 for a counterexample to a claim that is false as stated, until a corrected claim is proved;
- -0.5 if the human has checked a proof that does not hold, and found nothing wrong with it.

``U = 0.8 * (weighted mean of the claims, at least 0) + 0.2 * (the lemma)``. The lemma counts 1 if it is
of the kind that the human can use, is proved, and is cited by a proof of a claim that counts, both
read; else 0.8 or 0.4, by what they have done with both.

A version counts as *read* if the human's own ``Check`` found nothing wrong with it, or they
``Accept``-ed it; the agent's word is never enough. So length gains nothing, and no proof scores
fully without the human.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ProfileChanged,
    SessionOpened,
    SnapshotTaken,
)
from ...engine.records import Record
from ...engine.rounds import Round, is_blank
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.fold_utility import FoldUtility
from ...scoring.scorers.utility import Missing, Score, unreadable
from .algebra.classes import is_within
from .language.profiles import read_profile
from .proving.checker import cites, is_proved
from .proving.claims import Claim, Divides, fails_at, holds, read_claim
from .proving.document import Document, Section, read_document, section_key
from .proving.lemmas import family_of
from .wishes import FORMS, Wishes, in_form

__all__ = ("PROOF", "Established", "ProofFold", "fits", "judge", "proof_utility")

PROOF: Final = "proof"
"""Name of the scorer; it also owns the scorer's data in a session's private part."""

_VERSION: Final = "2"
_UNCHECKED: Final = 0.4
_BY_MACHINE: Final = 0.8
_READ: Final = 1.0
_OTHER_FORM: Final = 0.5
_REFUTED: Final = 0.2
_MISLED: Final = -0.5
_CLAIMS: Final = 0.8


class Established(msgspec.Struct, frozen=True):
    """The score of an output: see the module's formula.

    Attributes:
        value: the utility.
        parts: ``claims``, ``lemma``; ``proved``: weighted share of the claims with a proof that holds,
            in whatever form; ``checked``: share that was proved and checked; ``misled``: share with a
            wrong proof that the human believes.
    """

    value: float
    parts: Mapping[str, float]


def judge(
    document: Document, trust: Mapping[str, float], stated: Mapping[str, str], wishes: Wishes
) -> Established:
    """The utility of an output.

    Args:
        document: the output.
        trust: how far the human has checked versions of its sections, by ``section_key``.
        stated: the claims as stated, by label.
        wishes: what the human wants.
    """
    total = sum(wishes.weight(label) for label in stated)
    sums = {"claims": 0.0, "proved": 0.0, "checked": 0.0, "misled": 0.0}
    sound: list[str] = []
    for label, claim in stated.items():
        weight = wishes.weight(label) / total
        section = document.get(label)
        if not weight or section is None:
            continue
        trusted = trust.get(section_key(section), 0.0)
        if is_proved(label, document):
            fit = _fit(section.claim, claim, wishes, label)
            sums["claims"] += weight * fit * max(trusted, _UNCHECKED)
            sums["proved"] += weight * (fit > 0)
            sums["checked"] += weight * (fit > 0 and trusted > 0)
            if fit:
                sound.append(label)
        elif trusted:
            sums["claims"] += weight * _MISLED
            sums["misled"] += weight
        elif _refutes(section, claim):
            sums["claims"] += weight * _REFUTED
    parts = {name: round(max(share, 0.0), 6) for name, share in sums.items()}
    parts["lemma"] = _lemma(document, trust, wishes, sound)
    value = _CLAIMS * parts["claims"] + (1.0 - _CLAIMS) * parts["lemma"]
    return Established(round(min(value, 1.0), 6), parts)


@final
class ProofFold:
    """Follows one session: the output, the checks of it, and the wishes."""

    def __init__(self, stated: Mapping[str, str]) -> None:
        self._stated = stated
        self._wishes: Wishes | None = None
        self._document: Document = {}
        self._readable = True
        self._trust: dict[str, float] = {}
        self._checking: dict[int, tuple[float, str, Document]] = {}

    def feed(self, record: Record) -> None:
        """Takes the next trace record."""
        event = record.event
        if isinstance(event, SessionOpened):
            self._wishes = _wishes(event.private.get(PROOF))
        elif isinstance(event, ProfileChanged):
            profile = read_profile(event.profile)
            self._wishes = profile.now if profile is not None else self._wishes
        elif isinstance(event, SnapshotTaken):
            self._document = read_document(event.content)
            self._readable = bool(self._document) or is_blank(event)
        elif isinstance(event, ActionTaken) and record.role == "human":
            self._act(record.version, event)
        elif isinstance(event, ActionResolved) and event.outcome == "ok":
            level, label, document = self._checking.pop(event.action, (0.0, "", {}))
            found = event.observation
            if label:
                self._pass(level, document, {label: []})
            elif document and isinstance(found, Mapping):
                self._pass(level, document, found)

    def score(self, over: Round) -> Score | Missing:
        """The utility at the end of a round."""
        if self._wishes is None:
            return Missing("the session does not record what its human wants")
        if not self._readable:
            return unreadable()
        judged = judge(self._document, self._trust, self._stated, self._wishes)
        return Score(judged.value, judged.parts)

    def _act(self, version: int, event: ActionTaken) -> None:
        if event.name == "Accept":
            self._checking[version] = (_READ, str(event.arguments.get("label")), self._document)
        elif event.name in ("Check", "Verify"):
            level = _READ if event.name == "Check" else _BY_MACHINE
            self._checking[version] = (level, "", read_document(event.arguments.get("proof")))

    def _pass(self, level: float, document: Document, found: Mapping[str, JSON]) -> None:
        for label, doubts in found.items():
            if label in document:
                key = section_key(document[label])
                self._trust[key] = 0.0 if doubts else max(level, self._trust.get(key, 0.0))


def proof_utility(stated: Mapping[str, str]) -> Scorer:
    """The scorer of the sessions of an instance.

    Args:
        stated: its claims, by label.
    """
    return FoldUtility(PROOF, _VERSION, lambda: ProofFold(stated))


def fits(text: str, stated: str, wishes: Wishes, label: str) -> bool:
    """Whether a claim says all that is wanted in the place of the one that was stated."""
    try:
        return _implies(read_claim(text), in_form(stated, wishes.form(label)))
    except InvalidInput:
        return False


def _wishes(truth: JSON) -> Wishes | None:
    try:
        return msgspec.convert(truth, Wishes)
    except msgspec.ValidationError:
        return None


def _fit(text: str, stated: str, wishes: Wishes, label: str) -> float:
    """How well what was proved fits what is wanted: 1, or half of it, or not at all."""
    claim = read_claim(text)
    if _implies(claim, in_form(stated, wishes.form(label))):
        return 1.0
    others = (in_form(stated, form) for form in FORMS)
    return _OTHER_FORM if any(holds(one) and _implies(claim, one) for one in others) else 0.0


def _implies(claim: Claim, wanted: Claim) -> bool:
    """Whether a claim says at least as much as another one."""
    if not isinstance(claim, Divides) or not isinstance(wanted, Divides):
        return claim == wanted
    same = claim.value == wanted.value and claim.divisor % wanted.divisor == 0
    return same and is_within(wanted.over, claim.over)


def _refutes(section: Section, stated: str) -> bool:
    return section.fails is not None and fails_at(read_claim(stated), section.fails)


def _lemma(
    document: Document, trust: Mapping[str, float], wishes: Wishes, sound: list[str]
) -> float:
    """The lemma's score."""
    best = 0.0
    for label, section in document.items():
        family = family_of(section.claim) if section.kind == "Lemma" else None
        if family is None or family.name != wishes.lemma or not is_proved(label, document):
            continue
        users = [one for one in sound if label in cites(document[one])]
        trusted = trust.get(section_key(section), 0.0)
        for one in users:
            both = min(trusted, trust.get(section_key(document[one]), 0.0))
            best = max(best, both, _UNCHECKED)
    return best
