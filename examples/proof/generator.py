"""Invents instances: six claims, some of them false or too narrow, and what their author wants of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Final, Literal, TypeAlias

import msgspec

from ...engine.errors import InvalidInput
from ...tasks.kit import index_of
from .algebra.classes import ALL, NAMED, Class, fixed_divisor
from .algebra.polynomials import (
    Polynomial,
    added,
    composed,
    multiplied,
    polynomial,
    scaled,
)
from .proving.claims import Claim, Divides, SumIs, counterexample, generalised, holds, read_claim
from .proving.document import Section, render_document
from .proving.lemmas import FAMILIES
from .proving.prover import lemma_place, prime_powers, prove
from .wishes import Form, Profile, Wishes, in_form

__all__ = ("LABELS", "Instance", "best_document", "make_instance")

LABELS: Final = "ABCDEF"
"""Labels of the claims of an instance."""

_Sort: TypeAlias = Literal["true", "false", "narrow", "sum"]
_SORTS: Final[tuple[_Sort, ...]] = ("true", "true", "false", "false", "narrow", "sum")
_ODD: Final = NAMED["odd n"]
_SPECIAL: Final = tuple(
    NAMED[name] for name in ("odd n", "even n", "n not divisible by 3", "n not divisible by 5")
)
_POWER: Final = 16
"""The largest power of a prime in a divisor: its cases have to fit on a line."""
_DIVISOR: Final = 720
_WEAKEST: Final = 2
"""A smaller divisor than this is worth no theorem."""
_SIZE: Final = 60
"""The largest coefficient."""
_TRIES: Final = 4_000

_REQUESTS: Final = (
    "I am writing up a paper and need these claims proved. Can you help?",
    "Could you help me to prove the following? They are from my notes.",
    "Here are some claims from a draft of mine. I would like to have proofs of them.",
    "Please help me with the proofs of these claims.",
)


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A set of claims, and the profile of the mathematician who wants them proved.

    Attributes:
        name: the name of the instance.
        request: their first message: the claims as stated, and nothing about their importance.
        claims: the claims as stated, by label.
        profile: their wishes.
        seed: for all chance in the instance's environment.
    """

    name: str
    request: str
    claims: Mapping[str, str]
    profile: Profile
    seed: str


@lru_cache(maxsize=512)
def make_instance(name: str, seed: int) -> Instance:
    """The instance of a number under a seed; always the same.

    Raises:
        InvalidInput: the name is no number from 0.
    """
    index_of(name)
    for attempt in range(_TRIES):
        found = _attempt(name, seed, Random(f"proof/{seed}/{name}/{attempt}"))
        if found is not None:
            return found
    raise InvalidInput(f"instance {name!r} under seed {seed} could not be made")


def _attempt(name: str, seed: int, random: Random) -> Instance | None:
    """An instance; None if two claims are alike, or no claim that matters can use the lemma."""
    families = random.sample(sorted(FAMILIES), 2)
    sorts = list(_SORTS)
    random.shuffle(sorts)
    order = [families[0], families[0], families[0], families[1], families[1]]
    random.shuffle(order)
    claims: dict[str, str] = {}
    of: dict[_Sort, list[str]] = {"true": [], "false": [], "narrow": [], "sum": []}
    for label, sort in zip(LABELS, sorts, strict=True):
        claims[label] = _sum(random) if sort == "sum" else _divides(order.pop(), sort, random)
        of[sort].append(label)
    profile = _profile(claims, of, families[0], random)
    if profile is None or len(set(claims.values())) < len(claims):
        return None
    listed = "\n".join(f"{label}: {claim}" for label, claim in claims.items())
    return Instance(
        name=name,
        request=f"{random.choice(_REQUESTS)}\n{listed}",
        claims=claims,
        profile=profile,
        seed=f"{seed}/{name}",
    )


def best_document(instance: Instance) -> str:
    """An output that satisfies all that is wanted in the end, with sound proofs."""
    wishes = instance.profile.later or instance.profile.now
    family = FAMILIES[wishes.lemma]
    sections = [
        Section("Lemma", family.label, family.text, steps=prove(family.label, family.claim, {}))
    ]
    for label in sorted({*wishes.core, *wishes.minor}):
        stated = instance.claims[label]
        claim = in_form(stated, wishes.form(label))
        steps = prove(label, claim, {family.label: family.claim})
        fails = counterexample(read_claim(stated))
        sections.append(Section("Claim", label, claim.text, fails, steps))
    return render_document(sections)


# --- claims -----------------------------------------------------------------------------------------


