"""The task actions of proof: computing, searching, running the checker, and checking by reading.

Each has a frozen struct for its arguments, from which its JSON schema and its validation come. Every
refusal is an `InvalidInput` that says how to continue.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from .algebra.classes import read_class
from .algebra.expressions import read_polynomial
from .algebra.polynomials import evaluated, spelled
from .proving.checker import Fault, check_section, read_cases
from .proving.claims import counterexample, read_claim
from .proving.document import Document, Section, read_document

__all__ = (
    "Accept",
    "Check",
    "Expand",
    "FindCounterexample",
    "Residues",
    "Verify",
    "expand",
    "faults_in",
    "find_counterexample",
    "reading_seconds",
    "residues",
    "sections_to_check",
    "verifying_seconds",
)

_MODULUS: Final = 64
_RANGE: Final = 10_000
_SECTIONS: Final = 12

_Proof = Annotated[
    str,
    msgspec.Meta(
        description="A claim or lemma with its proof, as it stands in the output, and above it the "
        "lemmas that it cites (their first lines are enough).",
        examples=[
            (
                "Claim B: sum(2*i - 1) = n^2\nB.1 (n^2) - (n^2 - 2*n + 1) = 2*n - 1 [expand]\n"
                "B.2 sum(2*i - 1) = n^2 [induction B.1]"
            )
        ],
    ),
]


_Expression = Annotated[
    str,
    msgspec.Meta(
        description="Sums, products and powers of n.", examples=["(n - 1)*n*(n + 1)", "n^3 - n"]
    ),
]


class Expand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Multiply out an expression in n, such as (n - 1)*n*(n + 1), and collect its powers."""

    expression: _Expression


class Residues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Work out the values of an expression at n = 0, 1, ..., and what they leave for a modulus."""

    expression: _Expression
    modulus: Annotated[int, msgspec.Meta(ge=2, le=_MODULUS, description="From 2 to 64.")]
    integers: Annotated[
        str,
        msgspec.Meta(
            description="For which n: all n, odd n, n not divisible by 3, ...",
            examples=["all n", "odd n", "n coprime to 6"],
        ),
    ] = "all n"


class FindCounterexample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Search for the smallest n from 0 at which a claim fails. Finding none proves nothing."""

    claim: Annotated[
        str,
        msgspec.Meta(
            description="As it is stated in the request.",
            examples=["24 divides n^3 - n for odd n", "sum(2*i - 1) = n^2"],
        ),
    ]
    limit: Annotated[int, msgspec.Meta(ge=1, le=_RANGE, description="The largest n to try.")] = 200


class Verify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Put a proof into the form that the checker reads, and have each step checked. It is never wrong,
    but takes time; once a proof is in that form, checking it again takes seconds.
    """

    proof: _Proof


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read a proof with care, step by step, yourself. It takes minutes, and you may overlook an error."""

    proof: _Proof


class Accept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Declare that you have read the present proof of a claim or lemma, and vouch for it."""

    label: Annotated[str, msgspec.Meta(description="As in the output.", examples=["A", "L1"])]


def expand(wanted: Expand) -> JSON:
    """The canonical form of an expression."""
    return spelled(read_polynomial(wanted.expression))


def residues(wanted: Residues) -> JSON:
    """Values and remainders, a row for each class of n: ``{"columns": [...], "rows": [...]}``."""
    value, over = read_polynomial(wanted.expression), read_class(wanted.integers)
    rows = [
        [n, found, found % wanted.modulus]
        for n in over.modulo(wanted.modulus)
        for found in [evaluated(value, n)]
    ]
    return {"columns": ["n", "value", "remainder"], "rows": rows}


def find_counterexample(wanted: FindCounterexample) -> JSON:
    """The smallest n at which a claim fails: ``{"n": 2}``, or null if none was found."""
    return {"n": counterexample(read_claim(wanted.claim), wanted.limit)}


def sections_to_check(proof: str) -> tuple[Document, tuple[Section, ...]]:
    """A proof as a document, and its sections that have steps.

    Raises:
        InvalidInput: there is none, or there are too many.
    """
    document = read_document(proof)
    found = tuple(one for one in document.values() if one.steps or one.unread)
    if not 0 < len(found) <= _SECTIONS:
        raise InvalidInput(
            f"there are {len(found)} proofs in this text, and 1 to {_SECTIONS} can be checked: give one "
            "as it is in the output, beginning with a line such as 'Claim A: ...'"
        )
    return document, found


def faults_in(document: Document, found: tuple[Section, ...]) -> dict[str, list[Fault]]:
    """The faults in sections, by label."""
    return {section.label: check_section(section, document) for section in found}


def verifying_seconds(section: Section, *, by_human: bool) -> float:
    """How long it takes to put a proof into the checker's form: longer for a person."""
    start, step = (150.0, 60.0) if by_human else (40.0, 25.0)
    return start + step * len(section.steps)


def reading_seconds(section: Section) -> float:
    """How long a mathematician takes to read a proof with care.

    A case takes 10 seconds, multiplying out 80, a use of a lemma 30, any other step 20; to take in the
    claim, 30.
    """
    total = 30.0
    for step in section.steps:
        cases = read_cases(step.reason)
        if cases is not None:
            total += 10.0 * max(len(cases[1]), 1)
        elif step.reason == "expand":
            total += 80.0
        else:
            total += 30.0 if step.reason.startswith("L") else 20.0
    return total
