"""The mathematician's wishes: the claims that matter, their forms, and a lemma of use to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from .proving.claims import Claim, Divides, generalised, read_claim, restricted, weakened

__all__ = ("FORMS", "Form", "Profile", "Wishes", "in_form")

Form: TypeAlias = Literal["stated", "restrict", "weaken", "general"]
"""In which form a claim is wanted: as stated; for fewer n with the same divisor; for the same n with a
smaller divisor; for more n.
"""

FORMS: tuple[Form, ...] = ("stated", "restrict", "weaken", "general")
"""The forms."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """A mathematician's wishes for a set of claims.

    Attributes:
        core: labels of the claims that matter.
        minor: labels of those that are welcome too.
        forms: the form in which a claim is wanted, if not as stated.
        lemma: the family of the lemma that they can use elsewhere.
    """

    core: tuple[str, ...]
    minor: tuple[str, ...]
    forms: Mapping[str, Form]
    lemma: str

    def weight(self, label: str) -> float:
        """How much a claim counts: 3 in the core, 1 if it is welcome, else 0."""
        return 3.0 if label in self.core else 1.0 if label in self.minor else 0.0

    def form(self, label: str) -> Form:
        """The form in which a claim is wanted."""
        return self.forms.get(label, "stated")


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The mathematician's private knowledge.

    Attributes:
        now: what they want now.
        later: what they will want once they have seen one of the claims in ``turns`` fail; None once
            they have.
        turns: labels of the claims whose failure changes their mind.
    """

    now: Wishes
    later: Wishes | None = None
    turns: tuple[str, ...] = ()


def in_form(stated: str, form: Form) -> Claim:
    """A claim in a form; as stated if it has no such form."""
    claim = read_claim(stated)
    if not isinstance(claim, Divides) or form == "stated":
        return claim
    made = {"restrict": restricted, "weaken": weakened, "general": generalised}[form](claim)
    return made or claim