def _divides(family: str, sort: _Sort, random: Random) -> str:
    """A claim of a sort in which the lemma of a family is of use."""
    lemma = FAMILIES[family].claim
    for _ in range(_TRIES):
        value = _value(lemma, random)
        claim = _claim(value, lemma, sort, random)
        if claim is not None and _is_fit(claim, sort, lemma):
            return claim.text
    raise InvalidInput(f"no {sort} claim about {family} was found in {_TRIES} tries")


def _value(lemma: Divides, random: Random) -> Polynomial:
    """A multiple of the lemma's value somewhere, plus a multiple of its divisor."""
    inner = composed(lemma.value, polynomial(random.randint(-3, 3), 1))
    room = 6 - len(inner)
    factor = polynomial(*(random.randint(-3, 3) for _ in range(max(room, 0))), 1)
    rest = polynomial(*(random.randint(-2, 2) for _ in range(random.randint(1, 3))))
    return added(multiplied(inner, factor), scaled(rest, lemma.divisor))


def _claim(value: Polynomial, lemma: Divides, sort: _Sort, random: Random) -> Divides | None:
    everywhere = fixed_divisor(value, ALL)
    special = _ODD if lemma.over == _ODD else random.choice(_SPECIAL)
    there = fixed_divisor(value, special)
    if sort == "false":
        fits = everywhere > _WEAKEST and there > everywhere
        return Divides(there, value, ALL) if fits else None
    if sort == "narrow":
        return Divides(everywhere, value, special) if everywhere > _WEAKEST else None
    over: Class = lemma.over
    divisor = fixed_divisor(value, over)
    return Divides(divisor, value, over) if divisor > _WEAKEST else None


def _is_fit(claim: Divides, sort: _Sort, lemma: Divides) -> bool:
    value, divisor = claim.value, claim.divisor
    if not 4 < divisor <= _DIVISOR or max(prime_powers(divisor)) > _POWER:
        return False
    if not value or value[0] or max(map(abs, value)) > _SIZE or len(value) > 7:
        return False  # a constant would show much at n = 0
    if sort == "false":
        other = in_form(claim.text, "restrict")
        known = other != claim and holds(other) and 1 <= (counterexample(claim) or 0) <= 6
        return known and isinstance(other, Divides) and lemma_place(other, lemma) is not None
    wide = generalised(claim)
    if sort == "narrow":
        return wide is not None and wide.over == ALL
    return wide is None and lemma_place(claim, lemma) is not None


def _sum(random: Random) -> str:
    """A true closed form of a sum: of the growth of a polynomial that is 0 at 0."""
    for _ in range(_TRIES):
        total = polynomial(0, *(random.randint(-4, 6) for _ in range(random.randint(1, 2))), 1)
        total = scaled(total, random.randint(1, 3))
        shape = SumIs(1, (), total)
        claim: Claim = SumIs(1, shape.step, total)
        if len(shape.step) > 1:
            return claim.text
    raise InvalidInput(f"no sum was found in {_TRIES} tries")


# --- the profile ------------------------------------------------------------------------------------


def _profile(
    claims: Mapping[str, str], of: Mapping[_Sort, list[str]], lemma: str, random: Random
) -> Profile | None:
    """The wishes of the claims' author, before and after they see that one of the claims is false.

    None if the lemma is of use to no other claim.
    """
    hinge = random.choice(of["false"])
    useful = [label for label in claims if label != hinge and _serves(claims[label], lemma)]
    if not useful:
        return None
    random.shuffle(useful)
    others = [label for label in claims if label != hinge and label not in useful[:1]]
    random.shuffle(others)
    first, gained, minor = others[:3]
    forms: dict[str, Form] = {}
    for label in of["narrow"]:
        forms[label] = random.choice(("stated", "general"))
    mended: dict[str, Form] = dict(forms)
    for label in of["false"]:
        mended[label] = random.choice(("restrict", "weaken"))
    core = sorted({hinge, *useful[:1], first})
    now = Wishes(core=tuple(core), minor=(minor,), forms=forms, lemma=lemma)
    after = sorted({hinge, *useful[:1], gained})
    later = Wishes(
        core=tuple(after), minor=tuple(sorted((minor, first))), forms=mended, lemma=lemma
    )
    return Profile(
        now=now,
        later=later,
        turns=tuple(of["false"]),
    )


def _serves(stated: str, lemma: str) -> bool:
    claim = read_claim(stated)
    place = isinstance(claim, Divides) and lemma_place(claim, FAMILIES[lemma].claim)
    return bool(place) and holds(claim)
