"""The lemmas that may be proposed: three families, each of use to several claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from .claims import Divides, read_claim

__all__ = ("FAMILIES", "Family", "family_of")


class Family(msgspec.Struct, frozen=True):
    """A kind of lemma.

    Attributes:
        name: the name of the family, as one speaks of it.
        label: the label of its lemma in a document.
        text: the lemma's statement.
    """

    name: str
    label: str
    text: str

    @property
    def claim(self) -> Divides:
        """The parsed statement of the lemma."""
        claim = read_claim(self.text)
        if not isinstance(claim, Divides):
            raise InvalidInput(f"lemma {self.label} is about no divisibility")
        return claim


FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family
    for family in (
        Family("consecutive", "L1", "6 divides n*(n + 1)*(n + 2) for all n"),
        Family("squares", "L2", "8 divides n^2 - 1 for odd n"),
        Family("powers", "L3", "30 divides n^5 - n for all n"),
    )
}
"""The families by name."""


def family_of(text: str) -> Family | None:
    """The family whose lemma a text states, in whatever way; None if it is of none."""
    try:
        claim = read_claim(text)
    except InvalidInput:
        return None
    return next((family for family in FAMILIES.values() if family.claim == claim), None)
