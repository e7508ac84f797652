"""The checker: whether each step of a proof follows, by exact arithmetic over a canonical form.

The reasons that it knows:

- ``[expand]``: both sides of ``P = Q`` are the same polynomial.
- ``[cases mod 8: 1 -> 0, 3 -> 24]``: for ``8 divides P for odd n``: each remainder that n can leave is
  listed with the value of P there, and the value is a multiple.
- ``[L1 at n + 2]``: the claim is what the lemma says with ``n + 2`` in the place of n.
- ``[from A.1, A.2]``: A.1 writes P as a multiple of Q plus a rest that the divisor divides, and A.2
  says that it divides Q.
- ``[together A.3, A.4]``: divisors of the same P without a common factor, multiplied.
- ``[induction A.1]``: A.1 says how much the total grows from n - 1 to n; at 0 it is 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ..algebra.classes import is_within
from ..algebra.expressions import read_polynomial
from ..algebra.polynomials import Polynomial, composed, divided, evaluated, scaled
from .claims import Divides, SumIs, read_claim
from .document import Document, Section, Step

__all__ = (
    "Fault",
    "check_section",
    "cites",
    "is_proved",
    "is_reason",
    "read_cases",
    "read_identity",
)

_CASES = re.compile(r"cases mod (\d{1,4}): (.+)")
_CASE = re.compile(r"(\d{1,9}) -> (-?\d{1,200})")
_LEMMA = re.compile(r"([A-Z]\d{1,2}) at (.+)")
_FROM = re.compile(r"from (\S+), (\S+)")
_TOGETHER = re.compile(r"together (.+)")
_INDUCTION = re.compile(r"induction (\S+)")
_MOST: Final = 60
"""Steps of a proof that are checked; a longer one is refused."""


class Fault(msgspec.Struct, frozen=True):
    """A place where a proof does not hold, and why.

    Attributes:
        step: name of the step; of the section if it has no proof or a line cannot be read.
        why: in words.
    """

    step: str
    why: str


def check_section(section: Section, document: Document) -> list[Fault]:
    """The faults in a section's proof; empty if it proves its claim.

    Lemmas that it cites are taken as they are stated: their own proofs are checked by themselves.

    Args:
        section: the section.
        document: the document with the lemmas.
    """
    try:
        claim = read_claim(section.claim)
    except InvalidInput as error:
        return [Fault(section.label, str(error))]
    faults = [Fault(section.label, f"this cannot be read: {line}") for line in section.unread]
    if not section.steps or len(section.steps) > _MOST:
        return [*faults, Fault(section.label, f"a proof has 1 to {_MOST} steps")]
    before: dict[str, Step] = {}
    for step in section.steps:
        try:
            if section.kind == "Lemma" and _LEMMA.fullmatch(step.reason):
                raise InvalidInput("a lemma is proved without other lemmas")
            _check(step, before, document)
        except InvalidInput as error:
            faults.append(Fault(step.name, str(error)))
        before[step.name] = step
    last = section.steps[-1]
    if not _says(last, claim):
        faults.append(Fault(last.name, f"this is not what is to be proved: {claim.text}"))
    return faults


def is_proved(label: str, document: Document) -> bool:
    """Whether the proof of a section holds, and those of the lemmas that it cites."""
    section = document.get(label)
    if section is None or check_section(section, document):
        return False
    return all(not check_section(document[lemma], document) for lemma in cites(section))


def cites(section: Section) -> frozenset[str]:
    """The labels of the lemmas that a proof cites."""
    matches = (_LEMMA.fullmatch(step.reason) for step in section.steps)
    return frozenset(match[1] for match in matches if match is not None)


def read_identity(text: str) -> tuple[Polynomial, Polynomial]:
    """Both sides of ``P = Q``.

    Raises:
        InvalidInput: it is none.
    """
    sides = text.split("=")
    if len(sides) != 2:
        raise InvalidInput(f"{text!r} is not an identity; write P = Q")
    return read_polynomial(sides[0].strip()), read_polynomial(sides[1].strip())


def is_reason(text: str) -> bool:
    """Whether a reason is of a form that is known here."""
    forms = (_CASES, _LEMMA, _FROM, _TOGETHER, _INDUCTION)
    return text == "expand" or any(form.fullmatch(text) for form in forms)


def read_cases(reason: str) -> tuple[int, Mapping[int, int]] | None:
    """The modulus and the listed values of a step by cases; None for a step of another kind."""
    match = _CASES.fullmatch(reason)
    if match is None:
        return None
    listed = {int(case[1]): int(case[2]) for case in _CASE.finditer(match[2])}
    return int(match[1]), listed


def _says(step: Step, claim: Divides | SumIs) -> bool:
    try:
        return read_claim(step.text) == claim
    except InvalidInput:
        return False


def _check(step: Step, before: Mapping[str, Step], document: Document) -> None:
    if step.reason == "expand":
        left, right = read_identity(step.text)
        if left != right:
            raise InvalidInput("the two sides are not the same polynomial")
        return
    claim = read_claim(step.text)
    induction = _INDUCTION.fullmatch(step.reason)
    if isinstance(claim, SumIs):
        if induction is None:
            raise InvalidInput("a sum is proved by induction")
        _check_induction(claim, _cited(induction[1], before))
        return
    cases = read_cases(step.reason)
    if cases is not None:
        _check_cases(claim, *cases)
    elif (lemma := _LEMMA.fullmatch(step.reason)) is not None:
        _check_lemma(claim, lemma[1], lemma[2], document)
    elif (parts := _FROM.fullmatch(step.reason)) is not None:
        _check_multiple(claim, _cited(parts[1], before), _cited(parts[2], before))
    elif (names := _TOGETHER.fullmatch(step.reason)) is not None:
        cited = [_divides(_cited(name, before)) for name in names[1].split(", ")]
        _check_together(claim, cited)
    else:
        raise InvalidInput(f"{step.reason!r} is not a known reason")


def _check_cases(claim: Divides, modulus: int, listed: Mapping[int, int]) -> None:
    if modulus % claim.divisor or modulus > 5_000:
        raise InvalidInput(f"cases mod {modulus} do not decide divisibility by {claim.divisor}")
    for residue in claim.over.modulo(modulus):
        if residue not in listed:
            raise InvalidInput(f"the case n = {residue} mod {modulus} is missing")
    for residue, value in listed.items():
        if evaluated(claim.value, residue) != value:
            right = evaluated(claim.value, residue)
            raise InvalidInput(f"at n = {residue} the value is {right}, and not {value}")
        if value % claim.divisor and residue in claim.over.modulo(modulus):
            raise InvalidInput(f"{claim.divisor} does not divide {value}, the value at {residue}")


def _check_lemma(claim: Divides, label: str, at: str, document: Document) -> None:
    if label not in document or document[label].kind != "Lemma":
        raise InvalidInput(f"unknown lemma {label}")
    lemma = read_claim(document[label].claim)
    place = read_polynomial(at)
    if not isinstance(lemma, Divides) or len(place) != 2 or place[1] != 1:
        raise InvalidInput(f"{label} at {at} is not a valid use of a lemma; write {label} at n + 1")
    if composed(lemma.value, place) != claim.value:
        raise InvalidInput(f"{label} at {at} is about another value")
    if lemma.divisor % claim.divisor:
        raise InvalidInput(f"{label} is about {lemma.divisor}, not {claim.divisor}")
    if not is_within(claim.over.shifted(place[0]), lemma.over):
        raise InvalidInput(f"{label} is for {lemma.over.text} only")


def _check_multiple(claim: Divides, identity: Step, known: Step) -> None:
    left, _ = read_identity(identity.text)
    other = _divides(known)
    if identity.reason != "expand" or left != claim.value:
        raise InvalidInput(f"{identity.name} does not say what {claim.text.split(' for ')[0]} is")
    try:
        _, rest = divided(claim.value, other.value)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if any(coefficient % claim.divisor for coefficient in rest):
        raise InvalidInput(f"the rest is not a multiple of {claim.divisor}")
    if other.divisor % claim.divisor or not is_within(claim.over, other.over):
        raise InvalidInput(f"{known.name} does not say enough")


def _check_together(claim: Divides, cited: Sequence[Divides]) -> None:
    product = 1
    for one in cited:
        if one.value != claim.value or not is_within(claim.over, one.over):
            raise InvalidInput(f"{one.text} is about something else")
        if gcd(product, one.divisor) > 1:
            raise InvalidInput(f"{product} and {one.divisor} have a common factor")
        product *= one.divisor
    if product % claim.divisor:
        raise InvalidInput(f"that gives {product}, and not {claim.divisor}")


def _check_induction(claim: SumIs, identity: Step) -> None:
    left, _ = read_identity(identity.text)
    if evaluated(claim.total, 0):
        raise InvalidInput("at n = 0 the total is not 0")
    if identity.reason != "expand" or left != claim.step:
        raise InvalidInput(f"{identity.name} does not say how the total grows")
    if claim.step != scaled(claim.term, claim.factor):
        raise InvalidInput("the total does not grow by the next term")


def _cited(name: str, before: Mapping[str, Step]) -> Step:
    if name not in before:
        raise InvalidInput(f"no earlier step {name}")
    return before[name]


def _divides(step: Step) -> Divides:
    claim = read_claim(step.text)
    if not isinstance(claim, Divides):
        raise InvalidInput(f"{step.name} is not about divisibility")
    return claim
