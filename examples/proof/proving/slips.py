"""Slips: the subtle errors that an agent's proofs carry, at a seeded rate, and the doubts that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Final

import msgspec

from .claims import Claim, Divides
from .document import Step
from .prover import prove

__all__ = ("DOUBTS", "FALSE_ALARMS", "SLIPS", "draft")

SLIPS: Final = 0.35
"""Share of the steps that come out wrong, of those that compute something."""

DOUBTS: Final = 0.5
"""Share of its wrong steps that an agent has a doubt about."""

FALSE_ALARMS: Final = 0.1
"""Share of its right steps that an agent has a doubt about."""

_CASES: Final = 8
"""Cases that are as likely to hold an error as any other step is."""

_NUMBER = re.compile(r"(?<![\^\d])\d+")
_AT = re.compile(r"([A-Z]\d{1,2}) at n(?: ([-+]) (\d+))?")


def draft(
    label: str,
    claim: Claim,
    lemmas: Mapping[str, Divides],
    *,
    seed: str,
    tries: Mapping[str, int],
    rate: float = SLIPS,
    opaque: bool = False,
) -> tuple[Step, ...]:
    """A proof by a writer who slips now and then.

    The same seed, claim and tries give the same proof. A step that is written again is drawn again.

    Args:
        label: the label of the claim.
        claim: the claim to prove.
        lemmas: the lemmas that may be cited, by label.
        seed: the seed of the writer.
        tries: how often a step was written again, by its name.
        rate: share of the steps that come out wrong; of longer lists of cases, more.
        opaque: see ``prove``.
    """
    drawn = f"{seed}/{claim.text}"
    return tuple(
        _drawn(step, f"{drawn}/{step.name}/{tries.get(step.name, 0)}", rate)
        for step in prove(label, claim, lemmas, opaque=opaque)
    )


@lru_cache(maxsize=8192)
def _drawn(step: Step, seed: str, rate: float) -> Step:
    """A step as written: right or wrong, with or without a doubt."""
    random = Random(seed)
    slipped = _slipped(step, random) if random.random() < _share(step, rate) else step
    doubt = random.random() < (DOUBTS if slipped is not step else FALSE_ALARMS)
    return msgspec.structs.replace(slipped, doubt=doubt)


def _share(step: Step, rate: float) -> float:
    """How likely a step is to come out wrong: a list of cases, the likelier the longer it is."""
    cases = step.reason.count("->")
    right: float = (1.0 - rate) ** max(cases / _CASES, 1.0)
    return 1.0 - right


def _slipped(step: Step, random: Random) -> Step:
    """The step with one error in it; unchanged if nothing in it is computed."""
    if step.reason == "expand":
        left, right = step.text.split(" = ")
        return msgspec.structs.replace(step, text=f"{left} = {_other_number(right, random)}")
    if step.reason.startswith("cases"):
        head, cases = step.reason.split(": ")
        listed = cases.split(", ")
        if len(listed) > 2 and random.random() < 0.5:
            listed.pop(random.randrange(1, len(listed)))
        else:
            place = random.randrange(len(listed))
            residue, shown = listed[place].split(" -> ")
            modulus = int(head.split()[-1])
            wrong = int(shown) + modulus * random.choice((-2, -1, 1, 2))
            listed[place] = f"{residue} -> {wrong}"
        return msgspec.structs.replace(step, reason=f"{head}: {', '.join(listed)}")
    at = _AT.fullmatch(step.reason)
    if at is not None:
        shift = int(f"{at[2] or '+'}{at[3] or 0}") + random.choice((-1, 1))
        where = "n" if not shift else f"n {'-' if shift < 0 else '+'} {abs(shift)}"
        return msgspec.structs.replace(step, reason=f"{at[1]} at {where}")
    return step


def _other_number(text: str, random: Random) -> str:
    """A text with one of its numbers off by a little; powers stay."""
    places = list(_NUMBER.finditer(text))
    if not places:
        return f"{text} + 1"
    chosen = random.choice(places)
    number = int(chosen[0]) + random.choice((-1, 1, 2))
    return f"{text[: chosen.start()]}{max(number, 0)}{text[chosen.end() :]}"
