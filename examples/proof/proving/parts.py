"""The parts of the output, by which models give it: sections and steps, from which its text is written."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ....engine.errors import InvalidInput
from ....tasks.actions import typed_output
from .checker import is_reason, read_identity
from .claims import read_claim
from .document import Kind, Section, Step, read_document, render_document

__all__ = ("FORM",)


class WrittenStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a proof. Steps are named by their places: the second of claim A is A.2.

    Attributes:
        text: what it says, such as ``8 divides n^2 - 1 for odd n``.
        reason: why: ``expand``, ``cases mod 8: 1 -> 0, 3 -> 8``, ``L2 at n + 1``, ``from A.1, A.2``,
            ``together A.3, A.4``, or ``induction B.1``.
        doubt: whether you are not sure of it.
    """

    text: Annotated[str, msgspec.Meta(examples=["8 divides n^2 - 1 for odd n"])]
    reason: Annotated[
        str,
        msgspec.Meta(
            examples=[
                "cases mod 8: 1 -> 0, 3 -> 8, 5 -> 24, 7 -> 48",
                "expand",
                "L2 at n + 1",
                "from A.1, A.2",
                "together A.3, A.4",
                "induction B.1",
            ]
        ),
    ]
    doubt: bool = False


class WrittenSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim or a lemma, with its proof.

    Attributes:
        kind: which of them.
        label: the label of a claim as in the request; L1, L2 and so on for lemmas.
        claim: what is proved, such as ``24 divides n^3 - n for odd n``.
        steps: the steps of the proof; the last one says what the claim says.
        fails: the number at which the claim as first stated fails.
        machine: whether Verify has accepted all steps.
    """

    kind: Kind
    label: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]\d{0,2}$", examples=["A", "L2"])]
    claim: Annotated[
        str, msgspec.Meta(examples=["24 divides n^3 - n for odd n", "sum(2*i - 1) = n^2"])
    ]
    steps: tuple[WrittenStep, ...] = ()
    fails: int | None = None
    machine: bool = False


class WrittenDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Claims and lemmas, in order."""

    sections: tuple[WrittenSection, ...]


def _write(document: WrittenDocument) -> str:
    sections = [_section(section) for section in document.sections]
    text = render_document(sections)
    read = read_document(text)
    for section in sections:
        if read.get(section.label) != section:
            raise InvalidInput(
                f"{section.kind} {section.label} cannot be read back: give each section once, and each "
                "text on one line, without brackets"
            )
    return text


def _section(section: WrittenSection) -> Section:
    where = f"{section.kind} {section.label}"
    try:
        read_claim(section.claim)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
    steps = tuple(
        _step(step, f"{section.label}.{number}")
        for number, step in enumerate(section.steps, start=1)
    )
    return Section(
        section.kind, section.label, section.claim, section.fails, steps, section.machine
    )


def _step(step: WrittenStep, name: str) -> Step:
    try:
        (read_identity if step.reason == "expand" else read_claim)(step.text)
    except InvalidInput as error:
        raise InvalidInput(f"step {name}: {error}") from None
    if not is_reason(step.reason):
        raise InvalidInput(
            f"step {name}: {step.reason!r} is not a reason: write expand, cases mod 8: 1 -> 0, 3 -> 8, "
            "L2 at n + 1, from A.1, A.2, together A.3, A.4, or induction B.1"
        )
    return Step(name, step.text, step.reason, step.doubt)


def _read(text: str) -> WrittenDocument:
    return WrittenDocument(
        tuple(
            WrittenSection(
                section.kind,
                section.label,
                section.claim,
                tuple(WrittenStep(step.text, step.reason, step.doubt) for step in section.steps),
                section.fails,
                section.machine,
            )
            for section in read_document(text).values()
        )
    )


FORM: Final = typed_output(WrittenDocument, _write, _read)
"""How models give the output."""
