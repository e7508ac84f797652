"""The prover: writes a proof of any claim of this system, which is sound if the claim is true.

For a false claim it writes the nearest thing to a proof, leaving out the cases at which the claim
fails. The checker rejects that; a reader may overlook it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd

from ..algebra.classes import is_within
from ..algebra.polynomials import (
    Polynomial,
    composed,
    divided,
    evaluated,
    polynomial,
    scaled,
    spelled,
)
from .claims import Claim, Divides, SumIs
from .document import Step

__all__ = ("lemma_place", "prime_powers", "prove", "show_cases")

_LONGEST = 60
"""The largest divisor whose cases are listed in one step."""
_SHIFTS = (0, 1, -1, 2, -2, 3, -3, 4, -4)


def prove(
    label: str, claim: Claim, lemmas: Mapping[str, Divides], *, opaque: bool = False
) -> tuple[Step, ...]:
    """A proof, step by step.

    Args:
        label: the label of the claim; names the steps.
        claim: the claim to prove.
        lemmas: the lemmas that may be cited, by label; the first useful one is cited.
        opaque: do not take the claim apart: one long list of cases, as far as that fits.
    """
    if opaque and isinstance(claim, Divides) and claim.divisor <= _LONGEST:
        writer = _Writer(label, claim)
        writer.by_cases(claim.divisor)
        return tuple(writer.steps)
    return _prove(label, claim, tuple(lemmas.items()))


@lru_cache(maxsize=4096)
def _prove(label: str, claim: Claim, lemmas: tuple[tuple[str, Divides], ...]) -> tuple[Step, ...]:
    if isinstance(claim, SumIs):
        return _by_induction(label, claim)
    writer = _Writer(label, claim)
    powers = prime_powers(claim.divisor)
    parts: list[tuple[int, str]] = []
    for name, lemma in lemmas:
        place = lemma_place(claim, lemma)
        if place is not None:
            covered, shift = place
            parts.append((covered, writer.by_lemma(name, lemma, covered, shift)))
            powers = [power for power in powers if covered % power]
            break
    parts += [(power, writer.by_cases(power)) for power in powers]
    if len(parts) > 1:
        writer.step(claim.text, f"together {', '.join(name for _, name in parts)}")
    return tuple(writer.steps)


@lru_cache(maxsize=4096)
def lemma_place(claim: Divides, lemma: Divides) -> tuple[int, int] | None:
    """How much of a claim's divisor a lemma accounts for, and at which shift of n.

    None if it is of no use.
    """
    best: tuple[int, int] | None = None
    for shift in _SHIFTS:
        inner = composed(lemma.value, polynomial(shift, 1))
        if len(inner) > len(claim.value) or not is_within(claim.over.shifted(shift), lemma.over):
            continue
        _, rest = divided(claim.value, inner)
        common = gcd(claim.divisor, lemma.divisor, *rest)
        covered = 1
        for power in prime_powers(claim.divisor):
            covered *= power if common % power == 0 else 1
        if covered > 1 and (best is None or covered > best[0]):
            best = (covered, shift)
    return best


def prime_powers(number: int) -> list[int]:
    """The powers of primes whose product a number is, in order of the primes."""
    found: list[int] = []
    prime = 2
    while number > 1:
        power = 1
        while number % prime == 0:
            power *= prime
            number //= prime
        if power > 1:
            found.append(power)
        prime += 1
    return found


def show_cases(value: Polynomial, modulus: int, residues: tuple[int, ...]) -> str:
    """The reason of a step by cases, with the values of a polynomial."""
    cases = ", ".join(f"{residue} -> {evaluated(value, residue)}" for residue in residues)
    return f"cases mod {modulus}: {cases}"


def _by_induction(label: str, claim: SumIs) -> tuple[Step, ...]:
    total = spelled(claim.total)
    before = spelled(composed(claim.total, polynomial(-1, 1)))
    grows = spelled(scaled(claim.term, claim.factor))
    return (
        Step(f"{label}.1", f"({total}) - ({before}) = {grows}", "expand"),
        Step(f"{label}.2", claim.text, f"induction {label}.1"),
    )


class _Writer:
    """Collects the steps of one proof."""

    def __init__(self, label: str, claim: Divides) -> None:
        self.steps: list[Step] = []
        self._label = label
        self._claim = claim

    def step(self, text: str, reason: str) -> str:
        name = f"{self._label}.{len(self.steps) + 1}"
        self.steps.append(Step(name, text, reason))
        return name

    def by_cases(self, power: int) -> str:
        value, over = self._claim.value, self._claim.over
        residues = over.modulo(power)
        shown = tuple(r for r in residues if evaluated(value, r) % power == 0)
        return self.step(self._says(power, value), show_cases(value, power, shown or residues[:1]))

    def by_lemma(self, name: str, lemma: Divides, covered: int, shift: int) -> str:
        value = self._claim.value
        inner = composed(lemma.value, polynomial(shift, 1))
        quotient, rest = divided(value, inner)
        times = f"({spelled(inner)})*({spelled(quotient)})"
        right = f"{times} + ({spelled(rest)})" if rest else times
        identity = self.step(f"{spelled(value)} = {right}", "expand")
        at = f"{name} at {spelled(polynomial(shift, 1))}"
        cited = self.step(self._says(covered, inner), at)
        return self.step(self._says(covered, value), f"from {identity}, {cited}")

    def _says(self, divisor: int, value: Polynomial) -> str:
        return Divides(divisor, value, self._claim.over).text
